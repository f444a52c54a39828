"""Every record and enumeration of the domain; read this file first.

All records are frozen, keyword-only and torch-free. Sequences are tuples. Times are in seconds,
memory in bytes, ratios and changes are bare fractions (0.05 is 5 %), and a *change* is positive
when the candidate is worse. Records are parsed at the border (:mod:`gate.codec`) and trusted after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gate.limits import Moment, Range

Natural = Annotated[int, Range(noun="a whole number", minimum=0)]
NotNegative = Annotated[float, Range(minimum=0)]
Time = Annotated[str, Moment()]  # ISO 8601, UTC


class Task(StrEnum):
    """What one call of the workload does."""

    INFERENCE = "inference"
    TRAINING = "training"


class DType(StrEnum):
    """Floating-point type of parameters and floating-point inputs."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Mode(StrEnum):
    """The ``mode`` argument of ``torch.compile``."""

    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


class Metric(StrEnum):
    """What is measured; units, scope and role of each are in :mod:`gate.metrics`."""

    WARM_SPEEDUP = "warm_speedup"
    COMPILED_LATENCY = "compiled_latency"
    EAGER_LATENCY = "eager_latency"
    COLD_COMPILE_TIME = "cold_compile_time"
    WARM_COMPILE_TIME = "warm_compile_time"
    PEAK_MEMORY = "peak_memory"
    MEMORY_RATIO = "memory_ratio"
    COMPILE_PEAK_MEMORY = "compile_peak_memory"
    DRIFT = "drift"
    DRIFT_FLOAT32 = "drift_float32"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    UNIQUE_GRAPHS = "unique_graphs"
    EAGER_FALLBACKS = "eager_fallbacks"
    CUDAGRAPH_SKIPS = "cudagraph_skips"
    CUDAGRAPH_PARTITIONS = "cudagraph_partitions"
    LAUNCHES = "launches"
    CUDAGRAPH_LAUNCHES = "cudagraph_launches"
    CACHE_MISSES = "cache_misses"
    COMPILE_CALLS = "compile_calls"
    CAPTURED_OPS = "captured_ops"
    GENERATED_KERNELS = "generated_kernels"
    GUARDS = "guards"
    BREAK_EVEN_CALLS = "break_even_calls"
    DEVICE_UTILIZATION = "device_utilization"


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


class Reason(StrEnum):
    """Stable codes that say why a comparison has its status."""

    EXACT_EQUAL = "exact_equal"  # UNCHANGED: a counter has the same value
    EXACT_CHANGED = "exact_changed"  # REGRESSED or IMPROVED: a counter moved
    COUNTER_UNSTABLE = "counter_unstable"  # INCONCLUSIVE: a counter differs between trials of one arm
    WITHIN_NOISE = "within_noise"  # UNCHANGED: no sign of a change, and a relevant one would have shown
    BELOW_THRESHOLD = "below_threshold"  # UNCHANGED: a change, significant but too small to matter
    BEYOND_BAR = "beyond_bar"  # REGRESSED or IMPROVED: significant and relevant
    LIMIT_EXCEEDED = "limit_exceeded"  # REGRESSED: beyond an absolute limit that needs no baseline
    SUSPECT = "suspect"  # INCONCLUSIVE: looks changed, not settled within the budget
    NOISE_TOO_HIGH = "noise_too_high"  # INCONCLUSIVE: even a large change could not have been seen
    MACHINE_SHIFT = "machine_shift"  # INCONCLUSIVE: the whole machine got slower or faster
    SHARED_SHIFT = "shared_shift"  # INCONCLUSIVE: eager moved as much as compiled
    UNCORROBORATED = "uncorroborated"  # INCONCLUSIVE: compile time moved, its noise-free proxies did not
    EAGER_FASTER = "eager_faster"  # UNCHANGED: the speedup fell only because eager got faster
    DISTURBED = "disturbed"  # INCONCLUSIVE: looks worse, only in trials on a host that was not fit
    FEW_TRIALS = "few_trials"  # INCONCLUSIVE: too few trials to know the noise
    NO_BASELINE = "no_baseline"  # NEW: nothing is stored for this case
    OTHER_ENVIRONMENT = "other_environment"  # NOT_COMPARABLE: host metric, recorded on another host
    OTHER_STACK = "other_stack"  # NOT_COMPARABLE: recorded with other software, or on another kind of GPU
    STALE_DEFINITION = "stale_definition"  # NOT_COMPARABLE: the case's definition has changed since
    NOT_RECORDED = "not_recorded"  # NOT_COMPARABLE: the baseline lacks this metric
    NOT_MEASURED = "not_measured"  # MISSING: the candidate lacks a metric that the baseline has
    NOT_RUN = "not_run"  # MISSING: planned, no trial came back
    TRIALS_MISSING = "trials_missing"  # MISSING: fewer trials than planned came back, and none failed
    CASE_FAILED = "case_failed"  # FAILED: see the failure's stage and message
    ACCEPTED = "accepted"  # ACCEPTED: worse, within an acceptance in force
    CONFIRMED = "confirmed"  # REGRESSED or IMPROVED: significant and relevant side by side with the base
    ACQUITTED = "acquitted"  # UNCHANGED: side by side, a relevant change is excluded
    UNSETTLED = "unsettled"  # INCONCLUSIVE: side by side, the pairs of the budget did not settle it
    UNPAIRED = (
        "unpaired"  # INCONCLUSIVE: looks worse than what is stored, and no pair with the base came back
    )
    BASE_FAILED = "base_failed"  # NOT_COMPARABLE: the base could not be measured


# A comparison with one of these is about the whole case, whatever metric it stands under.
OF_WHOLE_CASE = frozenset({Reason.CASE_FAILED, Reason.NOT_RUN, Reason.TRIALS_MISSING})


class Outcome(StrEnum):
    """Outcome of a whole verdict, strongest first; see ``Verdict.outcome``."""

    INCOMPLETE = "INCOMPLETE"
    REGRESSION = "REGRESSION"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOTHING_COMPARED = "NOTHING_COMPARED"
    PASS = "PASS"


class Pairing(StrEnum):
    """How a trial ran beside a trial of the other arm with the same case and index."""

    ALONE = "alone"  # no other arm
    LIVE = "live"  # both alive, blocks alternating: sample i of both latencies belongs to one pair
    TURNS = "turns"  # one whole process after the other


class FailureKind(StrEnum):
    """How a case failed."""

    ERROR = "error"  # an exception in the factory, the model or the compiler
    CRASH = "crash"  # the worker died on a signal or exited without a result
    KILLED = "killed"  # SIGKILL that the gate did not send: most often out of memory
    HANG = "hang"  # over the time limit
    NOT_FINITE = "not_finite"  # NaN or infinity in an output, gradient or measurement


DEFAULT_BACKEND = "inductor"  # torch.compile's


class Cause(StrEnum):
    """What an explanation is about."""

    GRAPH_BREAK = "graph_break"
    RECOMPILE = "recompile"
    SAME_CODE = "same_code"  # the same code was generated
    TUNING = "tuning"  # the same code was generated, and tuned to other configurations
    CHANGED_CODE = "changed_code"
    WORKLOAD = "workload"  # the measured model itself
    EAGER = "eager"
    COMPILE_PHASE = "compile_phase"
    CACHE = "cache"
    MACHINE = "machine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One model x task x dtype x size x mode, the unit that is measured and judged.

    Exactly one of ``factory`` (``package.module:function``) and ``node`` (a pytest node id of a
    user's own ``compile_benchmark`` test) is non-empty.
    """

    id: str  # "bert/inference-float32-smoke-default": model, slash, the rest
    model: str
    factory: str = ""
    node: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    task: Task = Task.INFERENCE
    dtype: DType = DType.FLOAT32
    size: str = "smoke"
    mode: Mode = Mode.DEFAULT
    dynamic: bool | None = None
    fullgraph: bool = False
    backend: str = DEFAULT_BACKEND
    options: Mapping[str, object] = field(default_factory=dict)  # of torch.compile
    tags: tuple[str, ...] = ()
    expected_s: NotNegative = 30.0  # one trial on the reference machine; only used to estimate time left
    definition: str = ""  # hash of all that defines the workload; a changed definition is stale


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """What is under test: an interpreter and the directory that its measured code is imported from.

    Where ``checkout`` is another checkout than the one the tool was called in, ``origin``, places of
    ``origin`` on the interpreter's search path mean those of ``checkout``.
    """

    name: str
    python: str
    directory: str
    checkout: str = ""
    origin: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)  # its workers' besides the usual ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """Fingerprint of a host and its software stack; ``""`` where something does not exist."""

    device_kind: str  # "cpu" or "cuda"
    device_model: str  # GPU name, or the CPU model again
    device_uuid: str
    driver: str
    clocks: str  # clock and power policy, e.g. "locked 1410 MHz, 700 W"
    cpu: str
    cores: Natural
    threads: Natural  # intra-op threads of a worker
    isa: str  # what Inductor vectorizes for: "avx2", "avx512"
    torch: str
    triton: str
    cuda: str
    python: str  # "3.11"
    compiler: str  # "g++ 12.2.0"
    allocator: str = ""  # "held": freed memory stays in the process while calls are timed
    workers: str = ""  # "forked": from a server that has imported what they need
    libraries: Mapping[str, str] = field(default_factory=dict)  # name -> version
    settings: Mapping[str, str] = field(default_factory=dict)  # float32_matmul_precision, ...
    device_traits: Mapping[str, str] = field(default_factory=dict)  # of a GPU: its capability, memory, ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Where a run or a baseline comes from."""

    commit: str = ""
    dirty: bool = False
    created: Time = ""
    author: str = ""
    reason: str = ""
    run_url: str = ""
    gate_version: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphBreak:
    """One graph break: the reason that Dynamo gives and the user's line that caused it."""

    reason: str
    location: str  # "file.py:12", or "" where Dynamo does not say


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeIdentity:
    """Hash of all generated code of a case, and of each kernel by name."""

    digest: str  # "" where it cannot be known
    kernels: Mapping[str, str] = field(default_factory=dict)
    tuned: str = ""  # hash of the configurations that were chosen by timing them; "" where none were


# Normal under heavy matrix products: the same in every trial of a case.
EXPECTED_THROTTLING = frozenset({"software power cap"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """The machine around one trial."""

    load_before: float = 0.0  # 1-minute load average
    load_after: float = 0.0
    canaries_s: Mapping[str, NotNegative] = field(default_factory=dict)  # fixed micro-workloads: medians
    throttled: tuple[str, ...] = ()  # reasons the device gave for lowering its clocks
    foreign_processes: int = 0  # other processes seen on the device
    clock_mhz: float = 0.0
    temperature_c: float = 0.0
    foreign_cores: float = 0.0  # cores that other programs kept busy meanwhile, of those a worker may use
    stolen: float = 0.0  # share of these cores' time that the hypervisor kept
    held_back: float = 0.0  # share of the time for which the container's processor quota stopped it
    heat_events: int = 0  # times that a core lowered its clock for heat
    swapped_bytes: int = 0  # on the whole host
    free_bytes: int = 0  # memory, the least seen; 0 when unknown
    disturbances: tuple[str, ...] = ()  # what made the host unfit meanwhile, a phrase each
    repeated: bool = False  # the second attempt, after a disturbed one


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One measurement of one case in one arm, in fresh processes with private caches.

    ``samples`` holds raw values in SI units, one sample a call. Paired latencies are stored in
    schedule order: block ``i`` of eager and block ``i`` of compiled belong to one pair.
    """

    case_id: str
    index: Natural
    arm: str = "head"
    pairing: Pairing = Pairing.ALONE
    started: Time = ""
    samples: Mapping[Metric, tuple[float, ...]] = field(default_factory=dict)
    identity: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))
    workload: Mapping[str, str] = field(default_factory=dict)  # parameters, outputs, reference checksum
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompile_reasons: tuple[str, ...] = ()
    phases_s: Mapping[str, float] = field(default_factory=dict)  # compile phases by Dynamo's own clocks
    stages_s: Mapping[str, float] = field(default_factory=dict)  # where the trial's wall time went
    overhead_s: float = 0.0  # wall time of the trial that no stage accounts for: the tool's own
    conditions: Conditions = field(default_factory=Conditions)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFailure:
    """A case that could not be measured in one trial; the others go on."""

    case_id: str
    trial: Natural
    kind: FailureKind
    stage: str
    message: str
    log_tail: str = ""
    arm: str = "head"
    log: str = ""  # the whole log's path, from where the run was started if it lies below


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseArm:
    """The other side of a side-by-side run: what head is held against on the same machine."""

    label: str  # "main (1a2b3c4)", "torch 2.11.0": for a reader
    environment: Environment
    provenance: Provenance
    cases: tuple[Case, ...]  # as the base defines them; it may lack some of the run's
    head_commit: str = ""  # that was checked out to be held against it; empty for a directory as it lies


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What came back from measuring a plan. ``cases`` is the plan: it, not ``trials``, is the index.

    Trials of arm ``head`` with pairing ``alone`` are held against stored baselines; the others belong
    to pairs: one trial of arm ``base`` and one of arm ``head`` with the same case and index.
    """

    cases: tuple[Case, ...]
    environment: Environment
    provenance: Provenance
    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    selection: str = ""
    trials_planned: Natural = 1  # at least this many a case
    toolchain_s: NotNegative = 0.0  # ISA probe and precompiled headers, paid once, charged to no case
    wall_s: NotNegative = 0.0
    finished: bool = False
    base: BaseArm | None = None  # of a side-by-side run
    sampling: Mapping[str, float] = field(default_factory=dict)  # how much each trial samples, by key


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What is stored for one case in one environment: one value per metric and trial."""

    case_id: str
    definition: str
    environment: Environment
    provenance: Provenance
    trials: Mapping[Metric, tuple[float, ...]]
    identity: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))
    workload: Mapping[str, str] = field(default_factory=dict)
    graph_breaks: tuple[GraphBreak, ...] = ()
    canaries_s: Mapping[str, tuple[NotNegative, ...]] = field(default_factory=dict)  # as ``trials``
    phases_s: Mapping[str, float] = field(default_factory=dict)  # median over trials; older files have none


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """A known change that somebody took responsibility for, until a date."""

    case: str  # case id or glob
    metric: Metric
    allowance: float  # fraction (log2 units for drift, count for counters)
    reason: str
    author: str
    expires: str  # ISO date; the day itself still counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """Somebody takes it that there was no baseline to compare with, until a date."""

    reason: str
    author: str
    expires: str  # ISO date; the day itself still counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """What somebody who may write took responsibility for, for one commit and no other."""

    commit: str
    accepted: tuple[Acceptance, ...] = ()
    first_baselines: Waiver | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """A case, or one metric of it, that is measured and shown and does not decide, until a date."""

    case: str  # case id or glob
    metric: Metric | None  # None: the whole case, its failures included
    owner: str
    reason: str
    expires: str  # ISO date; the day itself still counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """The smallest change that is worth a human: both parts must be exceeded."""

    relative: NotNegative  # fraction of the baseline
    absolute: NotNegative  # in the metric's unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """Other parts of a threshold for some cases and one metric, with the reason they exist."""

    case: str  # case id or glob
    metric: Metric
    reason: str
    relative: float | None = None  # None: as for the other cases
    absolute: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Everything that decides besides the data."""

    thresholds: Mapping[Metric, Threshold]
    overrides: tuple[Override, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    waiver: Waiver | None = None
    quarantine: tuple[Quarantine, ...] = ()
    today: str = ""  # ISO date: the decision has no clock of its own
    error_budget: float = 0.01  # false alarms a verdict, over all cases and metrics
    looks: int = 1  # how often this run's data were judged: the budget is divided by it
    has_anchor: bool = False  # whether there is a release anchor that head can be held against


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A metric's value in one arm, in the metric's unit.

    Interval and noise are None where nothing is known of them: one trial alone tells neither.
    """

    centre: float
    low: float | None
    high: float | None
    noise: NotNegative | None  # standard deviation between trials, of log values on a ratio scale
    n: Natural  # trials


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Candidate against baseline; + is worse. Fractions, or units for counters and drift.

    Drift that no baseline applies to is held against its limit.
    """

    centre: float
    low: float
    high: float
    detectable: float  # smallest change that would have been noticed with 95 % probability


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One case and metric, judged. ``decides`` is false for controls, advisories and explanations."""

    case_id: str
    metric: Metric
    status: Status
    reason: Reason
    sentence: str
    decides: bool
    baseline: Estimate | None = None
    candidate: Estimate | None = None
    change: Change | None = None
    threshold: Threshold | None = None
    pairs: Natural = 0  # side-by-side pairs that decided; 0: a stored baseline did
    more_pairs: Natural | None = None  # that would settle it, if it stays so; 0: none likely, None: not known
    quarantined: bool = False  # it would decide, but for a quarantine in force


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """One piece of evidence for why a case changed."""

    case_id: str
    kind: str  # one of Cause; another compile-gate may have more
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineShift:
    """How the machine as a whole differs from when the baselines were recorded."""

    canary: float = 0.0  # signed fraction, + is slower; 0 when unknown
    suite: float = 0.0  # median change of eager latency over the cases
    known: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PairBase:
    """What the pairs of a verdict were held against, as far as it can be named again."""

    label: str = ""  # as in ``BaseArm``: for a reader
    commit: str = ""  # empty where no commit tells all of it: a directory, uncommitted changes
    head_commit: str = ""  # empty where head was the working tree
    other_stack: bool = False  # measured with another interpreter than head


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The judgement of a run, with all that a report needs."""

    outcome: Outcome
    headline: str
    cases: tuple[Case, ...]
    comparisons: tuple[Comparison, ...]
    failures: tuple[CaseFailure, ...]
    explanations: tuple[Explanation, ...]
    next_steps: tuple[str, ...]
    notes: tuple[str, ...]  # what a reader must know: unjudged metrics, expired acceptances
    machine: MachineShift
    environment: Environment
    provenance: Provenance
    baseline_provenance: tuple[Provenance, ...] = ()
    baseline_environments: tuple[str, ...] = ()
    base: PairBase | None = None
    tally: Tally = field(default_factory=Tally)
    config: str = ""  # as --config named it, for the commands to run next; empty for the default
    trials: Natural = 0
    wall_s: NotNegative = 0.0
    toolchain_s: NotNegative = 0.0
    overhead_s: float = 0.0
