"""All comparisons of a run before acceptances, and what the base adds to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.evidence.gather import Evidence
from gate.decide.judge.machine import Machine
from gate.records.codes import Code
from gate.records.run import Baseline
from gate.records.verdict import NOT_WORSE, Comparison, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseFindings:
    """What the base adds to a screening."""

    sides: Mapping[str, Evidence] = field(default_factory=dict)  # by case, of those that ran in pairs
    acquitted: tuple[Comparison, ...] = ()  # convicted by stored baselines, and not by pairs
    same: tuple[str, ...] = ()  # cases whose times are clear: their program is the base's
    in_pairs: bool = False  # all was compared in pairs: nothing that is stored counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Screening:
    """All comparisons of a run, before acceptances."""

    evidence: tuple[Evidence, ...]
    comparisons: tuple[Comparison, ...]
    machine: Machine  # over all places
    places: Mapping[str, Machine]  # the machine at each that cases ran at
    base: BaseFindings = field(default_factory=BaseFindings)

    def list_used_baselines(self) -> tuple[Baseline, ...]:
        matches = (case.find_baseline(metric) for case in self.evidence for metric in case.values)
        return tuple({id(match): match for match in matches if match is not None}.values())

    def revise(self, comparisons: Sequence[Comparison]) -> Screening:
        """What the new rows no longer convict is acquitted."""
        acquitted = (
            before
            for before, after in zip(self.comparisons, comparisons, strict=False)
            if before.decides and before.baseline is not None and after.status in NOT_WORSE
            if before.status is Status.REGRESSED or before.has_remark(Code.SINCE_UPGRADE)
        )
        base = replace(self.base, acquitted=(*self.base.acquitted, *acquitted))
        return replace(self, comparisons=tuple(comparisons), base=base)
