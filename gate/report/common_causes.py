"""Causes that many cases share: told once for all of them, and not again for each; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gate.records import RED, Cause, Code, Status, Verdict
from gate.report.clean import clean_line
from gate.report.words.causes import describe_common_cause, doubt_cause
from gate.units import count_noun

MIN_ALIKE = 4  # cases: fewer are read faster one by one
# A cause that weighs less goes along with a change and explains none of it: that a call is bound by memory.
LEAST_TOLD = 0.10
_MAX_SENTENCE = 400  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonCauses:
    """What is told once: sentences, each with the cases that it is told of."""

    cases: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sure: frozenset[str] = frozenset()  # cases in which something is known to have moved, or failed
    of: int = 0  # cases in all that have something to say
    is_machine_told: bool = False  # a note says it of the whole run
    is_machine_cause: bool = False  # and it may account for what a case has to say

    def list_sentences(self) -> tuple[str, ...]:
        """Each cause and of how many cases it is told."""
        counts = {told: self._count(len(cases)) for told, cases in self.cases.items()}
        return tuple(
            f"{(told if self.cases[told] & self.sure else doubt_cause(told)).rstrip('.')} ({count})."
            for told, count in counts.items()
        )

    def holds(self, one: Cause, status: Status) -> bool:
        """Whether a case of this status need not tell the cause itself."""
        if one.fact.code is Code.MACHINE_CHANGED and self.is_machine_told:
            return True
        cases = self.cases.get(_describe(one), ())
        # What got worse keeps its causes, unless all cases have them.
        return one.case_id in cases and (status is not Status.REGRESSED or len(cases) == self.of)

    def _count(self, number: int) -> str:
        return f"all {number} cases" if number == self.of else f"{number} of {count_noun(self.of, 'case')}"


def find_common_causes(verdict: Verdict, case_ids: Collection[str]) -> CommonCauses:
    """Find what causes so many of these cases share, the weightiest first."""
    told = [one for one in verdict.causes if one.case_id in case_ids and explains(one)]
    is_machine_told = bool(case_ids) and any(fact.code is Code.MACHINE_CHANGED for fact in verdict.notes)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in sorted(told, key=lambda one: -one.weight):
        if not (is_machine_told and one.fact.code is Code.MACHINE_CHANGED):
            found[_describe(one)].add(one.case_id)
    sure = frozenset(one.case_id for one in verdict.comparisons if one.decides and one.status in RED)
    moved = {one.case_id for one in told if one.fact.code is Code.MACHINE_CHANGED}
    return CommonCauses(
        cases={cause: frozenset(cases) for cause, cases in found.items() if len(cases) >= MIN_ALIKE},
        sure=sure,
        of=len(case_ids),
        is_machine_told=is_machine_told,
        is_machine_cause=is_machine_told and bool(moved & sure if sure else moved),
    )


def explains(one: Cause) -> bool:
    """Whether it may account for a change, and is no detail beside one."""
    return one.weight >= LEAST_TOLD


def _describe(one: Cause) -> str:
    return clean_line(describe_common_cause(one.fact), _MAX_SENTENCE)
