"""Every number that decides, with its reason; ``docs/decision.md`` lists the same, and a test compares.

Thresholds per metric are data, not rules: they are in :mod:`gate.metrics`.
"""

# --- noise of the noisy metrics, as standard deviations of natural logarithms ---

# With fewer baseline trials a standard deviation has one degree of freedom or none.
MIN_BASELINE_TRIALS = 3
# Two sessions on one machine differ even if the trials within each agree. More trials do not average that
# away.
SESSION_SD = 0.01
# A machine's own history says by how much less its sessions differ once it has so many days. With fewer, the
# quantile of Student's t is so large that little is won.
MIN_SESSIONS = 5
# Of the last so many days. Before, other code may have been measured, and differs by more than sessions do.
SESSION_DAYS = 30
# Assumed if there are too few cases to learn from. One trial of one program on a noisy two-core machine
# varied by 2.3 to 3.6 %, and a pair of whole processes in turn by 1 to 6 %.
PRIOR_SD = 0.03
# Assumed noise counts as much as this many degrees of freedom, as many as five trials give.
PRIOR_DF = 4.0
# From this many degrees of freedom on, the cases' own noise replaces the assumption.
MIN_LEARNED_DF = 8.0
# Noise learned from the other cases counts as this many degrees of freedom at most: a case's own noise still
# counts.
LEARNED_DF = 20.0
# And as this share of those that went into it: a median varies so much more than a mean. With 20 of four
# cases' 8, unchanged compile times were red in 1.1 % of simulated requests, of a budget of 0.3 %.
MEDIAN_EFFICIENCY = 0.5

# --- screening ---

# Two-sided confidence of every interval that is shown.
INTERVAL_CONFIDENCE = 0.95
# One-sided confidence that a change is below its threshold. With it, the case is no suspect.
CLEAR_CONFIDENCE = 0.90
# An interval that reaches further above its middle than so many edges clears no case: it lies low by luck.
WIDEST = 2.0
# Without a base, an unchanged value is estimated below the edge, and surely below so many edges.
ALONE_EDGES = 1.5
# With a base, stored values clear only what is surely below so many edges: pairs are possible, and have a
# smaller threshold for latencies.
BASE_EDGES = 0.7
# A cold compile that alone is open, and longer by less than so many edges, is timed again before pairs. A
# second one as stored brings the mean below the edge.
CHANCE_EDGES = 2.0

# --- side by side ---

# Numbers of pairs at which a case is judged. One pair clears most counters, and three clear most latencies.
# 16 settle a change of 5 % if pairs vary by 3 %, the most that was seen.
LOOKS = (1, 2, 3, 4, 6, 8, 12, 16)
# A case that has begun gets this many pairs, which clear most latencies, before another begins.
SETTLING_PAIRS = 3
# Other programs disturb both sides alike. If the sides differ by so many standard errors, one disturbs
# itself. With 3, a fourth of checks of six cases would take another program for the side's own threads.
ALIKE_ERRORS = 4.0
# A live pair of one program with itself varied by 0.6 to 3.1 %, typically 1.2 %. With 1.3 % assumed, a
# machine on which all vary by 3 % had false alarms in 2 % of requests.
LIVE_PAIR_SD = 0.016
# Compile times of 36 pairs on a shared two-core machine varied by 21 % by the clock. With 3 % assumed, 5.7 of
# 100 simulated requests of unchanged code were red.
COMPILE_PAIR_SD = 0.20
# CPU time of a cold compile, its compilers' included, varied by 10 % in the same pairs.
PROCESSOR_PAIR_SD = 0.10
# A case whose two groups of latencies vary by less than this share of the whole variance has two speeds. Two
# pairs agree by luck: of slowdowns of 10 % between speeds 10 % apart, 14 of 240 were missed, and 8 with this.
TWO_SPEEDS = 0.12
# In pairs, memory is taken to flicker until so many values of unchanged code agree: what a fourth of the
# processes show is among them but in 1 of 100.
REPEATED_VALUES = 16
# One pair does not show its own noise, so it settles no time. A counter that changed must be seen again.
MIN_PAIRS = 2
# One-sided p that a slower latency or compile must reach by the noise of its own pairs too. Without it a
# single noisy case is red. With the error budget's own p, slowdowns of 30 % stayed open after 330 s.
OWN_NOISE_P = 0.001
# Variance of the Hodges-Lehmann estimate of normal values over that of their mean (Park, Kim and Wang 2022).
# Simulated: 1.02 of 3 values, 1.10 of 4, 1.08 of 6, 1.07 of 10 and 1.06 of 16.
POOLING_LOSS = 1.08
# One of so many pairs on each side does not count for the noise: of 14 pairs a single stray kept a case open
# that the others had settled. Of six pairs, leaving one out costs more than it saves.
PAIRS_PER_STRAY = 10

# --- acceptances and limits ---

# An acceptance by comment allows the upper end of the interval, and at most so many times the estimate: what
# regressed has an interval above no change.
MOST_OF_ESTIMATE = 2.0
# By so many half widths of INTERVAL_CONFIDENCE a base is surely worse than what is stored: an acceptance
# counts that, too. With 1, a twentieth of accepted changes of an unchanged base were not accepted.
MOVED_WIDTHS = 2.0

# Each limit of each case has this share of the error budget. With all of it, 5 of 134 simulated requests were
# red whose sixty cases, which vary by 20 %, were at nine tenths of their limits.
LIMIT_SHARE = 0.1

# --- controls ---

# Beyond this it is another machine: its times are not compared.
FAR_LIMIT = 0.15
# A GPU that computes for this share of a call hides its host: one that is 25 % slower costs 2.5 % at most.
FILLED_DEVICE = 0.9
# With fewer cases the median shows one model, not the machine.
MIN_CASES_FOR_SUITE = 4
# Eager explains a change of compiled if it moved by at least this share of it.
SHARED_SHARE = 0.5
# Variance of the median of many normal values over that of their mean, half of pi: how sure the shift of a
# canary or of the suite is. Of few values it is less.
MEDIAN_LOSS = 1.5708
# Standard deviation of normal values over their median absolute deviation: how much the speedups of cases
# differ.
MEDIAN_DEVIATION = 1.4826
# Median of the square of a normal value of variance 1: how much a case's speedups differ from day to day.
MEDIAN_SQUARE = 0.455
# Up to this share, what the hypervisor takes of most trials is the machine's own noise. Beyond it, what is
# left of a core shows too little.
OWN_STEAL = 0.15
# A trial that lost more than so many times the usual share is disturbed all the same.
STEAL_STANDS_OUT = 2.0

# Python calls of a compile repeat to 0.1 %. A larger difference is other work.
MORE_WORK = 0.02
# CPU time of a cold compile varies by 10 % from pair to pair, and along with the clock. A second sign must be
# larger than that.
MORE_PROCESSOR = 0.15

# --- exact, nearly exact and drift ---

# Drift repeats to 0.01 over seeds. The floor keeps equal trials on either side of a limit from crossing it.
DRIFT_SD_FLOOR = 0.03
# A change of drift must be beyond this many standard errors.
DRIFT_SIGMAS = 3.0
# Compiled's error over eager's own, both compared with fp64: three times in half precision.
DRIFT_LIMIT_HALF = 1.58
# Twice in float32. Semantic faults show as hundreds of times.
DRIFT_LIMIT_FLOAT32 = 1.0
# Without a baseline, a float32 result within so many rounding steps of float64 has not drifted, even if eager
# is much better. Eager's sums in float64 gave up to fifty steps; a single wrong element in 32,768 gave 70.
DRIFT_ROUNDING_STEPS = 64.0
# Nor has a result within four times the effect of 16 rounding steps in all weights and inputs.
DRIFT_BEYOND_ROUNDING = 2.0
# Beyond this on both sides the headline of a PASS says so, and so does `init`: 256 times eager's own error is
# no rounding.
DRIFT_WRONG = 8.0

# --- which pair comes next, and when it ends ---

# A trial without its second process takes this share of a whole one, before the case had one. On two shared
# cores a small BERT's took 17 of 41 s, an elementwise chain's 9 of 18.
COLD_SHARE = 0.5
# A pair of latencies alone takes this share of a whole one, before the case had one: 15 to 20 s where a whole
# one took 50 s.
LIGHT_PAIR_SHARE = 0.4
# Before anything was measured, a pair is tried if this share of what is expected would fit. A small model
# without a given time took a quarter of it: 15 s where 60 were expected.
GUESSED_SHARE = 0.25
# Two processes of one program differ by this, whatever their rounds: live pairs of a program with itself
# typically varied by 1.2 %. More rounds do not average that away.
PROCESS_SD = 0.012
# A pair has so many super-blocks at least: fewer know too little of their own noise.
LEAST_SUPER_BLOCKS = 3
# And so many if so many are wanted: fewer do not show how much one differs from the next.
MIN_SUPER_BLOCKS = 5
# If blocks are disturbed there are more of them, up to so many times what is wanted. On two busy cores all
# noise of 20 pairs was that of their blocks. Beyond 10 s of blocks too little time is left for other cases.
MOST_ROUNDS = 4
