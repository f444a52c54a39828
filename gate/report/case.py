"""Both sides of one case in words, for `explain` and the page: phases, code, breaks, caches, traces; pure.

Every word of a model, a log or code is made harmless: no control characters, and one line a line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from gate.records import OTHER_PHASE, PHASES, CacheUse, CaseEvidence, GraphBreak, KernelChange, SideEvidence
from gate.report.clean import clean_line, clean_lines
from gate.report.rows import MAX_SENTENCE
from gate.report.view import ABSENT, Section
from gate.report.words.causes import describe_recompile
from gate.report.words.measuring import describe_measuring
from gate.report.words.steps import write_tlparse
from gate.units import render_seconds

_T = TypeVar("_T")
# Phases by their own time, which add up: a backward pass is compiled in the others' phases.
_OWN_PHASES = (*(one for one in PHASES if one != "backward"), OTHER_PHASE)
_SIDES = ("before", "head")
_MAX_LINES = 400  # of a kernel's difference
_CODE_CUT = "Cut: this compares the beginnings; more may differ further on."
_CODE_LOST = "Its source was not kept; pairs keep it (compile-gate ab)."


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A kernel on both sides: lines, each with what it is."""

    name: str
    lines: tuple[tuple[str, str], ...]  # "added", "removed" or "same", and the line
    note: str = ""  # why lines are lacking
    is_kept: bool = True  # its source


@dataclass(frozen=True, kw_only=True, slots=True)
class Break:
    """A graph break with the user's stack."""

    reason: str
    location: str
    stack: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseView:
    """Both sides of one case. A row of a table is a name, then what there is of it before and of head."""

    phases: Section  # of a cold compile, in the order of ``_OWN_PHASES``
    parts: Section  # what only its kind has: the call of each shape, as an example
    differences: tuple[Difference, ...]
    more_kernels: int
    breaks: tuple[Break, ...]  # of head
    breaks_before: int
    recompiles: tuple[str, ...]  # guards of head that failed, with the line that made them
    caches: Section  # of the second process
    traces: tuple[str, ...]  # commands that read them
    unknown: tuple[str, ...]  # what the measured torch does not report


def make_view(evidence: CaseEvidence, folder: str = "") -> CaseView:
    """Make the view of a case; ``folder`` is where its verdict lies, and its traces below it."""
    before, after = evidence.sides
    return CaseView(
        phases=Section(
            title="Phases of a cold compile", header=("phase", *_SIDES), rows=tuple(_list_phases(evidence))
        ),
        parts=Section(
            title="Parts",
            header=("part", *_SIDES),
            rows=tuple(_list_sides(evidence, lambda side: side.parts_s, render_seconds)),
        ),
        differences=tuple(map(_compare_code, evidence.kernels)),
        more_kernels=evidence.more_kernels,
        breaks=tuple(map(_make_break, after.graph_breaks)),
        breaks_before=len(before.graph_breaks),
        recompiles=tuple(_clean(describe_recompile(one)) for one in after.recompile_reasons),
        caches=Section(
            title="Caches in the second process: hits / misses / bypasses",
            header=("cache", *_SIDES),
            rows=tuple(_list_sides(evidence, lambda side: side.caches, _render_use)),
        ),
        traces=tuple(_clean(write_tlparse(one, folder)) for side in evidence.sides for one in side.traces),
        unknown=tuple(_clean(describe_measuring(one)) for one in after.unknown),
    )


def _render(found: Mapping[str, _T], name: str, write: Callable[[_T], str]) -> str:
    return write(found[name]) if name in found else ABSENT


def _list_phases(evidence: CaseEvidence) -> Iterator[tuple[str, ...]]:
    for phase in _OWN_PHASES:
        if any(side.phases_s.get(phase) for side in evidence.sides):
            name = "in no phase" if phase == OTHER_PHASE else phase.replace("_", " ")
            yield (name, *(_render(side.phases_s, phase, render_seconds) for side in evidence.sides))


def _render_use(use: CacheUse) -> str:
    return f"{use.hits:,} / {use.misses:,} / {use.bypasses:,}"


def _list_sides(
    evidence: CaseEvidence, read: Callable[[SideEvidence], Mapping[str, _T]], write: Callable[[_T], str]
) -> Iterator[tuple[str, ...]]:
    """Each name with what there is of it on both sides, in the order of head."""
    before, after = map(read, evidence.sides)
    for name in dict.fromkeys((*after, *before)):
        yield (clean_line(name), *(_render(side, name, write) for side in (before, after)))


def _compare_code(kernel: KernelChange) -> Difference:
    before, after = (clean_lines(source) for source in (kernel.before, kernel.after))
    lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    kinds = {"+": "added", "-": "removed"}
    is_kept = bool(kernel.before or kernel.after)
    note = _CODE_CUT if kernel.is_cut or len(lines) > _MAX_LINES else ""
    return Difference(
        name=_clean(kernel.name),
        lines=tuple((kinds.get(line[:1], "same"), line) for line in lines[:_MAX_LINES]),
        note=note if is_kept else _CODE_LOST,
        is_kept=is_kept,
    )


def _make_break(one: GraphBreak) -> Break:
    stack = (f"{frame.location} in {frame.function}: {frame.code}" for frame in one.stack)
    return Break(
        reason=_clean(one.reason),
        location=clean_line(one.location) or "unknown place",
        stack=tuple(map(_clean, stack)),
    )


def _clean(text: str) -> str:
    return clean_line(text, MAX_SENTENCE)
