"""All about one case: both sides in words, for the page too, and as text with numbers and commands; pure.

Every word of a model, a log or code is made harmless: one line a line, no control characters.
"""

import difflib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TypeVar

from gate.errors import UsageError
from gate.metrics import SPECS, Family
from gate.records.cases import Case
from gate.records.facts import OTHER_PHASE, PHASES
from gate.records.verdict import QUIET, CaseEvidence, Comparison, KernelChange, Verdict
from gate.report.blocks import Block, make_blocks, render_command
from gate.report.clean import ABSENT, MAX_SENTENCE, clean_line, clean_lines, lay_out
from gate.report.content import Section
from gate.report.words.facts import describe_cause, describe_measuring, describe_recompile
from gate.report.words.headline import write_first_cause
from gate.report.words.steps import write_selected, write_setting, write_tlparse
from gate.report.words.templates import name_metric
from gate.units import count_noun, join_some, render_seconds, render_value

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
            rows=tuple(_list_sides(before.parts_s, after.parts_s, render_seconds)),
        ),
        differences=tuple(map(_compare_code, evidence.kernels)),
        more_kernels=evidence.more_kernels,
        breaks=tuple(
            Break(
                reason=_clean(one.reason),
                location=clean_line(one.location) or "unknown place",
                stack=tuple(
                    _clean(f"{frame.location} in {frame.function}: {frame.code}") for frame in one.stack
                ),
            )
            for one in after.graph_breaks
        ),
        breaks_before=len(before.graph_breaks),
        recompiles=tuple(_clean(describe_recompile(one)) for one in after.recompile_reasons),
        caches=Section(
            title="Caches in the second process: hits / misses / bypasses",
            header=("cache", *_SIDES),
            rows=tuple(
                _list_sides(
                    before.caches,
                    after.caches,
                    lambda use: f"{use.hits:,} / {use.misses:,} / {use.bypasses:,}",
                )
            ),
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


def _list_sides(
    before: Mapping[str, _T], after: Mapping[str, _T], write: Callable[[_T], str]
) -> Iterator[tuple[str, ...]]:
    """Each name with what there is of it on both sides, in the order of head."""
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


def _clean(text: str) -> str:
    return clean_line(text, MAX_SENTENCE)


MAX_CAUSE = 600
_MAX_VALUES = 12  # of a side
_MAX_KERNELS, _MAX_CODE = 3, 20  # that changed, and lines of each


def find_case(verdict: Verdict, name: str) -> Case:
    """Find the case that a name means: its id, or the beginning of one id only; "" means the worst case.

    Raises:
        UsageError: It means none, or several.
    """
    if not name and verdict.cases:
        ranked = make_blocks(verdict, everything=True)
        return next(case for case in verdict.cases if clean_line(case.id) == ranked[0].title)
    found = [case for case in verdict.cases if case.id == name]
    found = found or [case for case in verdict.cases if case.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(case.id for case in (found or verdict.cases)[:8])
    problem = "means several cases" if found else "is no case of this verdict"
    raise UsageError(f"{name!r} {problem}", f"Name one of: {known}.")


def render_explanation(verdict: Verdict, case: Case, folder: str = "") -> str:
    """Render all that a verdict knows of one case; ``folder`` is where it lies, and its traces below it."""
    own = keep_case(verdict, case)
    shown = next(iter(own.evidence), None)
    blocks = make_blocks(own, everything=True)
    causes = (f"{one.weight:.2f}  {clean_line(describe_cause(one.fact), MAX_CAUSE)}" for one in own.causes)
    sections = [
        [clean_line(case.id), *filter(None, [clean_line(write_first_cause(own), MAX_CAUSE)])],
        *map(_render_numbers, blocks),
        _list_lines("Causes, the likeliest first, with their weights (1: explains all of it)", causes),
        *([_render_values(own.comparisons, shown), *_render_sides(shown, folder)] if shown else []),
        *map(_render_failures, blocks),
        _render_commands(own, case),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def keep_case(verdict: Verdict, case: Case) -> Verdict:
    """Keep what a verdict knows of one case."""
    return replace(
        verdict,
        cases=(case,),
        comparisons=tuple(one for one in verdict.comparisons if one.case_id == case.id),
        failures=tuple(one for one in verdict.failures if one.case_id == case.id),
        causes=tuple(one for one in verdict.causes if one.case_id == case.id),
        evidence=tuple(one for one in verdict.evidence if one.case_id == case.id),
    )


def _render_numbers(block: Block) -> list[str]:
    cells = (
        (row.label, row.metric, row.before, row.after, row.change, row.interval, row.threshold, row.noticed)
        for row in block.rows
    )
    head, *lines = _lay_out(
        [("", "metric", "before", "head", "change", "95 % interval", "threshold", "noticed from"), *cells]
    )
    numbers = ["Numbers", head]
    for row, line in zip(block.rows, lines, strict=True):
        numbers.append(line)
        if row.sentence:
            numbers.append(f"    {row.sentence}")
    return numbers


def _lay_out(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in lay_out(rows)]


def _render_values(comparisons: Iterable[Comparison], shown: CaseEvidence) -> list[str]:
    lines = []
    for metric in dict.fromkeys(one.metric for one in comparisons if one.status not in QUIET):
        sides = zip(("before", "head"), (side.values.get(metric, ()) for side in shown.sides), strict=True)
        texts = ((side, [render_value(metric, one) for one in values]) for side, values in sides if values)
        rows = [f"    {side:<6}  {join_some(values, _MAX_VALUES)}" for side, values in texts]
        if rows and SPECS[metric].family is not Family.EXACT:
            lines += [f"  {name_metric(metric)}", *rows]
    return ["Values of each trial", *lines] if lines else []


def _render_sides(evidence: CaseEvidence, folder: str) -> Iterator[list[str]]:
    view = make_view(evidence, folder)
    for one in (view.phases, view.parts, view.caches):
        yield [one.title, *_lay_out([one.header, *one.rows])] if one.rows else []
    title = f"Graph breaks, {view.breaks_before} before and {len(view.breaks)} now"
    lines = ([f"{one.location}: {one.reason}", *(f"  {line}" for line in one.stack)] for one in view.breaks)
    yield _list_lines(title, chain.from_iterable(lines))
    yield _list_lines("Guards that failed, with the line that made them", view.recompiles)
    count = len(view.differences) + view.more_kernels
    shown, rest = view.differences[:_MAX_KERNELS], view.differences[_MAX_KERNELS:]
    has_more = rest or any(_find_only_side(one) or len(one.lines) > _MAX_CODE for one in shown)
    more = f"; {PurePosixPath(folder, 'report.html')} has more" if has_more else ""
    title = f"Generated code: {count_noun(count, 'kernel')} changed{more}"
    yield _list_lines(title, (line for one in shown for line in _list_code(one)))
    yield _list_lines("torch's own trace of a compile like each trial's (pip install tlparse)", view.traces)
    yield _list_lines("Not known", view.unknown)


def _list_lines(title: str, lines: Iterable[str]) -> list[str]:
    indented = [f"  {line}" for line in lines]
    return [title, *indented] if indented else []


def _find_only_side(one: Difference) -> str:
    """What became of a kernel that one side has: its lines are counted; "" where both have it."""
    kinds = {kind for kind, _ in one.lines[1:]}  # behind the line that says where
    return {"added": "new", "removed": "gone"}.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _list_code(one: Difference) -> list[str]:
    if fate := _find_only_side(one):
        least = "at least " if one.note else ""  # it was cut
        return [f"{one.name} is {fate}, {least}{len(one.lines) - 1} lines"]
    heads = [f"--- before/{one.name}", f"+++ after/{one.name}"] if one.lines else [one.name]
    left = len(one.lines) - _MAX_CODE
    rest = f"... and {count_noun(left, 'more line')}" if left > 0 else one.note
    return [*heads, *(line for _, line in one.lines[:_MAX_CODE]), *filter(None, [rest])]


def _render_failures(block: Block) -> list[str]:
    log = (f"| {line}" for line in block.log_tail)
    return _list_lines("Failures", (*block.failures, *log, *(f"log: {path}" for path in block.logs)))


def _render_commands(own: Verdict, case: Case) -> list[str]:
    setting = clean_line(write_setting(own))
    names = [clean_line(case.id)]
    look = _write_look(case)
    return [
        "See it again",
        f"  {render_command([case.id], own.comparisons, own)}",
        f"  {write_selected('measure', names, setting)} --trials 1",
        *([f"  {look}"] if look else []),
    ]


def _write_look(case: Case) -> str:
    """A look at the compiled model by hand, where a factory builds it; in float32, as the factory does."""
    module, colon, function = case.factory.partition(":")
    if not colon:
        return ""
    arguments = ", ".join(f"{key}={value!r}" for key, value in case.arguments.items())
    options = {"mode": case.mode.value if case.mode != "default" else None, "dynamic": case.dynamic}
    given = "".join(f", {key}={value!r}" for key, value in options.items() if value is not None)
    code = (
        f"import torch, {module}; case = {module}.{function}({arguments});"
        f" run = torch.compile(case.forward{given}); run(*case.inputs, **case.kwargs)"
    )
    return f"TORCH_LOGS=graph_breaks,recompiles python -i -c {shlex.quote(clean_line(code, 2000))}"
