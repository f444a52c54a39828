"""What there is to report, without the words: a code with its numbers, cases, metrics and names.

The code fixes what else a fact holds, with :data:`MORE_NUMBERS`. No code reads the words of a fact back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gate.records.cases import Metric
from gate.records.codes import Code


class Disturbance(StrEnum):
    """What made the host unfit while something was measured; the measured code can cause none of them."""

    CROWDED = "crowded"  # other programs wanted the worker's cores
    STOLEN = "stolen"  # the hypervisor kept CPU time
    HELD_BACK = "held_back"  # by the container's quota
    HEATED = "heated"  # cores lowered their clocks
    SWAPPED = "swapped"
    SHORT_OF_MEMORY = "short_of_memory"
    THROTTLED = "throttled"  # the device lowered its clocks
    SHARED = "shared"  # other processes used the device
    HELD_MEMORY = "held_memory"  # of the device, by others


def _list_codes(first: Code, last: Code) -> frozenset[Code]:
    ordered = list(Code)
    return frozenset(ordered[ordered.index(first) : ordered.index(last) + 1])


HEADLINE_CODES = _list_codes(Code.STOPPED, Code.AGAINST_BASE)
# Compiled gives another answer than eager: no drift, however large.
MISMATCH_CODES = frozenset({Code.OUTPUT_FAR, Code.OUTPUT_LOST, Code.OUTPUT_RESHAPED, Code.OUTPUT_DIFFERS})
# Why a trial has no drift; of other metrics it is UNMEASURED.
WHY_NO_DRIFT = _list_codes(Code.NO_FLOAT64, Code.REFERENCE_NOT_FINITE)
WHY_UNMEASURED = WHY_NO_DRIFT | {Code.UNMEASURED}
REMARK_CODES = _list_codes(Code.MACHINE_SPEED, Code.NO_PAIR) | MISMATCH_CODES | WHY_UNMEASURED
UNFORKED_CODES = _list_codes(Code.ENDS_UNANNOUNCED, Code.IMPORT_STARTS_THREADS)
LATE_SERVER_CODES = frozenset({Code.SERVER_SILENT, Code.SERVER_GONE})  # by the day
# What a trial reports of itself, and what may explain its change.
UNLIKE_CODES = frozenset({Code.LAYOUT_DIFFERS, Code.LEFT_BY_ONE})  # all numbers may be right
OF_TRIALS = frozenset(
    {Code.GRAPH_DIFFERS, Code.LEFT_TO_EAGER, Code.MEMORY_KEPT, *MISMATCH_CODES, *UNLIKE_CODES}
)
CAUSE_CODES = _list_codes(Code.GRAPH_BREAK, Code.UNEXPLAINED) | OF_TRIALS
WARNING_CODES = _list_codes(Code.VARIABLES_DROPPED, Code.OUTPUT_DIFFERS)
LANE_CODES = _list_codes(Code.LANE_LEFT_OUT, Code.LANES_NICE)
NOTE_CODES = _list_codes(Code.NO_BASELINE, Code.REPLAY_MIXES) | {
    *LANE_CODES,
    *(Code.STOPPED, Code.MACHINE_CHANGED),
    *WARNING_CODES,
}
UNKNOWN_CODES = _list_codes(Code.NO_TRACE, Code.TRACE_CUT) | {Code.UNKNOWN_HERE}
STEP_CODES = _list_codes(Code.CONTINUE, Code.READ_BASE_LOGS)
FAILURE_CODES = _list_codes(Code.RAISED, Code.PACKAGES_LACKING)

# Compile phases by Dynamo's own clocks, each with the seconds before and after.
PHASES = (
    "dynamo", "aot_autograd", "backward", "inductor", "code_generation", "triton", "autotune_at_launch",
    "cudagraph_capture", "garbage_collection",
)  # fmt: skip
OTHER_PHASE = "other"  # of the first call: what no phase accounts for
FIRST_CALL = "first_call"  # all of it: no phase, though reported with them
BEFORE, AFTER = "_before_s", "_after_s"
_PHASE_TIMES = frozenset(phase + moment for phase in (*PHASES, OTHER_PHASE) for moment in (BEFORE, AFTER))
PLACES = ("first", "second", "third")  # of changes that have no names of their own
GRAPH_CACHES = ("aot_autograd", "fx_graph")  # of compiled graphs, the one that is asked first in front
USES = ("hits", "misses", "bypasses")  # of one cache
SHIFTS = ("canary", "suite")  # of fixed test programs, of eager over all cases: fractions
# What disturbed trials, each with the worst that was seen of it; the reasons of a device are names.
DISTURBED = (
    Code.DISTURBED_BY, Code.TRIALS_DISTURBED, Code.PAIRS_DISTURBED, Code.REPEATED, Code.QUIET_FIRST,
)  # fmt: skip
CORES = "cores"  # of the host, without those that other programs kept busy

# A fact that quotes a failure holds its code as the name ``why``, and the numbers and names of its fact.
QUOTING = (Code.FAILURE, Code.REPEAT_KILLED, Code.TRACE_CUT)

# More numbers that a fact of a code may have.
MORE_NUMBERS: Mapping[Code, frozenset[str]] = {
    Code.KERNELS_MOVED: frozenset(position + moment for position in PLACES for moment in (BEFORE, AFTER)),
    Code.MACHINE_CHANGED: frozenset(SHIFTS),
    Code.TIMES_UNJUDGED: frozenset({"shift"}),  # of fixed test programs, where it is this host that recorded
    Code.CHANGED_PHASES: _PHASE_TIMES,
    Code.OUTPUT_DIFFERS: frozenset({"most", "elements", "of"}),
    Code.CODE_CHANGED: frozenset({"kernels", "changed", "added", "removed"}),
    Code.WORKLOAD_CHANGED: frozenset({"more"}),
    Code.DEFINITION_CHANGED: frozenset({"more"}),
    **dict.fromkeys((Code.OPTIONS_CHANGED, Code.DEFAULT_CHANGED), frozenset({"more"})),
    Code.DEFAULTS_DIFFER: frozenset({"more", "stays", "moved", "new", "gone"}),
    Code.CACHE_MISSED: frozenset(use + moment for use in USES for moment in ("", "_before")),
    Code.ACCEPTANCE_EXCEEDED: frozenset({"stored"}),
    # 1 in pairs: both arms ran on one machine at one moment, so it is no cause.
    **dict.fromkeys((Code.CODE_SAME, Code.EAGER_TOO, Code.DRIFT_ABOVE), frozenset({"in_pairs"})),
    **dict.fromkeys(QUOTING, frozenset({"trial"}).union(*(code.numbers for code in FAILURE_CODES))),
    **dict.fromkeys(DISTURBED, frozenset({*map(str, Disturbance), CORES})),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One thing to report.

    ``names`` holds every word that is not of this project: the measured code may have written it.
    """

    code: Code
    numbers: Mapping[str, float] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def name(self, key: str, default: str = "") -> str:
        """``default`` where it may not be shown."""
        return next(iter(self.names.get(key, ())), default)


def make_text(text: str) -> Fact:
    return Fact(code=Code.TEXT, names=name_words(text=text))


def list_distinct(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """A fact has no hash."""
    distinct: list[Fact] = []
    for fact in facts:
        if fact not in distinct:
            distinct.append(fact)
    return tuple(distinct)


def name_words(**words: str) -> Mapping[str, tuple[str, ...]]:
    return {name: (word,) for name, word in words.items()}


# Facts about one comparison.
_OF_ONE = frozenset({Code.ACCEPT, Code.ACCEPT_TOO, Code.ACCEPTANCE_EXCEEDED, Code.DRIFT_ABOVE})


def has_shape(fact: Fact) -> bool:
    """Whether it has the numbers of its code, and no others."""
    if fact.code in _OF_ONE and not (fact.cases and fact.metrics):
        return False
    present = fact.numbers.keys()
    why = next((code for code in FAILURE_CODES if fact.code in QUOTING and code == fact.name("why")), None)
    asked = fact.code.numbers | (why.numbers if why else frozenset())
    return asked <= present <= asked | MORE_NUMBERS.get(fact.code, frozenset())


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOf:
    """A fact of one of these codes, which has the shape of its code."""

    codes: frozenset[Code]

    def describe(self) -> str:
        return "a fact that can stand there, with the numbers of its code"

    def holds(self, fact: Fact) -> bool:
        return fact.code in self.codes and has_shape(fact)

    def to_schema(self) -> dict[str, object]:
        return {}


HeadlineFact = Annotated[Fact, OneOf(codes=HEADLINE_CODES)]
RemarkFact = Annotated[Fact, OneOf(codes=REMARK_CODES)]
CauseFact = Annotated[Fact, OneOf(codes=CAUSE_CODES)]
NoteFact = Annotated[Fact, OneOf(codes=NOTE_CODES)]
StepFact = Annotated[Fact, OneOf(codes=STEP_CODES)]
FailureFact = Annotated[Fact, OneOf(codes=FAILURE_CODES)]
LaneFact = Annotated[Fact, OneOf(codes=LANE_CODES)]
UnknownFact = Annotated[Fact, OneOf(codes=UNKNOWN_CODES)]
