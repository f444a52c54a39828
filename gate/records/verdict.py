"""What was decided: comparisons, why they came out so, the outcome of all, and what else is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gate.records.bounds import Natural, NotNegative, Range
from gate.records.cases import Case, Metric, Mode, Task, Threshold
from gate.records.codes import Code
from gate.records.facts import CauseFact, HeadlineFact, NoteFact, RemarkFact, StepFact, UnknownFact
from gate.records.run import CacheUse, CaseFailure, Environment, GraphBreak, Provenance, Recompile

# Why a case changed, and both sides of it to look at: a verdict rests on none of this. Everything is bounded,
# so that a verdict stays a file to pass around.
Weight = Annotated[float, Range(minimum=0, maximum=1)]
# Where nothing is tolerated, one unit is as grave as a change of so many limits.
_UNIT_SEVERITY = 10.0


class CauseKind(StrEnum):
    GRAPH_BREAK = "graph_break"
    RECOMPILE = "recompile"
    UNCHANGED_CODE = "unchanged_code"  # the same code was generated
    TUNING = "tuning"  # the same code was generated, and tuned to other configurations
    GUARDS = "guards"  # what a compile makes and every call checks
    CHANGED_CODE = "changed_code"
    FUSION = "fusion"  # kernels that were one are several, or the other way round
    WORKLOAD = "workload"  # the measured model itself
    STACK = "stack"  # torch, the driver or a library
    EAGER = "eager"
    KERNELS = "kernels"  # what ran on the device, by name
    COMPILE_PHASE = "compile_phase"
    CACHE = "cache"
    KEPT = "kept"  # memory that calls do not give back
    MACHINE = "machine"
    OUTPUT = "output"  # compiled gives another answer
    LAYOUT = "layout"  # compiled returns or keeps it otherwise
    UNEXPLAINED = "unexplained"  # nothing that was recorded accounts for it


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One reason why a case changed. Those of a case stand together, the likeliest first."""

    case_id: str
    fact: CauseFact
    weight: Weight = 0.0  # how much it accounts for by itself: 1 all of it, 0 a detail of another cause


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelChange:
    """One kernel that is not the same on both sides; ``""`` where a side has none, or no code was kept."""

    name: str  # on the side that has it, head's before the base's
    before: str = ""  # normalised source
    after: str = ""
    is_cut: bool = False  # too long: each source is its beginning


@dataclass(frozen=True, kw_only=True, slots=True)
class SideEvidence:
    """What was recorded of one side of a case."""

    values: Mapping[Metric, tuple[float, ...]] = field(default_factory=dict)  # one a trial, as they ran
    phases_s: Mapping[str, NotNegative] = field(default_factory=dict)  # own time of each; they add up
    parts_s: Mapping[str, NotNegative] = field(default_factory=dict)  # what only its kind has, as each shape
    calls_within: Mapping[str, Natural] = field(default_factory=dict)  # Python's, of a compile, by function
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompile_reasons: tuple[Recompile, ...] = ()
    caches: Mapping[str, CacheUse] = field(default_factory=dict)  # of the second process, by cache
    unknown: tuple[UnknownFact, ...] = ()
    traces: tuple[str, ...] = ()  # torch's own, for `tlparse`: paths below the run's directory


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEvidence:
    """Both sides of one case. ``before`` is the base's where pairs decided, else the stored baseline's."""

    case_id: str
    after: SideEvidence
    before: SideEvidence | None = None
    kernels: tuple[KernelChange, ...] = ()  # of a case that moved
    more_kernels: Natural = 0  # that changed too, and are left out for want of room

    @property
    def sides(self) -> tuple[SideEvidence, SideEvidence]:
        """One without a before has an empty one."""
        return self.before or SideEvidence(), self.after


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRow:
    """Geometric means over the cases of one task, mode and family; ``None`` where no case has a value."""

    task: Task
    mode: Mode
    family: str = ""  # empty: of all families
    cases: Natural
    speedup: NotNegative | None = None
    cold_compile_s: NotNegative | None = None
    warm_compile_s: NotNegative | None = None
    memory_ratio: NotNegative | None = None
    break_even_calls: NotNegative | None = None  # of the cases that ever pay back
    never_paid: Natural = 0  # cases whose compiled calls are no faster than eager's


@dataclass(frozen=True, kw_only=True, slots=True)
class ModeRow:
    """One mode of a case that was measured in several."""

    case_id: str
    default_id: str  # the same case in the mode ``default``; empty where that was not measured
    cold_compile_s: NotNegative
    compiled_s: NotNegative  # one call
    break_even_calls: NotNegative | None = None  # calls until it has paid over eager; None: never
    over_default_calls: NotNegative | None = None  # likewise over the mode ``default``


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopeRow:
    """A model of which all or a part was compiled; of all, the ratio is 1."""

    case_id: str
    whole_id: str  # the same case with all of the model compiled
    cold_compile_s: NotNegative
    cold_ratio: NotNegative  # cold compile over that of the whole model
    speedup: NotNegative


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteSummary:
    """What a suite came to in figures that decide nothing."""

    rows: tuple[SuiteRow, ...] = ()
    modes: tuple[ModeRow, ...] = ()
    scopes: tuple[ScopeRow, ...] = ()


class Status(StrEnum):
    """Result of one comparison. It starts INCONCLUSIVE and moves only on evidence."""

    REGRESSED = "REGRESSED"
    IMPROVED = "IMPROVED"
    UNCHANGED = "UNCHANGED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    NEW = "NEW"
    MISSING = "MISSING"
    FAILED = "FAILED"
    ACCEPTED = "ACCEPTED"


BROKEN = frozenset({Status.FAILED, Status.MISSING})  # it could not be measured
UNJUDGED = frozenset({Status.NEW, Status.NOT_COMPARABLE})  # compared with nothing that is stored
JUDGED = frozenset(Status) - BROKEN - UNJUDGED
MAYBE_MOVED = JUDGED - {Status.UNCHANGED}
NOT_WORSE = frozenset({Status.UNCHANGED, Status.IMPROVED})
MAYBE_WORSE = JUDGED - NOT_WORSE - {Status.ACCEPTED}  # REGRESSED or INCONCLUSIVE
MOVED = frozenset({Status.REGRESSED, Status.IMPROVED})  # by more than its threshold
RED = BROKEN | {Status.REGRESSED}  # what somebody has to fix
QUIET = UNJUDGED | {Status.UNCHANGED}  # a reader need not see such comparisons one by one


class Reason(StrEnum):
    BELOW_THRESHOLD = "below_threshold"  # UNCHANGED: a change that matters is excluded, or a limit is kept
    BEYOND_BAR = "beyond_bar"  # REGRESSED or IMPROVED: too large to be noise, and beyond its threshold
    LIMIT_EXCEEDED = "limit_exceeded"  # REGRESSED: beyond an absolute limit: of drift, or of gate.yml
    SHARED_SHIFT = "shared_shift"  # INCONCLUSIVE: slower, and so is eager: the machine, or what both share
    UNCORROBORATED = "uncorroborated"  # INCONCLUSIVE: compile time moved, its noise-free proxies did not
    SAME_WORK = "same_work"  # UNCHANGED: the same compile, or the same code that kept pace with eager
    UNCHANGED_SOURCES = "unchanged_sources"  # UNCHANGED: a time; no imported file differs from the base
    LEADER_STANDS = "leader_stands"  # UNCHANGED: it moved, and what it follows did not, or explains it
    FEW_TRIALS = "few_trials"  # INCONCLUSIVE: too few trials to know the noise
    NO_BASELINE = "no_baseline"  # NEW: nothing is stored for this case
    OTHER_ENVIRONMENT = "other_environment"  # of another host, speed or stack; INCONCLUSIVE: or driver
    STALE_DEFINITION = "stale_definition"  # NOT_COMPARABLE: the case's definition has changed since
    MEASURED_OTHERWISE = "measured_otherwise"  # NEW: what is stored was measured in another way
    NOT_MEASURED = "not_measured"  # MISSING: head lacks the metric; NOT_COMPARABLE: the baseline does
    NOT_RUN = "not_run"  # MISSING: planned, and no trial came back, or fewer
    REMOVED = "removed"  # MISSING or ACCEPTED: it failed, and the change's own gate.yml no longer has it
    CASE_FAILED = "case_failed"  # FAILED: see the failure's stage and message
    ACCEPTED = "accepted"  # ACCEPTED: worse, within an acceptance in force
    UNSETTLED = "unsettled"  # INCONCLUSIVE: noise, an unfit host or another card could hide or explain it
    UNPAIRED = "unpaired"  # INCONCLUSIVE: no pair with the base came; NOT_COMPARABLE: the base failed


_OF_WHOLE_CASE = frozenset({Reason.REMOVED, Reason.CASE_FAILED, Reason.NOT_RUN})


class Outcome(StrEnum):
    """Outcome of a whole verdict, strongest first; see ``Verdict.outcome``."""

    INCOMPLETE = "INCOMPLETE"
    REGRESSION = "REGRESSION"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOTHING_COMPARED = "NOTHING_COMPARED"
    PASS = "PASS"


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A metric's value in one arm, in the metric's unit.

    Interval and noise are None where nothing is known of them: a single trial shows neither.
    """

    centre: float
    low: float | None
    high: float | None
    noise: NotNegative | None  # standard deviation between trials, of log values on a ratio scale
    n: Natural  # trials


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Candidate against baseline; + is worse. Fractions, or units for counters and drift.

    Drift that no baseline applies to is compared with its limit.
    """

    centre: float
    low: float
    high: float
    detectable: float  # smallest change that would have been noticed with 95 % probability


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One case and metric, judged. ``decides`` is false for controls, advisories and explanations."""

    status: Status
    reason: Reason
    baseline: Estimate | None = None
    candidate: Estimate | None = None
    change: Change | None = None
    pairs: Natural = 0  # side-by-side pairs that decided; 0: a stored baseline did
    more_pairs: Natural | None = None  # that would settle it, if it stays so; 0: none likely, None: not known
    remarks: tuple[RemarkFact, ...] = ()
    case_id: str
    metric: Metric
    decides: bool
    threshold: Threshold | None = None
    quarantined: bool = False  # it would decide, but for a quarantine in force
    found: Reason | None = None  # what its values show, where ``reason`` is a doubt or an acceptance

    @property
    def is_of_whole_case(self) -> bool:
        """Whatever metric it stands under."""
        return self.reason in _OF_WHOLE_CASE

    def has_remark(self, code: Code) -> bool:
        return any(fact.code is code for fact in self.remarks)

    @property
    def may_decide(self) -> bool:
        """It decides, or would but for a quarantine."""
        return self.decides or self.quarantined

    @property
    def is_judged(self) -> bool:
        """It decides, and was not accepted or short of time for a pair without any baseline."""
        is_waived = self.status is Status.ACCEPTED or self.reason is Reason.UNPAIRED
        return self.decides and self.status in JUDGED and not (is_waived and self.baseline is None)

    @property
    def is_incomparable(self) -> bool:
        """It decides, and there is nothing to compare it with."""
        return self.decides and self.status in UNJUDGED

    @property
    def waits_for_pairs(self) -> bool:
        """Further pairs may settle it."""
        return self.status is Status.INCONCLUSIVE and self.more_pairs is not None

    @property
    def severity(self) -> float:
        """In thresholds, + is worse; 0 if it does not decide or did not change."""
        if self.change is None or not self.decides or self.status is Status.UNCHANGED:
            return 0.0
        bar = (self.threshold.relative or self.threshold.absolute) if self.threshold else 0.0
        return self.change.centre / bar if bar else _UNIT_SEVERITY * self.change.centre


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineShift:
    """How the machine as a whole differs from when the baselines were recorded."""

    canary: float = 0.0  # signed fraction, + is slower; 0 when unknown
    suite: float = 0.0  # median change of eager latency over the cases
    known: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PairBase:
    """What the pairs of a verdict were compared with, as far as it can be named again."""

    label: str = ""  # as in ``BaseArm``: for a reader
    commit: str = ""  # empty where no commit holds all of it: a directory, uncommitted changes
    head_commit: str = ""  # empty where head was the working tree
    other_stack: bool = False  # measured with another interpreter than head
    pythons: tuple[str, ...] = ()  # as in ``BaseArm``


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What a verdict rests on, in numbers. *Disturbed* is what was measured on a host that was not fit."""

    finished: bool = True
    trials: Natural = 0  # of head, that ran alone
    disturbed_trials: Natural = 0
    pairs: Natural = 0
    paired_cases: Natural = 0
    pairs_in_turn: Natural = 0  # one whole process after the other
    disturbed_pairs: Natural = 0
    cleared: Natural = 0  # comparisons that are worse than the stored baseline, and not than the base
    cases: Natural | None = None  # of the verdict, all of them: a file that holds fewer was cut
    comparisons: Natural | None = None  # likewise; None: not counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The judgement of a run, with all that a report needs."""

    outcome: Outcome
    headline: tuple[HeadlineFact, ...]
    cases: tuple[Case, ...]
    comparisons: tuple[Comparison, ...]
    failures: tuple[CaseFailure, ...]
    causes: tuple[Cause, ...]  # by case, the likeliest first
    next_steps: tuple[StepFact, ...]
    notes: tuple[NoteFact, ...]  # what a reader must know: unjudged metrics, expired acceptances
    machine: MachineShift
    environment: Environment
    provenance: Provenance
    baseline_provenance: tuple[Provenance, ...] = ()
    baseline_environments: tuple[str, ...] = ()
    base_environment: Environment | None = (
        None  # of the pairs' base, else of the first baseline that was used
    )
    evidence: tuple[CaseEvidence, ...] = ()  # to be shown: one piece a case that was measured
    base: PairBase | None = None
    tally: Tally = field(default_factory=Tally)
    summary: SuiteSummary = field(default_factory=SuiteSummary)  # decides nothing
    options: Mapping[str, str] = field(default_factory=dict)  # of the command, for those to run next
    trials: Natural = 0
    wall_s: NotNegative = 0.0
    toolchain_s: NotNegative = 0.0
    overhead_s: float = 0.0

    @property
    def uses_baselines(self) -> bool:
        return any(row.baseline and not row.pairs for row in self.comparisons)
