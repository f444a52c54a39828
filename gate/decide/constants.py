"""Every number that decides, with its reason; ``docs/decision.md`` lists the same, and a test compares.

Thresholds per metric are data, not rules: they are in :mod:`gate.metrics`.
"""

from __future__ import annotations

# --- noise of the noisy metrics, as standard deviations of natural logarithms ---

# With fewer baseline trials a standard deviation has one degree of freedom or none.
MIN_BASELINE_TRIALS = 3
# Two sessions on one machine differ even where the trials within each agree, and more trials do
# not average that away, so it is added to every standard error.
SESSION_SD = 0.01
# One trial of one program on a noisy two-core machine varied by 2.3 to 3.6 %, and a pair of whole processes
# in turn by 1 to 6 %: what is assumed where there are too few cases to learn from.
PRIOR_SD = 0.03
# What is assumed of noise counts as much as this many degrees of freedom, as many as five trials give.
PRIOR_DF = 4.0
# The cases' own noise replaces the assumption from this many degrees of freedom together on.
MIN_LEARNED_DF = 8.0
# What the other cases teach counts for as many as this: a case that varies in its own way keeps a say.
LEARNED_DF = 20.0

# --- screening ---

# Two-sided confidence of every interval that is shown.
INTERVAL_CONFIDENCE = 0.95
# One-sided confidence that a change is below its threshold, with which it is not suspect.
CLEAR_CONFIDENCE = 0.90
# An interval that reaches further above its middle than so many edges clears nothing: it lies low by luck.
WIDEST = 2.0
# Without a base what is unchanged is estimated below the edge, and surely below so many edges.
ALONE_EDGES = 1.5
# With a base what stored values clear is surely below so many edges: pairs are at hand, and hold latencies to
# less.
BASE_EDGES = 0.7

# --- side by side ---

# Numbers of pairs at which a case is judged. One pair clears most counters and compile times, three
# clear most latencies, and 16 settle a change of 5 % where pairs vary by 3 %, the most that was seen.
LOOKS = (1, 2, 3, 4, 6, 8, 12, 16)
# A case that is begun is brought to the look that clears most latencies before another is begun.
SETTLING_PAIRS = 3
# Fewer pairs of blocks with undisturbed calls leave a pair at the mercy of one disturbance: then all calls
# count.
MIN_UNDISTURBED = 6
# Other programs disturb both arms alike. So many standard errors apart, one arm disturbs itself. A check of
# six cases asks a hundred times: with 3 a fourth of such checks would take another program for the arm's own
# threads.
ALIKE_ERRORS = 4.0
# A live pair of one program with itself varied by 0.6 to 3.1 %, typically 1.2 %. More than typical is
# assumed: with 1.3 % a machine on which all vary by 3 % had false alarms in 2 % of requests.
LIVE_PAIR_SD = 0.016
# Compile times of 36 pairs on a shared two-core machine varied by 21 % by the clock: with 3 % assumed,
# 5.7 of 100 simulated requests of unchanged code were red.
COMPILE_PAIR_SD = 0.20
# CPU time of a cold compile, its compilers' included, varied by 10 % in the same pairs.
PROCESSOR_PAIR_SD = 0.10
# One pair says nothing of its own noise: it convicts nothing, and clears what changes by less than it
# could stray. A counter that changed must be seen again.
MIN_PAIRS = 2
# One-sided p that a slower latency must reach by the noise of its own pairs too, whatever is assumed or
# learned: a single noisy case is red without it. With the error budget's own p, slowdowns of 30 % stayed open
# after 330 s.
OWN_NOISE_P = 0.001
# One of so many pairs may stray on either side without a say in the noise: of 14 pairs a single one
# kept a case open that the others had settled. Of six it is too many: what it costs where none
# strays is more than it saves where one in fifty does.
PAIRS_PER_STRAY = 10


# --- controls ---

# Beyond this a machine is another one: its times are not compared.
FAR_LIMIT = 0.15
# A smaller shift of the machine is within what a threshold of 5 % leaves room for. Whether a larger one is
# more than chance their own noise says: canaries varied by 11 to 25 % between trials on two-core machines.
CANARY_LIMIT = 0.03
# With fewer cases the median is one model's business, not the machine's.
MIN_CASES_FOR_SUITE = 4
# Eager "moved as much" when it explains at least this share of compiled's change.
SHARED_SHARE = 0.5

# Python calls of a compile repeat to 0.1 %, and so does the length of its code: beyond this it is other work.
MORE_WORK = 0.02
# CPU time of a cold compile varies by 10 % from pair to pair, and along with the clock: a witness
# must have seen more than that.
MORE_PROCESSOR = 0.15

# --- exact, nearly exact and drift ---

# A nearly exact metric must leave the baseline by this many times the baseline's own range.
RANGE_FACTOR = 3.0
# Drift repeats to 0.01 over seeds; the floor keeps equal trials on either side of a limit from crossing it.
DRIFT_SD_FLOOR = 0.03
# A change of drift must be beyond this many standard errors.
DRIFT_SIGMAS = 3.0
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
