"""What both sides of a case tell under names of their own, side by side: phases, parts, caches; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from gate.records import CaseEvidence
from gate.records.evidence import SideEvidence
from gate.report.clean import clean_line
from gate.report.view import ABSENT
from gate.units import render_seconds

_T = TypeVar("_T")


def list_sides(
    shown: CaseEvidence, read: Callable[[SideEvidence], Mapping[str, _T]], write: Callable[[_T], str]
) -> list[tuple[str, str, str]]:
    """List each name with what is told before and now, in the order of now."""
    before, after = map(read, shown.sides)

    def tell(side: Mapping[str, _T], name: str) -> str:
        return write(side[name]) if name in side else ABSENT

    names = dict.fromkeys((*after, *before))
    return [(clean_line(name), tell(before, name), tell(after, name)) for name in names]


def list_parts(shown: CaseEvidence) -> list[tuple[str, str, str]]:
    """List the parts of a call that only some kinds of cases have, in seconds."""
    return list_sides(shown, lambda side: side.parts_s, render_seconds)
