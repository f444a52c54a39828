"""Every number that decides, with its reason; ``docs/decision.md`` lists the same, and a test compares.

Thresholds per metric are data, not rules: they are in :mod:`gate.metrics`.
"""

from __future__ import annotations

# --- noise of the noisy metrics, as standard deviations of natural logarithms ---

# With fewer baseline trials a standard deviation has one degree of freedom or none.
MIN_BASELINE_TRIALS = 3
# Nothing of a target is timed: a second trial tells which counts vary.
MIN_TARGET_TRIALS = 2
# Three processes of one run agree to 0.2 to 0.8 % at best: a smaller spread was luck.
NOISE_FLOOR = 0.005
# Two sessions on one machine differ even where the trials within each agree, and more trials do
# not average that away, so it is added to every standard error.
SESSION_SD = 0.01
# One trial of one program on a noisy two-core machine varied by 2.3 to 3.6 %: what is assumed
# where there are too few cases to learn from.
PRIOR_SD = 0.03
# The assumption above counts as much as this many degrees of freedom, as many as five trials give.
PRIOR_DF = 4.0
# The prior is learned from a metric's own cases when at least this many have a variance.
MIN_CASES_FOR_PRIOR = 4
# However alike the cases look, a case that varies in its own way keeps a say.
MAX_PRIOR_DF = 20.0
# However unlike the cases look, what they teach counts as two degrees of freedom: with fewer, a case
# that has one pair and no spread of its own has an interval that no number holds.
MIN_PRIOR_DF = 2.0

# --- screening ---

# Two-sided confidence of every interval that is shown.
INTERVAL_CONFIDENCE = 0.95
# An interval wider than this factor says that nothing is known, and is shown as wide as this: the
# logarithm of a bound that two pairs leave may be in the hundreds, which no number holds.
LARGEST_FACTOR = 1e6
# A change below this is never suspect, however sure it is.
SUSPECT_CHANGE = 0.01
# One-sided p below which a change is suspect: wide, since a suspect is only looked at again.
SUSPECT_P = 0.25
# One-sided confidence that a change is below its threshold, with which it is not suspect.
CLEAR_CONFIDENCE = 0.95
# UNCHANGED needs that a change of this many thresholds, or of this fraction if that is more,
# would have been noticed; otherwise nothing was shown.
DETECTABLE_THRESHOLDS = 3.0
DETECTABLE_FRACTION = 0.15
# Where a base is at hand a latency is also suspect when a change of this many thresholds could have
# gone unseen: the screen calls that UNCHANGED, and on a machine whose speed wanders 4.6 of 100
# slowdowns of 5 % passed so, and 2.0 of 10 %. A compile time is not: its Python calls show what the
# clock does not.
BLIND_THRESHOLDS = 2.0

# --- side by side ---

# Numbers of pairs at which a case is judged. One pair clears most counters and compile times, three
# clear most latencies, and 16 settle a change of 5 % where pairs vary by 3 %, the most that was seen.
LOOKS = (1, 3, 6, 10, 16)
# A case that is begun is brought to the look that clears most latencies before another is begun.
SETTLING_PAIRS = 3
# Fewer pairs of blocks with undisturbed calls leave a pair at the mercy of one disturbance: then all calls
# count.
MIN_UNDISTURBED = 6
# Other programs disturb both arms alike. So many standard errors apart, one arm disturbs itself. A check of
# six cases asks a hundred times: with 3 a fourth of such checks would take another program for the arm's own
# threads.
ALIKE_ERRORS = 4.0
# What disturbed calls cost both arms may differ by as much (logarithm) and count as alike however sure it is:
# a sixth of the threshold of 3 %.
ALIKE_COST = 0.005
# A live pair of one program with itself varied by 0.6 to 3.1 %, typically 1.2 %. More than typical is
# assumed: with 1.3 % a machine on which all vary by 3 % had false alarms in 2 % of requests.
LIVE_PAIR_SD = 0.016
# Latencies of whole processes in turn varied by 1 to 6 %.
TURNS_PAIR_SD = 0.03
# Compile times of 36 pairs on a shared two-core machine varied by 21 % by the clock: with 3 % assumed,
# 5.7 of 100 simulated requests of unchanged code were red.
COMPILE_PAIR_SD = 0.20
# CPU time of a cold compile, its compilers' included, varied by 10 % in the same pairs.
PROCESSOR_PAIR_SD = 0.10
# A compile that took more CPU time seems sooner done where the clock is lower by this many thresholds: a real
# compile that took 15 % more of it was 2 % sooner done by chance.
SOONER_THRESHOLDS = 0.5
# What is assumed of a pair's noise, or learned of it from other cases, weighs no more than five
# pairs do: cases differ fivefold, and a noisy one must not borrow the quiet ones' certainty.
PAIR_PRIOR_DF = 4.0
# One-sided p that a slower latency must reach by the noise of the case's own pairs too, compiled's and
# eager's, whatever is assumed or learned: with a single suspect whose pairs varied by 4.8 %, 3.4 of 100
# simulated requests of unchanged code were red without it, and 0.3 are, 0.6 where eager varies half as much.
OWN_NOISE_P = 0.001
# The cases' variances replace the assumption from this many degrees of freedom together on: of four cases
# with three pairs each. With ten cases asked for, eight noisy ones were judged by the assumption, and 4.2 of
# 100 simulated requests were red.
MIN_DF_FOR_PAIR_PRIOR = 8.0
# They are learned from the first pairs of each case, so that the pairs that one case gets later
# cannot unsettle another that has no more to come.
PAIRS_FOR_PRIOR = 3
# One pair says nothing of its own noise: it convicts nobody, and clears what changes by less than it
# could stray. A counter that changed must be seen again.
MIN_PAIRS = 2
# One of so many pairs may stray on either side without a say in the noise: of 14 pairs a single one
# kept a case open that the others had settled. Of six it is too many: what it costs where none
# strays is more than it saves where one in fifty does.
PAIRS_PER_STRAY = 10
# More pairs than this are not promised: nobody will run them.
MAX_FURTHER_PAIRS = 99

# --- bisection ---

# A step is told once its pairs are so many times as likely at one end's level as at the other's. By Wald's
# bound a step is then wrong at most once in 200, so one of 40 bisections of five steps.
LEVEL_ODDS = 200.0
# Degrees of freedom of the t density that a pair is weighed by: with so few a stray pair weighs no more than
# one that is where it should be. With 8, half as many again of simulated bisections went wrong.
LEVEL_TAIL_DF = 4.0
# A step's noise counts as 1 + 3 / sqrt(df) times its estimate: of few pairs it is as often too small as too
# large, and a step that it is too small for is wrong. Without it 4 to 9 of 100 simulated bisections of 10 %
# with pairs that vary by 4.8 % had a wrong step, and with it 2.
LEVEL_NOISE_MARGIN = 3.0
# The ends get pairs until the standard error of what lies between them is this part of it, or they have
# the most: an error of the level is one of every step.
LEVEL_PRECISION = 0.125
# Where the last of the LOOKS leaves the ends open, or what was found, they get up to so many pairs: the whole
# search rests on them, and ends that are wrongly taken to differ lead to no answer, not to a wrong one.
MAX_END_PAIRS = 32
# A step that so many pairs leave open lies between the levels, or is too noisy: it is skipped.
MAX_LEVEL_PAIRS = 24

# --- controls ---

# A smaller shift of the machine is within what a threshold of 5 % leaves room for. Whether a larger one is
# more than chance their own noise says: canaries varied by 11 to 25 % between trials on two-core machines.
CANARY_LIMIT = 0.03
# The median of the cases' eager changes moves less than one canary.
SUITE_LIMIT = 0.02
# With fewer cases the median is one model's business, not the machine's.
MIN_CASES_FOR_SUITE = 4
# Eager "moved as much" when it explains at least this share of compiled's change.
SHARED_SHARE = 0.5
# Eager and compiled slower together: the lower bound must be beyond this many thresholds, twice
# what the ratio's bar asks, because no control in the process speaks for the code.
SHARED_THRESHOLDS = 2.0
# The same needs at least this many trials, since one bad minute hits both arms of one trial alike.
SHARED_TRIALS = 2
# The same needs canaries that explain at most this share of the change.
STEADY_SHARE = 0.2
# Compile time without a trace in its proxies: the lower bound must be beyond this many thresholds.
UNCORROBORATED_THRESHOLDS = 3.0
# Python calls of a compile repeat to 0.1 %: a rise beyond this is real work.
CORROBORATING_CALLS = 0.02
# Generated code that got longer or shorter by more than this is other work for the C++ compiler; other
# constants, offsets and names in it are not.
CORROBORATING_CODE = 0.02
# CPU time of a cold compile varies by 10 % from pair to pair, and along with the clock: a witness
# must have seen more than that.
CORROBORATING_PROCESSOR = 0.15

# --- exact, nearly exact and drift ---

# A nearly exact metric must leave the baseline by this many times the baseline's own range.
RANGE_FACTOR = 3.0
# Drift repeats to 0.01 over seeds; the floor keeps two equal trials from meaning no noise at all.
DRIFT_SD_FLOOR = 0.03
# A change of drift must be beyond this many standard errors.
DRIFT_SIGMAS = 3.0
# Beyond a limit, and worse than the baseline by less than this: it was there before.
DRIFT_NOTABLE = 0.15
# Compiled's error over eager's own, both against fp64: three times in half precision.
DRIFT_LIMIT_HALF = 1.58
# Twice in float32, where semantic faults show as hundreds of times.
DRIFT_LIMIT_FLOAT32 = 1.0
# Without a baseline a float32 result within so many rounding steps of float64 has not drifted, however much
# better eager is: on a processor it sums a batch's statistics in float64. Fifty were seen of that, and 70 of
# a single wrong element in 32,768.
DRIFT_ROUNDING_STEPS = 64.0
# Nor has one within four times what 16 rounding steps in all weights and inputs make of the result.
DRIFT_BEYOND_ROUNDING = 2.0

# --- notes ---

# Machines age: after this many days a baseline is mentioned.
OLD_BASELINE_DAYS = 30
# A suggested acceptance expires after this many days.
ACCEPTANCE_DAYS = 30
