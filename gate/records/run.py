"""What was measured: trials, failures, the machine around them, and the baselines made of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gate.records.bounds import Natural, NotNegative, Range, Time
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import Disturbance, Fact, FailureFact, LaneFact, UnknownFact, name_words

# More machines than anybody has, and few enough to count up to.
MOST_SHARDS = 999
# Which of the ways in which drift was measured so far: values of another are not compared. 1 was of one call.
DRIFT_DEFINITION = 2
GRADIENTS = "gradients"  # of a workload: the inputs whose gradients inference takes
NESTED_BREAKS = "nested_graph_breaks"  # of a workload, "on" or "off": Dynamo's setting, off where unknown
# The names of arms. Trials of the candidate are judged; the base's are for the side-by-side comparison.
BASE_ARM = "base"
CANDIDATE_ARM = "head"
PARTLY_FORKED = "partly forked"  # trials of one case: like neither kind
# Normal under heavy matrix products: the same in every trial of a case.
EXPECTED_THROTTLING = frozenset({"software power cap"})


class Pairing(StrEnum):
    """How a trial ran beside a trial of the other arm with the same case and index."""

    ALONE = "alone"  # no other arm
    LIVE = "live"  # both alive, blocks alternating: sample i of both latencies belongs to one pair
    TURNS = "turns"  # one whole process after the other


class Extent(StrEnum):
    """How much a trial that ran alone has measured of its case: a further one may do with less."""

    WHOLE = "whole"  # all there is: by two processes, the first of them on empty caches
    COLD = "cold"  # what the first of them knows


class FailureKind(StrEnum):
    ERROR = "error"  # an exception in the factory, the model or the compiler
    CRASH = "crash"  # the worker died on a signal or exited without a result
    KILLED = "killed"  # SIGKILL that the gate did not send: most often out of memory
    HANG = "hang"  # over the time limit, without using the processor
    TIMEOUT = "timeout"  # over the time limit, at work
    NOT_FINITE = "not_finite"  # NaN or infinity in an output, gradient or measurement


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
    models: str = ""  # its own reference models; empty: the gate's, which come with it
    variables: Mapping[str, str] = field(default_factory=dict)  # its workers' besides the usual ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """Fingerprint of a host and its software stack; ``""`` where something does not exist."""

    device_kind: str  # a name of :mod:`gate.devices`
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
    workers: str = ""  # "forked": from a server that has imported what they need; of trials PARTLY_FORKED
    libraries: Mapping[str, str] = field(default_factory=dict)  # name -> version
    settings: Mapping[str, str] = field(default_factory=dict)  # float32_matmul_precision, ...
    device_traits: Mapping[str, str] = field(default_factory=dict)  # of a GPU: its capability, memory, ...
    packages: Mapping[str, str] = field(default_factory=dict)  # others that are installed; not of the id


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Where a run or a baseline comes from."""

    commit: str = ""
    dirty: bool = False
    created: Time = ""
    author: str = ""
    reason: str = ""
    run_url: str = ""
    repository: str = ""  # "owner/name" on GitHub
    branch: str = ""
    gate_version: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One line of a stack of the measured code."""

    location: str  # "file.py:12"
    function: str
    code: str = ""  # the line itself, where its file could be read


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphBreak:
    """One graph break: the reason that Dynamo gives and the user's line that caused it."""

    reason: str
    location: str  # "file.py:12", or "" where Dynamo names none
    stack: tuple[Frame, ...] = ()  # the measured code's own, outermost first; a stored baseline keeps none
    innermost: Frame | None = None  # where tracing stopped, in torch's code too
    registry: str = ""  # "GB0059": its number among torch's kinds of breaks


@dataclass(frozen=True, kw_only=True, slots=True)
class Recompile:
    """One recompile: the guard that failed, and the line of the measured code that made it.

    A guard of which torch names no line is of the function that was compiled again.
    """

    guard: str
    code: str = ""  # the line itself
    location: str = ""  # "file.py:12"
    function: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheUse:
    """How often something was found in one cache of the compiler, or not, or could not be cached."""

    hits: Natural = 0
    misses: Natural = 0
    bypasses: Natural = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeIdentity:
    """Hash of all generated code of a case, and of each kernel by name."""

    digest: str  # "" where it cannot be known
    kernels: Mapping[str, str] = field(default_factory=dict)
    tuned: str = ""  # hash of the configurations that were chosen by timing them; "" where none were
    calls: Mapping[str, Natural] = field(default_factory=dict)  # of libraries and of ATen, in its graphs
    dtypes: Mapping[str, Natural] = field(default_factory=dict)  # floating-point types that it mentions


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """What is known of a compiled program: by one process, by a trial, or by all trials of a baseline.

    Of several trials times are medians, and what they do not agree on is unknown.
    """

    identity: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))
    workload: Mapping[str, str] = field(default_factory=dict)  # parameters, outputs, reference checksum
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompile_reasons: tuple[Recompile, ...] = ()
    caches: Mapping[str, CacheUse] = field(default_factory=dict)  # of the warm process, by cache
    phases_s: Mapping[str, float] = field(default_factory=dict)  # compile phases by Dynamo's own clocks
    kernels_s: Mapping[str, float] = field(default_factory=dict)  # of a GPU, in a call, longest first
    parts_s: Mapping[str, float] = field(default_factory=dict)  # what only its kind has, as each shape's call
    drift_definition: Natural = 1  # as DRIFT_DEFINITION was
    options: Mapping[str, str] = field(default_factory=dict)  # torch.compile's, set by code: JSON by name


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """The machine around one trial."""

    canaries_s: Mapping[str, NotNegative] = field(default_factory=dict)  # fixed micro-workloads: medians
    throttled: tuple[str, ...] = ()  # reasons the device gave for lowering its clocks
    foreign_processes: int = 0  # other processes seen on the device
    foreign_memory: float = 0.0  # share of its memory that was in use before or after all workers; 0: unknown
    foreign_cores: float = 0.0  # cores that other programs kept busy meanwhile, of those a worker may use
    crowd: tuple[str, ...] = ()  # which those were, the busiest first: "chromium (pid 123, 95 %)"
    stolen: float = 0.0  # share of these cores' time that the hypervisor kept
    held_back: float = 0.0  # share of the time for which the container's processor quota stopped it
    heat_events: int = 0  # times that a core lowered its clock for heat
    swapped_bytes: int = 0  # on the whole host
    free_bytes: int = 0  # memory, the least seen; 0 when unknown
    disturbances: tuple[Disturbance, ...] = ()  # what made the host unfit meanwhile
    repeated: bool = False  # the second attempt, after a disturbed one


@dataclass(frozen=True, kw_only=True, slots=True)
class Worst:
    """The output or gradient that a drift is mostly of."""

    output: str  # "output[0].logits", "the gradient of layer.weight"; "" where nothing has drifted
    steps: NotNegative = 0.0  # compiled's relative error, in rounding steps of its type; 0 where unknown
    beyond: float | None = None  # log2 of its error over what rounding may cost; None where not computed


@dataclass(frozen=True, kw_only=True, slots=True)
class Called:
    """A function in a compile: how often it is called, and how many Python calls are made within it."""

    calls: Natural
    within: Natural


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured(Compiled):
    """What one process measured, or both of a trial. ``samples`` holds raw values in SI units.

    A latency is the mean of one timed block's calls. Paired latencies are stored in schedule order: block
    ``i`` of eager and of compiled belong to one pair.
    """

    samples: Mapping[Metric, tuple[float, ...]] = field(default_factory=dict)
    # A live pair's latencies once more, of the calls during which no thread of the process waited for a
    # processor: 0.0 for a block without any. Empty where not watched.
    undisturbed_s: Mapping[Metric, tuple[float, ...]] = field(default_factory=dict)
    worst: Mapping[Metric, Worst] = field(default_factory=dict)  # of drifts
    unknown: tuple[UnknownFact, ...] = ()  # evidence that is missing
    stages_s: Mapping[str, float] = field(default_factory=dict)  # where the wall time went
    conditions: Conditions = field(default_factory=Conditions)
    warnings: tuple[Fact, ...] = ()  # what it could not do as it was asked, or not as usual
    # The project's files that it imported and that differ from the base's; None where not compared.
    changed_imports: tuple[str, ...] | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # of ``Environment.packages``, what it imported
    functions: Mapping[str, Called] = field(default_factory=dict)  # of a compile, in a pair: what differs


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What a trial ran on. Two cards of one model differ in speed, and so do two sets of cores."""

    host: str
    device: str  # the card's UUID; "" for the host's processors
    cores: str  # that workers were held to, as the kernel lists them: "0-3,8"; "" where it does not list them

    @property
    def name(self) -> str:
        """The same whenever somebody measures there."""
        return self.device or f"{self.host}:{self.cores}"

    @property
    def title(self) -> str:
        return f"{self.device} on {self.host}" if self.device else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial(Measured):
    """One measurement of one case in one arm, in fresh processes with private caches."""

    case_id: str
    index: Natural
    arm: str = "head"
    pairing: Pairing = Pairing.ALONE
    extent: Extent = Extent.WHOLE  # of a trial that ran alone
    started: Time = ""
    place: str = ""  # a key of ``Run.places``; "" where nobody wrote it down
    trace: str = ""  # torch's own, which `tlparse` reads: a path below the run's directory
    overhead_s: float = 0.0  # wall time of the trial that no stage accounts for: the tool's own


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFailure:
    """A case that could not be measured in one trial; the others go on."""

    case_id: str
    trial: Natural
    kind: FailureKind
    stage: str
    fact: FailureFact  # how
    log_tail: str = ""
    arm: str = "head"
    log: str = ""  # the whole log's path, from where the run was started if it lies below

    def quote(self, code: Code) -> Fact:
        """As a fact of another code."""
        names = name_words(arm=self.arm, stage=self.stage, kind=self.kind.value, why=self.fact.code.value)
        return Fact(
            code=code,
            numbers={"trial": self.trial, **self.fact.numbers},
            cases=self.fact.cases,
            names={**names, **self.fact.names},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseArm:
    """The other side of a side-by-side run: what head is compared with on the same machine."""

    label: str  # "main (1a2b3c4)", "torch 2.11.0": for a reader
    environment: Environment
    provenance: Provenance
    cases: tuple[Case, ...]  # as the base defines them; it may lack some of the run's
    changes: str = ""  # hash of what is in no commit of a directory; empty where unknown, as in ``Run``
    head_commit: str = ""  # that was checked out to be compared with it; empty for a directory as it lies
    # Changed files that a case may read without importing them; None where unknown.
    other_changes: tuple[str, ...] | None = None
    pythons: tuple[str, ...] = ()  # its interpreter and head's, where either was named
    # Options of torch.compile whose default differs: its own and head's, as JSON; "" where there is none.
    defaults: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A pair in which options of torch.compile were set back on head to what the base's release has."""

    case_id: str
    metric: Metric
    change: float  # without that, as a fraction, + is worse
    options: tuple[str, ...] = ()  # keys of ``BaseArm.defaults``
    left: float = 0.0  # of the change, in this pair


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """Which part of a divided plan a run is: ``number`` counts from 1. All parts hold ``cases`` together."""

    number: Annotated[int, Range(noun="a whole number", minimum=1, maximum=MOST_SHARDS)]
    of: Annotated[int, Range(noun="a whole number", minimum=1, maximum=MOST_SHARDS)]
    cases: Natural

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What came back from measuring a plan. ``cases`` is the plan: it, not ``trials``, is the index.

    Trials of arm ``head`` with pairing ``alone`` are compared with stored baselines; the others belong
    to pairs: one trial of arm ``base`` and one of arm ``head`` with the same case and index.
    """

    cases: tuple[Case, ...]
    environment: Environment
    provenance: Provenance
    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    retried: tuple[CaseFailure, ...] = ()  # before the run was continued: these cases were tried again
    changes: str = ""  # hash of what is not committed, so that it can be resumed; empty where unknown
    selection: str = ""  # of the whole plan, where the run is a shard of it
    shard: Shard | None = None  # of a plan that the gate itself divided
    trials_planned: Natural = 1  # at least this many a case
    toolchain_s: NotNegative = 0.0  # ISA probe and precompiled headers, paid once, charged to no case
    wall_s: NotNegative = 0.0
    finished: bool = False
    base: BaseArm | None = None  # of a side-by-side run
    sampling: Mapping[str, float] = field(default_factory=dict)  # how much each trial samples, by key
    counts_only: bool = False  # nothing that depends on the host was kept of its trials
    # Normalised source of kernels by their hash in an identity: of those that differ between sides.
    sources: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)  # by their names
    probes: tuple[Probe, ...] = ()  # for the default that made something worse
    # What became of those that were left out or lost, and what is odd of others.
    lanes: tuple[LaneFact, ...] = ()

    @property
    def base_cases(self) -> Mapping[str, Case]:
        return {case.id: case for case in self.base.cases} if self.base else {}

    @property
    def pairable(self) -> frozenset[str]:
        """The cases that its base defines alike."""
        bases = {name: case.definition for name, case in self.base_cases.items()}
        return frozenset(case.id for case in self.cases if bases.get(case.id) == case.definition)

    @property
    def pair_counts(self) -> Counter[str]:
        paired = (trial for trial in self.trials if trial.pairing is not Pairing.ALONE)
        return Counter(trial.case_id for trial in paired if trial.arm == BASE_ARM)


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline(Compiled):
    """What is stored for one case in one environment: one value per metric and trial."""

    case_id: str
    definition: str
    environment: Environment
    provenance: Provenance
    trials: Mapping[Metric, tuple[float, ...]]
    canaries_s: Mapping[str, tuple[NotNegative, ...]] = field(default_factory=dict)  # as ``trials``
    disturbed: int = 0  # of these trials: recorded all the same, for want of others
    packages: Mapping[str, str] = field(default_factory=dict)  # as of ``Measured``; its environment has none
    functions: Mapping[str, Called] = field(default_factory=dict)  # of a base in pairs; none are stored


@dataclass(frozen=True, kw_only=True, slots=True)
class Setback:
    """A deciding metric that a refresh would move the wrong way, beyond its threshold."""

    case_id: str
    metric: Metric
    old: float
    new: float | None  # None: no longer measured
