"""How much of what should decide was judged: what a PASS is worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gate.records import JUDGED, Comparison, Reason, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Counts of deciding comparisons and of the cases that have any: all of them, and those judged.

    A case counts as judged when at least one of its comparisons was.
    """

    comparisons: int = 0
    judged: int = 0
    cases: int = 0
    judged_cases: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing that should decide was measured only."""
        return self.judged == self.comparisons


def measure_coverage(comparisons: Iterable[Comparison]) -> Coverage:
    """Count what was judged among all comparisons of a verdict."""
    deciding = [one for one in comparisons if one.decides]
    judged = [one for one in deciding if is_judged(one)]
    return Coverage(
        comparisons=len(deciding),
        judged=len(judged),
        cases=len({one.case_id for one in deciding}),
        judged_cases=len({one.case_id for one in judged}),
    )


def list_uncompared(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Ids of the cases of which something that decides was measured only; all, where nothing decides."""
    rows = tuple(comparisons)
    deciding = [one for one in rows if one.decides]
    return tuple(dict.fromkeys(one.case_id for one in deciding or rows if not is_judged(one)))


def is_judged(comparison: Comparison) -> bool:
    """Whether a deciding comparison was held against a baseline, or a limit that it is beyond.

    A limit that somebody accepted compares nothing, and nor does what had no time for a pair.
    """
    is_waived = comparison.status is Status.ACCEPTED or comparison.reason is Reason.UNPAIRED
    is_bare = is_waived and comparison.baseline is None
    return comparison.decides and comparison.status in JUDGED and not is_bare
