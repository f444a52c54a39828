"""What there is to report: the codes of all facts, and which of them stand where."""

from enum import StrEnum
from typing import Self


class Code(StrEnum):
    """What a fact is about, with the numbers that it has; ``names`` are words of others.

    Changes and shares are fractions. Which more numbers it may have is in :mod:`gate.records.facts`.
    """

    numbers: frozenset[str]

    def __new__(cls, value: str, numbers: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.numbers = frozenset(numbers.split())
        return member

    TEXT = "text"  # of an event alone, for no file holds sentences; names: text

    # The headline, and what stands before and behind it.
    STOPPED = "stopped"  # before its end; a note too
    NOT_MEASURED = "not_measured", "broken cases"
    METRICS_LACKING = "metrics_lacking", "lacking cases"  # of cases that were measured otherwise
    FEWER_TRIALS = "fewer_trials", "fewer cases"
    CASES_REMOVED = "cases_removed", "removed cases"  # by the change, and not accepted
    REGRESSED = "regressed", "cases"  # one or several cases; metrics: theirs
    REGRESSED_CASE = "regressed_case", "metrics"  # cases: the only one
    REGRESSED_UNSHOWN = "regressed_unshown", "cases"  # in cases that the default branch does not have
    COULD_NOT_TELL = "could_not_tell", "undecided judged"
    NO_BASELINE_APPLIES = "no_baseline_applies", "cases quarantined"
    BASE_HAS_NOTHING = "base_has_nothing", "cases quarantined"  # to compare with
    NOTHING_WORSE = "nothing_worse", "comparisons cases judged judged_cases improved"
    WRONG_ON_BOTH_SIDES = "wrong_on_both_sides", "cases drift"  # before and after, the largest of these
    TIMES_UNJUDGED = "times_unjudged", "comparisons"  # what was recorded is of another machine
    AGAINST_BASE = "against_base"  # everything was

    # Remarks on one comparison.
    MACHINE_SPEED = "machine_speed", "shift"
    DRIFT_LIMIT = "drift_limit", "limit"
    DRIFT_OF = "drift_of", "steps"  # of which output or gradient it mostly is; names: output
    OWN_LIMIT = "own_limit", "limit"  # of gate.yml, in the metric's unit
    EAGER_CHANGED = "eager_changed", "change"
    PROCESSOR_TIME = "processor_time", "change"  # judged by it
    BY_PLACE = "by_place", "before after"  # counted by kind, for torch recorded so many, each side its way
    SINCE_STORED = "since_stored", "change low"  # worse than what is stored; pairs show less
    NO_RATIO = "no_ratio"  # a value is zero or less
    ALREADY_REGRESSED = "already_regressed"  # its case has, so what would settle it changes nothing
    FAILURE = "failure", "trial"  # of studies too; names: as ``CaseFailure.quote`` has them
    TRIALS_CAME = "trials_came", "came planned"
    NOTHING_MEASURED = "nothing_measured"  # by trials that came back
    ACCEPTED_BY = "accepted_by"  # names: author, expires, reason
    QUARANTINED_BY = "quarantined_by"  # names: owner, expires, reason
    DISTURBED_BY = "disturbed_by"  # names: reasons
    SINCE_UPGRADE = "since_upgrade"  # of the host, as well as of its stack; names: differences
    BASE_LACKS_CASE = "base_lacks_case"  # so there are no pairs, as for the next three
    BASE_DEFINES_OTHERWISE = "base_defines_otherwise"
    BASE_FAILED = "base_failed"
    WAITS_FOR_HOST = "waits_for_host", "busy"  # a GPU, for the rest of a call
    HOST_VARIES = "host_varies", "sd"  # a GPU's, from trial to trial
    OTHER_CARD = "other_card"  # than the baseline's
    OTHER_PACKAGES = "other_packages"  # than the baseline's; names: differences
    NO_PAIR = "no_pair"

    # Explanations of one case.
    GRAPH_BREAK = "graph_break"  # names: reason, registry, location
    GRAPH_BREAK_GONE = "graph_break_gone"  # names: reason, registry, location
    RECOMPILED = "recompiled"  # names: reason, line, location
    RECOMPILED_NO_MORE = "recompiled_no_more"  # names: reason, line, location
    GUARDS_CHANGED = "guards_changed", "before after"
    PRECISION_CHANGED = "precision_changed"  # of the generated code; names: added, more, removed
    CALLS_ADDED = "calls_added", "calls"  # what no kernel is fused with; names: calls, operators
    KERNELS_SPLIT = "kernels_split", "before after"  # the same operators in more kernels; names: was, now
    KERNELS_ADDED = "kernels_added", "before after"  # with more operators; names: was, now
    KERNELS_JOINED = "kernels_joined", "before after"  # names: was, now
    OPERATIONS_CHANGED = "operations_changed", "before after"  # that the compiler was given
    DEFINITION_CHANGED = "definition_changed"  # of the case; names: before and after, by what changed
    OPTIONS_CHANGED = "options_changed"  # that code sets; names: before and after, by option
    DEFAULT_CHANGED = "default_changed", "change left pairs"  # once set back; names: likewise
    FIRST_BAD = "first_bad", "steps"  # by a bisection; names: commit, subject
    STACK_CHANGED = "stack_changed", "differences"  # names: differences
    EAGER_ALONE = "eager_alone", "eager compiled"  # got faster, and compiled did not
    MORE = "more", "more"  # of what came before
    CODE_CHANGED = "code_changed"  # names: changed, added, removed
    IMPORTS_CHANGED = "imports_changed", "files"  # that the case imports, since the base; names: files
    CODE_SAME = "code_same"
    CODE_TUNED = "code_tuned"  # the same, and tuned to other configurations
    WORKLOAD_CHANGED = "workload_changed"  # names: before and after, by what changed
    EAGER_TOO = "eager_too", "eager compiled"  # moved as compiled did, half as much or more
    FUNCTIONS_CALLED = "functions_called", "share before after"  # names: function, callers
    CHANGED_PHASES = "changed_phases"
    CACHE_MISSED = "cache_missed"  # by the second process; names: cache
    MACHINE_CHANGED = "machine_changed"  # a note too
    KERNELS_STEADY = "kernels_steady"  # none takes another time on the device
    KERNELS_MOVED = "kernels_moved", "before_s after_s moved"  # names: kernels, in the order of the numbers
    UNEXPLAINED = "unexplained"  # by anything that was recorded

    # Notes on the whole verdict.
    NO_BASELINE = "no_baseline", "cases"  # of these metrics, as for the next five
    OTHER_MACHINES = "other_machines", "cases"
    OTHER_SPEED = "other_speed", "cases"
    OTHER_STACK = "other_stack", "cases"
    REDEFINED = "redefined", "cases"
    MEASURED_BEFORE = "measured_before", "cases"  # in another way
    NOT_RECORDED = "not_recorded", "cases"
    BASE_LACKS_CASES = "base_lacks_cases", "cases"  # of these metrics, as for the next three
    BASE_NOT_MEASURED = "base_not_measured", "cases"
    BASE_DEFINES_CASES_OTHERWISE = "base_defines_cases_otherwise", "cases"
    BASE_LACKS_METRICS = "base_lacks_metrics", "cases"
    TIME_UP = "time_up"  # of --minutes, before these cases were settled
    DEFAULTS_DIFFER = "defaults_differ", "defaults"  # between two stacks; names: before and after, by option
    STORED_ONLY = "stored_only", "cases"  # not measured side by side with the base
    LACK_ACCEPTED = "lack_accepted"  # names: author, expires, reason
    LACK_EXPIRED = "lack_expired"  # names: author, expires
    LACK_UNACCEPTED = "lack_unaccepted"  # cases: without an acceptance of that, which others have
    ACCEPTED_ELSEWHERE = "accepted_elsewhere", "acceptances"  # names: author, gate, environment
    ACCEPTANCE_EXPIRED = "acceptance_expired"  # names: pattern, expires, reason
    ACCEPTANCE_EXCEEDED = "acceptance_exceeded", "allowance"  # names: author, expires
    UNUSED_ACCEPTANCE = "unused_acceptance"  # names: pattern
    ACCEPTANCE_LEFT = "acceptance_left", "allowance"  # on top of what is recorded; names: pattern
    DRIFT_ABOVE = "drift_above", "drift limit"
    BASELINES_OLD = "baselines_old", "baselines days oldest"
    NO_BASE = "no_base"  # to compare with, though none was refused; also of a run; names: reason, fix
    NOTHING_DIFFERS = "nothing_differs"  # from the base; also of a run; names: base
    CLEARED = "cleared", "comparisons"  # cases and metrics: which, as far as they are named
    UNCHANGED_SPEEDUP = "unchanged_speedup", "cases hidden"  # hidden: how much slower both could be
    UNCHANGED_SOURCES = "unchanged_sources", "cases"  # suspect, and no different from the base
    CASES_GONE = "cases_gone", "cases"  # that the base has
    ONE_SHARD = "one_shard", "left cases"  # is judged, and so many cases are in none; names: shard
    BASELINES_IDLE = "baselines_idle", "cases"  # of cases that no configuration has
    NEAREST_DIFFERS = "nearest_differs"  # names: differences
    COUNTS_ONLY = "counts_only"  # no times were kept
    OWN_STEAL = "own_steal", "share"  # what the hypervisor takes of most trials
    TRIALS_DISTURBED = "trials_disturbed", "disturbed measured"  # names: reasons
    PAIRS_DISTURBED = "pairs_disturbed", "disturbed measured"  # names: reasons
    DISTURBED_KEPT = "disturbed_kept", "fewest"  # among trials that are recorded
    MORE_WARNINGS = "more_warnings", "warnings"
    FAIL_FAST = "fail_fast", "comparisons"  # so many were not settled after the first regression
    QUARANTINE = "quarantine", "worse comparisons"  # names: pattern, owner, expires, reason, statuses
    QUARANTINE_EXPIRED = "quarantine_expired"  # names: pattern, owner, expires, reason
    BASE_CASES_FAILED = "base_cases_failed", "cases"
    LENT_MODULES = "lent_modules"  # new ones that head's factory imports; names: paths
    RULES_OF = "rules_of"  # names: commit
    ANCHOR = "anchor"  # names: anchor
    TOUCHES_RULES = "touches_rules"  # names: rules
    FILES_UNSEEN = "files_unseen", "files"
    CASES_UNSHOWN = "cases_unshown", "cases comparisons regressed failed"
    NO_BASELINES_HERE = "no_baselines_here"
    NO_DEVICE = "no_device"  # a target: what only a device can measure is absent by rule
    CODE_IS_THE_BASES = "code_is_the_bases", "same cases"  # a target: all of it, in every case
    CODE_DIFFERS = "code_differs", "same cases"  # a target: in these cases
    ACCEPTED_HERE = "accepted_here", "changes"  # names: author, expires
    LACK_ACCEPTED_HERE = "lack_accepted_here"  # baselines; names: author, expires
    ACCEPTANCES_UNREADABLE = "acceptances_unreadable"

    # Notes on a calibration.
    NOISE_UNKNOWN = "noise_unknown", "more trials"  # of these cases
    SOME_NOT_REPLAYED = "some_not_replayed", "short cases trials"
    REPLAYED_ALONE = "replayed_alone", "pairs"  # without pairs
    REPLAY_MIXES = "replay_mixes"  # trials of one session

    # Why a case is unstable, in a calibration.
    VALUES_RANGE = "values_range", "trials low high"
    TRIALS_VARY = "trials_vary", "unseen trials"
    PAIRS_BIASED = "pairs_biased", "pairs change"
    PAIRS_VARY = "pairs_vary", "unseen pairs"

    # What to do next.
    CONTINUE = "continue"
    FIX_FAILED = "fix_failed"
    FIX_NEW = "fix_new"  # likewise, of cases without a counterpart in the base
    MEASURE_AGAIN = "measure_again"
    MORE_MINUTES = "more_minutes"
    ACCEPT_REMOVED = "accept_removed"
    FIX = "fix"
    ACCEPT = "accept", "commands allowance"  # or fix; names: expires
    ACCEPT_TOO = "accept_too", "allowance"  # names: expires
    MORE_LIKE_THESE = "more_like_these", "commands"
    BE_SURE = "be_sure"
    SETTLE = "settle"
    SETTLE_BY_TRIALS = "settle_by_trials"
    SETTLE_WITH_PAIRS = "settle_with_pairs"
    QUIET_FIRST = "quiet_first"  # every trial was disturbed; names: reasons, crowd
    SETTLE_QUIETLY = "settle_quietly"
    LIFT_QUARANTINE = "lift_quarantine", "cases"
    RECORD_MORE = "record_more"
    RECORD = "record"
    COMPARE_WITH_BASE = "compare_with_base"  # or record
    RECORD_BETTER = "record_better"
    HOLD_AGAINST_ANCHOR = "hold_against_anchor"
    READ_BASE_LOGS = "read_base_logs"

    # What a run reports as it goes.
    UNCOMMITTED_BEFORE = "uncommitted_before"  # so earlier trials may be of other code
    CROWDED_EARLY = "crowded_early", "crowded cores"  # before anything is measured; names: crowd
    REPEATED = "repeated", "trial"  # a disturbed trial; names: reasons
    ARMS = "arms"  # names: base, head
    UNCOMMITTED = "uncommitted"  # changes are part of an arm
    NO_DIRECTORY = "no_directory"  # in an arm; names: arm, place
    NO_SUBMODULES = "no_submodules"  # in an arm; names: arm, paths
    OTHER_MAIN = "other_main"  # that head left elsewhere; names: other
    LENT = "lent"  # to an arm that has no gate.yml; names: arm, paths
    PROBING = "probing", "defaults"  # of torch.compile, to find which one did it; names: case
    LANES_WAIT = "lanes_wait"  # to be opened; names: lanes, waits, seconds
    LANE_LEFT_OUT = "lane_left_out"  # of the run; names: lane, reason
    LANE_GONE = "lane_gone", "lost_s"  # with cases that begin anew elsewhere; names: lane, reason
    LANE_SLOW = "lane_slow", "slower"  # than the others at fixed test programs; a note alone; names: lane
    LANES_NICE = "lanes_nice", "niceness own"  # to what else runs on their hosts; names: lanes
    BASE_UNCONFIGURED = "base_unconfigured"  # a directory without gate.yml: nothing is written into it
    BASE_MISCONFIGURED = "base_misconfigured"  # names: problem

    # What a trial could not do as it was asked, or not as usual: notes too.
    VARIABLES_DROPPED = "variables_dropped"  # not inherited by workers; names: variables
    ENDS_UNANNOUNCED = "ends_unannounced"  # of processes: so workers are not forked, as for the next five
    SERVER_SILENT = "server_silent", "wall_s cpu_s"
    SERVER_GONE = "server_gone"
    IMPORT_FAILED = "import_failed"  # of the model; names: exception
    IMPORT_SETS_THREADS = "import_sets_threads"
    IMPORT_STARTS_PROCESSES = "import_starts_processes"
    IMPORT_STARTS_THREADS = "import_starts_threads"  # names: thread, unless a library's
    ENDED_BADLY = "ended_badly", "status"  # after its result was complete; names: role
    FAILED_BEFORE = "failed_before"  # and was tried again; names: kind, stage
    PROCESS_FAILED = "process_failed"  # and what it measured before is kept; names: role
    REPEAT_KILLED = "repeat_killed"  # so the disturbed trial is kept; names: those of a failure
    PROCESSES_DISAGREE = "processes_disagree"  # names: subject
    LEFT_TO_EAGER = "left_to_eager"  # a frame; names: reason, location
    UNKNOWN_HERE = "unknown_here"  # this torch does not report these metrics
    INPUT_AS_IT_IS = "input_as_it_is"  # neither cast nor moved; names: input, kind
    PARAMETERS_UNSEEN = "parameters_unseen"  # neither cast nor copied; names: why
    EAGER_COMPILED = "eager_compiled"  # the model compiles parts of itself
    CACHES_HELD = "caches_held"  # measured code named others; names: variables
    GRAPH_DIFFERS = "graph_differs"  # in the second process, from the first one's
    BLOCKS_RECOMPILED = "blocks_recompiled", "blocks"
    NEVER_SETTLES = "never_settles", "calls"  # it still compiles, captures or tunes
    UNMEASURED = "unmeasured"  # these metrics; names: why
    MEMORY_KEPT = "memory_kept", "bytes calls eager"  # by each of so many calls; names: location, if known
    NO_CUDA_GRAPH = "no_cuda_graph"  # though the case asks for them
    UNWATCHED = "unwatched"  # a GPU; names: unseen, why
    NO_FLOAT64 = "no_float64"  # names: why
    FLOAT32_REFERENCE = "float32_reference"  # instead of float64, for 16 bits; names: why
    RANDOM_UNJUDGED = "random_unjudged"  # compiled code draws other random numbers than eager
    STATE_UNJUDGED = "state_unjudged"  # two eager calls differ, though all that is known of was put back
    NO_TENSORS = "no_tensors"  # in what the model returns, as far as is looked
    REFERENCE_TOO_LARGE = "reference_too_large", "needed free"  # for the device too; bytes of the host
    REFERENCE_NOT_FINITE = "reference_not_finite", "unknown elements"  # names: output
    REFERENCE_RESHAPED = "reference_reshaped"  # names: output, exact, eager
    REFERENCE_FAR = "reference_far", "error limit"  # from eager: drift shows little; names: output
    OUTPUT_UNSEEN = "output_unseen"  # an object that cannot be compared; names: output, dtype
    WRITES_UNSEEN = "writes_unseen"  # of compiled code, to tensors of its own; names: outputs
    TRAINING_UNSEEN = "training_unseen"  # outputs besides the loss, and gradients of inputs; names: why
    GRADIENTS_TAKEN = "gradients_taken"  # by inference, of an input that asks for it; names: input
    LAYOUT_DIFFERS = "layout_differs"  # of what is returned; names: output, eager, compiled
    LEFT_BY_ONE = "left_by_one"  # of eager and compiled, in what calls leave behind; names: output
    OUTPUT_FAR = "output_far", "error limit"  # from eager's, where there is no float64; names: output
    OUTPUT_LOST = "output_lost"  # by eager or compiled, as for the next two; names: output
    OUTPUT_RESHAPED = "output_reshaped"  # names: output, eager, compiled
    OUTPUT_DIFFERS = "output_differs"  # names: output, dtype

    # What is not known of a trial, besides metrics that this torch does not report.
    NO_TRACE = "no_trace"  # this torch leaves none
    TRACE_CUT = "trace_cut"  # names: those of a failure

    # How a case failed. A status below 0 is a signal's; shortage is what the log mentions, if anything.
    RAISED = "raised"  # names: message, an exception's own
    NO_END = "no_end", "wall_s cpu_s"  # at its time limit; names: role, as for the next one
    HANGS = "hangs", "wall_s cpu_s"
    SIGKILLED = "sigkilled", "oom_kills"  # by somebody else; names: role, shortage, as for the next five
    NO_RESULT = "no_result", "status"
    RESULT_UNFINISHED = "result_unfinished", "status"
    RESULT_TOO_LARGE = "result_too_large", "status bytes"
    RESULT_UNREADABLE = "result_unreadable", "status"  # names: message too
    PYTEST_ENDED = "pytest_ended", "status"  # before the result was complete
    PYTEST_RAISED = "pytest_raised"  # the same; names: message
    LANE_LOST = "lane_lost", "losses"  # each lane that it was on
    NO_GPU_EACH = "no_gpu_each"  # for two processes; cases: which, as for the next two
    NO_BFLOAT16 = "no_bfloat16", "capability needed"
    TOO_LITTLE_MEMORY = "too_little_memory", "gib needed_gib"
    PACKAGES_LACKING = "packages_lacking"  # names: packages
