"""All about one case: both sides in words, for the page too, and as text with numbers and commands; pure.

Text of a model, a log or code loses its control characters.
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
from gate.report.case_blocks import Block, make_blocks, render_command
from gate.report.clean import ABSENT, MAX_SENTENCE, align_columns, clean_line, clean_lines
from gate.report.content import Section
from gate.report.words.facts import describe_cause, describe_measuring, describe_recompile
from gate.report.words.headline import write_first_cause
from gate.report.words.steps import write_selected, write_setting, write_tlparse
from gate.report.words.templates import name_metric
from gate.units import format_noun, format_seconds, format_value, join_some

_T = TypeVar("_T")
# Phases by their own time, which add up: a backward pass is compiled in the others' phases.
_OWN_PHASES = (*(phase for phase in PHASES if phase != "backward"), OTHER_PHASE)
_SIDES = ("before", "head")
_MAX_LINES = 400  # of a kernel's difference
_CODE_CUT = "Cut: this compares the beginnings; more may differ further on."
_CODE_LOST = "Its source was not kept; pairs keep it (compile-gate ab)."
MAX_CAUSE = 600
_MAX_VALUES = 12  # of a side
_MAX_KERNELS, _MAX_CODE = 3, 20  # that changed, and lines of each


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    name: str
    lines: tuple[tuple[str, str], ...]  # "added", "removed" or "same", and the line
    note: str = ""  # why lines are lacking
    is_kept: bool = True  # its source


@dataclass(frozen=True, kw_only=True, slots=True)
class Break:
    reason: str
    location: str
    stack: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseView:
    """Both sides of one case. A row of a table is a name, then its values before and of head."""

    phases: Section  # of a cold compile, in the order of ``_OWN_PHASES``
    calls: Section  # of Python in a compile, by the function they are made within
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
    """``folder`` is where the verdict lies, with its traces below."""
    before, after = evidence.sides
    return CaseView(
        phases=Section(
            title="Phases of a cold compile", header=("phase", *_SIDES), rows=tuple(_list_phases(evidence))
        ),
        calls=Section(
            title="Python calls of a compile within the functions that changed most",
            header=("function", *_SIDES),
            rows=tuple(_list_sides(before.calls_within, after.calls_within, "{:,}".format)),
        ),
        parts=Section(
            title="Parts",
            header=("part", *_SIDES),
            rows=tuple(_list_sides(before.parts_s, after.parts_s, format_seconds)),
        ),
        differences=tuple(map(_compare_code, evidence.kernels)),
        more_kernels=evidence.more_kernels,
        breaks=tuple(
            Break(
                reason=_clean(graph_break.reason),
                location=clean_line(graph_break.location) or "unknown place",
                stack=tuple(
                    _clean(f"{frame.location} in {frame.function}: {frame.code}")
                    for frame in graph_break.stack
                ),
            )
            for graph_break in after.graph_breaks
        ),
        breaks_before=len(before.graph_breaks),
        recompiles=tuple(_clean(describe_recompile(recompile)) for recompile in after.recompile_reasons),
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
        traces=tuple(
            _clean(write_tlparse(trace, folder)) for side in evidence.sides for trace in side.traces
        ),
        unknown=tuple(_clean(describe_measuring(fact)) for fact in after.unknown),
    )


def _render(values: Mapping[str, _T], name: str, write: Callable[[_T], str]) -> str:
    return write(values[name]) if name in values else ABSENT


def _list_phases(evidence: CaseEvidence) -> Iterator[tuple[str, ...]]:
    for phase in _OWN_PHASES:
        if any(side.phases_s.get(phase) for side in evidence.sides):
            name = "in no phase" if phase == OTHER_PHASE else phase.replace("_", " ")
            yield (name, *(_render(side.phases_s, phase, format_seconds) for side in evidence.sides))


def _list_sides(
    before: Mapping[str, _T], after: Mapping[str, _T], write: Callable[[_T], str]
) -> Iterator[tuple[str, ...]]:
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


def get_case(verdict: Verdict, name: str) -> Case:
    """The case with this id, or with the only id that begins so; "" is the worst case.

    Raises:
        UsageError: It means none, or several.
    """
    if not name and verdict.cases:
        ranked = make_blocks(verdict, everything=True)
        return next(case for case in verdict.cases if clean_line(case.id) == ranked[0].title)
    matches = [case for case in verdict.cases if case.id == name]
    matches = matches or [case for case in verdict.cases if case.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(case.id for case in (matches or verdict.cases)[:8])
    problem = "means several cases" if matches else "is no case of this verdict"
    raise UsageError(f"{name!r} {problem}", f"Name one of: {names}.")


def render_explanation(verdict: Verdict, case: Case, folder: str = "") -> str:
    kept = keep_case(verdict, case)
    shown = next(iter(kept.evidence), None)
    blocks = make_blocks(kept, everything=True)
    causes = (
        f"{cause.weight:.2f}  {clean_line(describe_cause(cause.fact), MAX_CAUSE)}" for cause in kept.causes
    )
    sections = [
        [clean_line(case.id), *filter(None, [clean_line(write_first_cause(kept), MAX_CAUSE)])],
        *map(_render_numbers, blocks),
        _list_lines("Causes, the likeliest first, with their weights (1: explains all of it)", causes),
        *([_render_values(kept.comparisons, shown), *_render_sides(shown, folder)] if shown else []),
        *map(_render_failures, blocks),
        _render_commands(kept, case),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def keep_case(verdict: Verdict, case: Case) -> Verdict:
    return replace(
        verdict,
        cases=(case,),
        comparisons=tuple(comparison for comparison in verdict.comparisons if comparison.case_id == case.id),
        failures=tuple(failure for failure in verdict.failures if failure.case_id == case.id),
        causes=tuple(cause for cause in verdict.causes if cause.case_id == case.id),
        evidence=tuple(evidence for evidence in verdict.evidence if evidence.case_id == case.id),
    )


def _render_numbers(block: Block) -> list[str]:
    cells = (
        (row.label, row.metric, row.before, row.after, row.change, row.interval, row.threshold, row.noticed)
        for row in block.rows
    )
    head, *lines = _indent_columns(
        [("", "metric", "before", "head", "change", "95 % interval", "threshold", "noticed from"), *cells]
    )
    numbers = ["Numbers", head]
    for row, line in zip(block.rows, lines, strict=True):
        numbers.append(line)
        if row.sentence:
            numbers.append(f"    {row.sentence}")
    return numbers


def _indent_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in align_columns(rows)]


def _render_values(comparisons: Iterable[Comparison], shown: CaseEvidence) -> list[str]:
    lines = []
    for metric in dict.fromkeys(
        comparison.metric for comparison in comparisons if comparison.status not in QUIET
    ):
        sides = zip(("before", "head"), (side.values.get(metric, ()) for side in shown.sides), strict=True)
        texts = (
            (side, [format_value(metric, value) for value in values]) for side, values in sides if values
        )
        rows = [f"    {side:<6}  {join_some(values, _MAX_VALUES)}" for side, values in texts]
        if rows and SPECS[metric].family is not Family.EXACT:
            lines += [f"  {name_metric(metric)}", *rows]
    return ["Values of each trial", *lines] if lines else []


def _render_sides(evidence: CaseEvidence, folder: str) -> Iterator[list[str]]:
    view = make_view(evidence, folder)
    for section in (view.phases, view.calls, view.parts, view.caches):
        yield [section.title, *_indent_columns([section.header, *section.rows])] if section.rows else []
    title = f"Graph breaks, {view.breaks_before} before and {len(view.breaks)} now"
    lines = (
        [f"{graph_break.location}: {graph_break.reason}", *(f"  {line}" for line in graph_break.stack)]
        for graph_break in view.breaks
    )
    yield _list_lines(title, chain.from_iterable(lines))
    yield _list_lines("Guards that failed, with the line that made them", view.recompiles)
    count = len(view.differences) + view.more_kernels
    shown, rest = view.differences[:_MAX_KERNELS], view.differences[_MAX_KERNELS:]
    has_more = rest or any(
        _name_fate(difference) or len(difference.lines) > _MAX_CODE for difference in shown
    )
    more = f"; {PurePosixPath(folder, 'report.html')} has more" if has_more else ""
    title = f"Generated code: {format_noun(count, 'kernel')} changed{more}"
    yield _list_lines(title, (line for difference in shown for line in _list_code(difference)))
    yield _list_lines("torch's own trace of a compile like each trial's (pip install tlparse)", view.traces)
    yield _list_lines("Not known", view.unknown)


def _list_lines(title: str, lines: Iterable[str]) -> list[str]:
    indented = [f"  {line}" for line in lines]
    return [title, *indented] if indented else []


def _name_fate(difference: Difference) -> str:
    """``new`` or ``gone``, of a kernel that one side has; "" where both have it."""
    kinds = {kind for kind, _ in difference.lines[1:]}  # behind the line with the position
    return {"added": "new", "removed": "gone"}.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _list_code(difference: Difference) -> list[str]:
    if fate := _name_fate(difference):
        least = "at least " if difference.note else ""  # it was cut
        return [f"{difference.name} is {fate}, {least}{len(difference.lines) - 1} lines"]
    heads = (
        [f"--- before/{difference.name}", f"+++ after/{difference.name}"]
        if difference.lines
        else [difference.name]
    )
    left = len(difference.lines) - _MAX_CODE
    rest = f"... and {format_noun(left, 'more line')}" if left > 0 else difference.note
    return [*heads, *(line for _, line in difference.lines[:_MAX_CODE]), *filter(None, [rest])]


def _render_failures(block: Block) -> list[str]:
    log = (f"| {line}" for line in block.log_tail)
    return _list_lines("Failures", (*block.failures, *log, *(f"log: {path}" for path in block.logs)))


def _render_commands(verdict: Verdict, case: Case) -> list[str]:
    setting = clean_line(write_setting(verdict))
    names = [clean_line(case.id)]
    look = _write_look(case)
    return [
        "See it again",
        f"  {render_command([case.id], verdict.comparisons, verdict)}",
        f"  {write_selected('measure', names, setting)} --trials 1",
        *([f"  {look}"] if look else []),
    ]


def _write_look(case: Case) -> str:
    """Opens the compiled model in a shell, where a factory builds it; in float32, as the factory does."""
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
