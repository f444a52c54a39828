"""What pairs left open of a case that has regressed anyway: no further pair changes its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gate.records import Code, Comparison, Fact, Reason, Status

_ANYWAY = Fact(code=Code.REGRESSED_ANYWAY)


def remark_regressed_anyway(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Say of what more pairs would settle that they are not needed, where their case has regressed."""
    regressed = find_regressed(comparisons)
    return tuple(
        replace(one, remarks=(*one.remarks, _ANYWAY)) if one.case_id in regressed and _asks(one) else one
        for one in comparisons
    )


def find_regressed(comparisons: Iterable[Comparison]) -> frozenset[str]:
    """Find the cases of which something that decides has regressed."""
    return frozenset(one.case_id for one in comparisons if one.decides and one.status is Status.REGRESSED)


def _asks(comparison: Comparison) -> bool:
    return comparison.decides and comparison.reason is Reason.UNSETTLED and bool(comparison.more_pairs)
