"""What a reader is shown beside a judgement: why a case changed, and both sides of it to look at.

A verdict rests on none of this. Everything is bounded, so that a verdict stays a file to pass around.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gate.records.bounds import Natural, NotNegative, Range
from gate.records.facts import CauseFact, UnknownFact
from gate.records.metric import Metric
from gate.records.run import CacheUse, GraphBreak, Recompile

Weight = Annotated[float, Range(minimum=0, maximum=1)]


class CauseKind(StrEnum):
    """What a cause is about."""

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
        """Before and after; one without a before has an empty one."""
        return self.before or SideEvidence(), self.after
