"""What a row of the table of metrics holds, and the complete rows with which others begin."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gate.records.bounds import Range
from gate.records.cases import Metric, Threshold
from gate.records.studies import FaultKind
from gate.records.verdict import CauseKind


class Scope(StrEnum):
    HOST = "host"  # only within one environment id
    STACK = "stack"  # wherever software stack and kind of device match: of a GPU, its capability


class Role(StrEnum):
    DECIDES = "decides"
    CONTROL = "control"  # shows the machine's share; never fails
    ADVISORY = "advisory"  # judged and shown; never fails
    EXPLAINS = "explains"  # evidence only


class Family(StrEnum):
    """How a metric varies, which decides how it is compared."""

    NOISY = "noisy"  # ratio scale, log-normal between trials
    NEARLY_EXACT = "nearly_exact"  # ratio scale, noise well below its threshold
    EXACT = "exact"  # an integer that is the same in every trial
    LOG2 = "log2"  # already a log ratio; compared by difference


class Unit(StrEnum):
    """What a value is counted in; :mod:`gate.units` formats each of them."""

    SECONDS = "s"
    BYTES = "bytes"
    COUNT = "count"
    RATIO = "ratio"
    LOG2 = "log2"
    FRACTION = "fraction"
    JOULES = "J"


class Source(StrEnum):
    """The process of a trial that measures a metric."""

    COLD = "cold"  # the first, on empty caches
    WARM = "warm"  # the second, on the caches of the first; it is believed where both report something
    DERIVED = "derived"  # none: it is computed from others


class Timing(StrEnum):
    """How a metric is timed, and so which pairs have it."""

    BLOCKS = "blocks"  # block by block in turn with the other arm: every pair carries it
    FIRST_CALL = "first call"  # of a process: a pair that compiles carries it, and it wants corroboration
    NONE = "none"  # not by the clock, or not to compare: a pair that compiles carries it


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSpec:
    metric: Metric
    column: str  # heads its column in tables of figures; "" where it has none
    title: str  # what it is, in words

    unit: Unit  # what a value is counted in
    family: Family  # how it varies
    worse: str  # what a report calls a change for the worse
    better: str
    higher_is_better: bool

    scope: Scope  # where a stored value may be compared
    same_codegen: bool  # only with the same instruction set and thread count as well
    role: Role  # what it may do to the verdict
    threshold: Threshold  # the smallest change that counts against a stored baseline
    side_by_side: Threshold  # the smallest that counts against the base in pairs on one machine
    follows: Metric | None  # without which it convicts nothing: of a ratio, what it is a ratio of
    stands_for: tuple[Metric, ...]  # times, where they are measured: without one of them it convicts nothing

    source: Source
    timing: Timing
    is_gpu_only: bool  # there is none on a CPU
    parts: tuple[Metric, ...]  # what it is computed from

    is_compile_signature: bool  # a change shows that a compile did other work
    causes: tuple[CauseKind, ...]  # are looked for only where this, or another that names them, has changed
    planted: tuple[FaultKind, ...]  # faults of selftest that are measured in it

    @property
    def is_ratio(self) -> bool:
        """Whether its changes are fractions."""
        return self.family is Family.NOISY or self.family is Family.NEARLY_EXACT

    @property
    def repeats(self) -> bool:
        return self.family in {Family.EXACT, Family.NEARLY_EXACT}

    @property
    def domain(self) -> Range:
        return _SHARE if self.unit is Unit.FRACTION else _DOMAINS[self.family]


# A log2 ratio of two errors in float64, whose exponents are from -1074 to 1023, is within these.
_MAX_LOG2 = 2100.0
# Seconds since the universe began, a million terabytes: squares and ratios of such values are numbers, too.
_MOST = 1e18
_NOT_NEGATIVE = Range(minimum=0, least=1 / _MOST, maximum=_MOST)
_SHARE = Range(minimum=0, maximum=1)  # of a whole, such as of a call's time
_DOMAINS: Mapping[Family, Range] = {
    Family.NOISY: _NOT_NEGATIVE,
    Family.NEARLY_EXACT: _NOT_NEGATIVE,
    Family.EXACT: Range(noun="a whole number", minimum=0, maximum=_MOST, whole=True),
    Family.LOG2: Range(minimum=-_MAX_LOG2, maximum=_MAX_LOG2),
}


OF_A_RATE = (
    CauseKind.UNCHANGED_CODE, CauseKind.TUNING, CauseKind.GUARDS, CauseKind.EAGER, CauseKind.KERNELS
)  # fmt: skip
OF_A_COMPILE = (CauseKind.COMPILE_PHASE, CauseKind.GUARDS)

# A pair cancels the session of the machine, so warm times have a smaller threshold than with a stored
# baseline: what a change of 5 % must exceed by two standard errors to be caught in 16 pairs. The latency
# floor of 20 us is a few times the cost of one Python call. docs/decision.md has more on each threshold.
COMPILED = MetricSpec(
    metric=Metric.COMPILED_LATENCY,
    column="compiled",
    title="one warm compiled call",
    unit=Unit.SECONDS,
    family=Family.NOISY,
    worse="slower",
    better="faster",
    higher_is_better=False,
    scope=Scope.HOST,
    same_codegen=False,
    role=Role.DECIDES,
    threshold=Threshold(relative=0.05, absolute=20e-6),
    side_by_side=Threshold(relative=0.03, absolute=20e-6),
    follows=None,
    stands_for=(),
    source=Source.COLD,
    timing=Timing.BLOCKS,
    is_gpu_only=False,
    parts=(),
    is_compile_signature=False,
    causes=OF_A_RATE,
    planted=(FaultKind.SLOWDOWN,),
)


def limit(spec: MetricSpec, relative: float, absolute: float = 0.0) -> MetricSpec:
    threshold = Threshold(relative=relative, absolute=absolute)
    return replace(spec, threshold=threshold, side_by_side=threshold)


# Kinds of metric: each is what the rows that begin with it have in common.
RATE = replace(COMPILED, column="", title="", planted=())  # timed block by block
TIME = replace(RATE, timing=Timing.NONE, causes=())
ADVISORY = replace(TIME, role=Role.ADVISORY)
MEMORY = replace(
    TIME,
    unit=Unit.BYTES,
    family=Family.NEARLY_EXACT,
    worse="larger",
    better="smaller",
    scope=Scope.STACK,
    source=Source.WARM,
)
DRIFT = limit(
    replace(MEMORY, unit=Unit.LOG2, family=Family.LOG2, worse="less exact", better="more exact"), 0.0, 0.58
)
COUNTER = limit(  # any change counts
    replace(TIME, unit=Unit.COUNT, family=Family.EXACT, worse="more", better="fewer", scope=Scope.STACK), 0.0
)
EVIDENCE = replace(COUNTER, role=Role.EXPLAINS)
SIGNATURE = replace(COUNTER, is_compile_signature=True)
SIGNATURE_EVIDENCE = replace(SIGNATURE, role=Role.EXPLAINS)
ON_GPU = replace(COUNTER, is_gpu_only=True)
ON_TARGET = replace(ON_GPU, same_codegen=True)  # of which only the code is known
BYTES_ON_TARGET = replace(ON_TARGET, unit=Unit.BYTES, worse="larger", better="smaller")
# Single calls and requests are few and stray far. Calls hold the waiting for the device that blocks share:
# they show spread, and decide nothing; a limit of gate.yml lets requests decide.
SINGLE = limit(ADVISORY, 0.10, 50e-6)
