"""What there is to tell, without the words: a code with its numbers, cases, metrics and names.

Nothing is decided by the words that ``gate.report.words`` makes of a fact, and nobody reads them back.
What a fact holds beside its code is fixed by the code: :data:`NUMBERS` and :data:`MORE_NUMBERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.records.metric import Metric


class Code(StrEnum):
    """What a fact is about; ``names`` are words of others. Its numbers are in the tables below."""

    TEXT = "text"  # names: text, command; from a file of an older version, which held sentences

    # The headline, and what stands before and behind it.
    NO_CONFIGURATION = "no_configuration"  # no gate.yml was found
    STOPPED = "stopped"  # before its end; a note too
    NOT_MEASURED = "not_measured"
    FEWER_TRIALS = "fewer_trials"
    REGRESSED = "regressed"  # one or several cases; metrics: the worst's, then those of the others
    REGRESSED_CASE = "regressed_case"  # cases: the only one
    REGRESSED_WORST = "regressed_worst"  # cases: the worst of several
    REGRESSED_UNSHOWN = "regressed_unshown"  # in cases that the default branch does not have
    COULD_NOT_TELL = "could_not_tell"
    NO_BASELINE_APPLIES = "no_baseline_applies"
    BASE_HAS_NOTHING = "base_has_nothing"  # to compare with
    NOTHING_WORSE = "nothing_worse"
    AGAINST_BASE = "against_base"  # everything was

    # Remarks on one comparison.
    MACHINE_MOVED = "machine_moved"
    LATENCY_WITHIN = "latency_within"  # its limit, so a ratio to it counts for nothing
    MEMORY_WITHIN = "memory_within"
    DRIFT_LIMIT = "drift_limit"
    OWN_LIMIT = "own_limit"  # of gate.yml, in the metric's unit
    EAGER_SLOWED_TOO = "eager_slowed_too"
    EAGER_CHANGED = "eager_changed"
    PROCESSOR_TIME = "processor_time"  # judged by it
    NO_RATIO = "no_ratio"  # a value is zero or less
    FAILURE = "failure"  # names: stage, kind, message
    TRIALS_CAME = "trials_came"
    NOTHING_MEASURED = "nothing_measured"  # by trials that came back
    ACCEPTED_BY = "accepted_by"  # names: author, expires, reason
    QUARANTINED_BY = "quarantined_by"  # names: owner, expires, reason
    DISTURBED_BY = "disturbed_by"  # names: phrases
    BASE_LACKS_CASE = "base_lacks_case"  # so there are no pairs, as for the next three
    BASE_DEFINES_OTHERWISE = "base_defines_otherwise"
    BASE_FAILED = "base_failed"
    NO_PAIR = "no_pair"

    # Explanations of one case.
    GRAPH_BREAK = "graph_break"  # names: reason, location
    GRAPH_BREAK_GONE = "graph_break_gone"  # names: reason, location
    RECOMPILED = "recompiled"  # names: reason, line, location
    PRECISION_CHANGED = "precision_changed"  # of the generated code; names: added, removed
    CALLS_ADDED = "calls_added"  # what no kernel is fused with; names: calls, operators
    KERNELS_SPLIT = "kernels_split"  # the same operators in more kernels; names: was, now
    KERNELS_ADDED = "kernels_added"  # with more operators; names: was, now
    KERNELS_JOINED = "kernels_joined"  # names: was, now
    OPERATIONS_CHANGED = "operations_changed"  # that the compiler was given
    DEFINITION_CHANGED = "definition_changed"  # of the case; names: before and after, by what changed
    STACK_CHANGED = "stack_changed"  # names: differences
    STACK_UNUSED = "stack_unused"  # it changed where the device uses nothing of it; names: differences
    EAGER_ALONE = "eager_alone"  # got faster, and compiled did not
    MORE = "more"  # of what came before
    CODE_CHANGED = "code_changed"  # names: changed, added, removed
    CODE_SAME = "code_same"
    CODE_TUNED = "code_tuned"  # the same, and tuned to other configurations
    WORKLOAD_CHANGED = "workload_changed"  # names: before and after, by what changed
    EAGER_TOO = "eager_too"  # moved as compiled did, half as much or more
    BOTH_LATENCIES = "both_latencies"
    LONGEST_PHASES = "longest_phases"
    CHANGED_PHASES = "changed_phases"
    COMPILERS_TIME = "compilers_time"  # processor time of the compilers that it started
    NO_CHANGED_PHASE = "no_changed_phase"
    CACHE_LOST = "cache_lost"  # it holds less than it did; names: caches
    CACHE_MISSED = "cache_missed"
    MACHINE_CHANGED = "machine_changed"  # a note too
    CLOCKS_LOWERED = "clocks_lowered"  # names: reasons
    KERNELS_STEADY = "kernels_steady"  # none takes another time on the device
    KERNELS_MOVED = "kernels_moved"  # names: kernels, in the order of the numbers
    DEVICE_IDLE = "device_idle"  # for most of a call
    BOUND_BY = "bound_by"  # the machine's rate of memory, or of arithmetic
    BOUND_BY_NEITHER = "bound_by_neither"
    OTHER_PROCESSES = "other_processes"
    UNEXPLAINED = "unexplained"  # by anything that was recorded

    # Notes on the whole verdict.
    NO_BASELINE = "no_baseline"  # of these metrics, as for the next four
    OTHER_MACHINES = "other_machines"
    OTHER_STACK = "other_stack"
    REDEFINED = "redefined"
    NOT_RECORDED = "not_recorded"
    BASE_LACKS_CASES = "base_lacks_cases"  # of these metrics, as for the next three
    BASE_NOT_MEASURED = "base_not_measured"
    BASE_DEFINES_CASES_OTHERWISE = "base_defines_cases_otherwise"
    BASE_LACKS_METRICS = "base_lacks_metrics"
    NOT_BESIDE = "not_beside"  # side by side with the base
    WAIVED = "waived"  # names: author, expires, reason
    WAIVER_EXPIRED = "waiver_expired"  # names: author, expires
    ACCEPTANCE_EXPIRED = "acceptance_expired"  # names: pattern, expires, reason
    ACCEPTANCE_EXCEEDED = "acceptance_exceeded"  # names: author, expires
    ACCEPTANCE_IDLE = "acceptance_idle"  # names: pattern
    DRIFT_ABOVE = "drift_above"
    BASELINES_OLD = "baselines_old"
    BASELINES_AHEAD = "baselines_ahead"
    PAIRS = "pairs"
    CLEARED = "cleared"  # cases and metrics: which, as far as they are named
    CASES_GONE = "cases_gone"  # that the base has
    NEAREST_DIFFERS = "nearest_differs"  # names: differences
    TRIALS_DISTURBED = "trials_disturbed"  # names: phrases
    PAIRS_DISTURBED = "pairs_disturbed"  # names: phrases
    DISTURBED_KEPT = "disturbed_kept"  # among trials that are recorded
    WARNING = "warning"  # names: text; cases: whose trials
    MORE_WARNINGS = "more_warnings"
    QUARANTINE = "quarantine"  # names: pattern, owner, expires, reason, statuses
    QUARANTINE_EXPIRED = "quarantine_expired"  # names: pattern, owner, expires, reason
    BASE_CASES_FAILED = "base_cases_failed"
    RULES_OF = "rules_of"  # names: commit
    ANCHOR = "anchor"  # names: anchor
    TOUCHES_RULES = "touches_rules"  # names: rules
    FILES_UNSEEN = "files_unseen"
    CASES_UNSHOWN = "cases_unshown"
    NO_BASELINES_HERE = "no_baselines_here"
    NO_DEVICE = "no_device"  # a target: what only a device can tell is absent by rule
    APPROVED = "approved"  # names: author, expires
    APPROVED_WITHOUT = "approved_without"  # baselines; names: author, expires
    APPROVAL_UNREADABLE = "approval_unreadable"

    # Notes on a calibration.
    NOISE_UNKNOWN = "noise_unknown"  # of these cases
    NOT_REPLAYED = "not_replayed"
    SOME_NOT_REPLAYED = "some_not_replayed"
    MODES_NOT_SOUGHT = "modes_not_sought"
    REPLAYED_ALONE = "replayed_alone"  # without pairs
    REPLAY_MIXES = "replay_mixes"  # trials of one sitting

    # Why a case is unstable, in a calibration.
    TRIAL_FAILED = "trial_failed"  # names: stage, message
    VALUES_RANGE = "values_range"
    TWO_GROUPS = "two_groups"  # of trials
    BLOCKS_SPLIT = "blocks_split"
    TRIALS_VARY = "trials_vary"
    PAIRS_BIASED = "pairs_biased"
    PAIRS_VARY = "pairs_vary"

    # What the gate said of a planted fault, where it judged nothing.
    ARM_FAILED = "arm_failed"  # names: arm, stage, message
    FAILURE_TOLD = "failure_told"  # names: kind, stage, message
    FAILURE_UNTOLD = "failure_untold"  # names: kind
    NOT_JUDGED = "not_judged"  # metrics: which

    # What to do next.
    CONTINUE = "continue"
    FIX_FAILED = "fix_failed"
    FIX_FAILED_BESIDE = "fix_failed_beside"
    MEASURE_AGAIN = "measure_again"
    MORE_MINUTES = "more_minutes"
    FIX = "fix"
    ACCEPT = "accept"  # or fix; names: expires
    ACCEPT_TOO = "accept_too"  # names: expires
    MORE_LIKE_THESE = "more_like_these"
    BE_SURE = "be_sure"
    SETTLE = "settle"
    SETTLE_BY_TRIALS = "settle_by_trials"
    SETTLE_QUIETLY = "settle_quietly"
    LIFT_QUARANTINE = "lift_quarantine"  # names: expires
    RECORD_MORE = "record_more"
    RECORD = "record"
    RECORD_BETTER = "record_better"
    HOLD_AGAINST_ANCHOR = "hold_against_anchor"
    READ_BASE_LOGS = "read_base_logs"


def _list_codes(first: Code, last: Code) -> frozenset[Code]:
    """The codes from one to another, in their order, and the text of an older version."""
    ordered = list(Code)
    return frozenset((Code.TEXT, *ordered[ordered.index(first) : ordered.index(last) + 1]))


# Which facts stand where.
HEADLINE_CODES = _list_codes(Code.NO_CONFIGURATION, Code.AGAINST_BASE)
REMARK_CODES = _list_codes(Code.MACHINE_MOVED, Code.NO_PAIR)
CAUSE_CODES = _list_codes(Code.GRAPH_BREAK, Code.UNEXPLAINED)
NOTE_CODES = _list_codes(Code.NO_BASELINE, Code.REPLAY_MIXES) | {Code.STOPPED, Code.MACHINE_CHANGED}
INSTABILITY_CODES = _list_codes(Code.TRIAL_FAILED, Code.PAIRS_VARY)
ATTEMPT_CODES = _list_codes(Code.ARM_FAILED, Code.NOT_JUDGED)
STEP_CODES = _list_codes(Code.CONTINUE, Code.READ_BASE_LOGS)

# Compile phases by Dynamo's own clocks, each with the seconds before and after.
PHASES = (
    *("dynamo", "aot_autograd", "backward", "inductor", "code_generation", "triton"),
    *("autotune_at_launch", "cudagraph_capture", "garbage_collection"),
)
OTHER_PHASE = "other"  # of the first call: what no phase accounts for
FIRST_CALL = "first_call"  # all of it: no phase, though told beside them
BEFORE, AFTER = "_before_s", "_after_s"
_PHASE_TIMES = frozenset(phase + moment for phase in (*PHASES, OTHER_PHASE) for moment in (BEFORE, AFTER))
PLACES = ("first", "second", "third")  # of changes that have no names of their own
LIMITS = ("memory", "arithmetic")  # rates of the machine: a share of a call
# Of fixed test programs over the run, of eager over all cases, of the programs beside one case: fractions.
SHIFTS = ("canary", "suite", "case")

# The numbers that a fact of a code has. Changes and shares are fractions.
NUMBERS: Mapping[Code, frozenset[str]] = {
    code: frozenset(names.split())
    for code, names in {
        Code.NOT_MEASURED: "broken cases",
        Code.FEWER_TRIALS: "fewer cases",
        Code.REGRESSED: "cases",
        Code.REGRESSED_CASE: "metrics",
        Code.REGRESSED_WORST: "cases",
        Code.REGRESSED_UNSHOWN: "cases",
        Code.COULD_NOT_TELL: "undecided judged",
        Code.NO_BASELINE_APPLIES: "cases quarantined",
        Code.BASE_HAS_NOTHING: "cases quarantined",
        Code.NOTHING_WORSE: "comparisons cases judged judged_cases improved",
        Code.DRIFT_LIMIT: "limit",
        Code.OWN_LIMIT: "limit",
        Code.EAGER_SLOWED_TOO: "change",
        Code.EAGER_CHANGED: "change",
        Code.PROCESSOR_TIME: "change",
        Code.FAILURE: "trial",
        Code.TRIALS_CAME: "came planned",
        Code.MORE: "more",
        Code.CALLS_ADDED: "calls",
        **dict.fromkeys(
            (
                Code.CACHE_LOST,
                Code.KERNELS_SPLIT,
                Code.KERNELS_ADDED,
                Code.KERNELS_JOINED,
                Code.OPERATIONS_CHANGED,
            ),
            "before after",
        ),
        Code.STACK_CHANGED: "differences",
        Code.STACK_UNUSED: "differences",
        Code.EAGER_ALONE: "eager compiled",
        Code.EAGER_TOO: "eager compiled",
        Code.BOTH_LATENCIES: "eager compiled",
        Code.COMPILERS_TIME: "change_s",
        Code.NO_CHANGED_PHASE: "share",
        Code.CACHE_MISSED: "misses",
        Code.KERNELS_MOVED: "before_s after_s moved",
        Code.DEVICE_IDLE: "busy",
        Code.OTHER_PROCESSES: "processes",
        **dict.fromkeys(
            (
                *(Code.NO_BASELINE, Code.OTHER_MACHINES, Code.OTHER_STACK, Code.REDEFINED),
                *(Code.NOT_RECORDED, Code.BASE_LACKS_CASES, Code.BASE_NOT_MEASURED),
                *(Code.BASE_DEFINES_CASES_OTHERWISE, Code.BASE_LACKS_METRICS, Code.NOT_BESIDE),
            ),
            "cases",
        ),
        Code.ACCEPTANCE_EXCEEDED: "allowance",
        Code.DRIFT_ABOVE: "drift limit",
        Code.BASELINES_OLD: "baselines days oldest",
        Code.BASELINES_AHEAD: "baselines days",
        Code.PAIRS: "pairs cases turns",
        Code.CASES_GONE: "cases",
        Code.BASE_CASES_FAILED: "cases",
        Code.CLEARED: "comparisons",
        Code.TRIALS_DISTURBED: "disturbed measured",
        Code.PAIRS_DISTURBED: "disturbed measured",
        Code.DISTURBED_KEPT: "fewest",
        Code.MORE_WARNINGS: "warnings",
        Code.QUARANTINE: "worse comparisons",
        Code.FILES_UNSEEN: "files",
        Code.CASES_UNSHOWN: "cases comparisons regressed failed",
        Code.APPROVED: "changes",
        Code.NOISE_UNKNOWN: "more trials",
        Code.NOT_REPLAYED: "trials",
        Code.SOME_NOT_REPLAYED: "short cases trials",
        Code.MODES_NOT_SOUGHT: "trials",
        Code.REPLAYED_ALONE: "pairs",
        Code.TRIAL_FAILED: "trial",
        Code.VALUES_RANGE: "trials low high",
        Code.TWO_GROUPS: "apart",
        Code.BLOCKS_SPLIT: "split trials",
        Code.TRIALS_VARY: "noise unseen trials",
        Code.PAIRS_BIASED: "pairs change",
        Code.PAIRS_VARY: "noise unseen pairs",
        Code.ACCEPT: "commands allowance",
        Code.ACCEPT_TOO: "allowance",
        Code.MORE_LIKE_THESE: "commands",
        Code.LIFT_QUARANTINE: "cases",
    }.items()
}
# Those that it may have.
MORE_NUMBERS: Mapping[Code, frozenset[str]] = {
    **dict.fromkeys((Code.REGRESSED, Code.REGRESSED_CASE, Code.REGRESSED_WORST), frozenset({"low", "high"})),
    Code.MACHINE_MOVED: frozenset(PLACES),
    **dict.fromkeys((Code.BOUND_BY, Code.BOUND_BY_NEITHER), frozenset(LIMITS)),
    Code.KERNELS_MOVED: frozenset(place + moment for place in PLACES for moment in (BEFORE, AFTER)),
    Code.MACHINE_CHANGED: frozenset(SHIFTS),
    **dict.fromkeys((Code.LONGEST_PHASES, Code.CHANGED_PHASES), _PHASE_TIMES),
    Code.CODE_CHANGED: frozenset({"kernels", "changed", "added", "removed"}),
    Code.WORKLOAD_CHANGED: frozenset({"more"}),
    Code.DEFINITION_CHANGED: frozenset({"more"}),
    Code.CACHE_MISSED: frozenset({"bypasses"}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One thing to tell.

    ``names`` holds every word that is not of this project: whoever measured may have written it.
    """

    code: Code
    numbers: Mapping[str, float] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def name(self, key: str, default: str = "") -> str:
        """The one word that stands under this name; ``default`` where it may not be told."""
        return next(iter(self.names.get(key, ())), default)


def name_words(**words: str) -> Mapping[str, tuple[str, ...]]:
    """The names of a fact that has one word of each."""
    return {name: (word,) for name, word in words.items()}


# Facts about one comparison.
_OF_ONE = frozenset({Code.ACCEPT, Code.ACCEPT_TOO, Code.ACCEPTANCE_EXCEEDED, Code.DRIFT_ABOVE})


def find_misshapen(fact: Fact) -> str:
    """Find what a fact of this code lacks or cannot have; ``""`` where its shape is right."""
    if fact.code in _OF_ONE and not (fact.cases and fact.metrics):
        return "metrics" if fact.cases else "cases"
    asked, known = NUMBERS.get(fact.code, frozenset()), fact.numbers.keys()
    strange = known - asked - MORE_NUMBERS.get(fact.code, frozenset())
    return min((asked - known) | strange, default="")
