"""The whole story of one case as text: numbers, both sides' values, causes, code, breaks, commands; pure.

Every word of a model, a log or code is made harmless: one line a line, no control characters.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gate.errors import UsageError
from gate.metrics import SPECS, Family
from gate.records import (
    QUIET,
    CacheUse,
    Case,
    CaseEvidence,
    Cause,
    Comparison,
    KernelChange,
    Metric,
    Status,
    Verdict,
)
from gate.report.blocks import render_command
from gate.report.clean import clean_line
from gate.report.rows import RANK, make_row
from gate.report.view import list_parts, list_sides
from gate.report.words.causes import describe_cause, describe_recompile
from gate.report.words.failures import describe_whole
from gate.report.words.headline import write_first_cause
from gate.report.words.measuring import describe_measuring
from gate.report.words.pages import CODE_CUT
from gate.report.words.steps import write_selected, write_setting, write_tlparse
from gate.report.words.templates import name_metric
from gate.units import render_seconds, render_value

MAX_CAUSE = 600
MAX_CODE_CHARS = 240  # of code and stacks
MAX_DIFF = 120  # lines of one kernel's difference: more are counted
_DOTS = ".:*#"  # one value in a column, two, three, and more
_SIDE = 6  # of the name of a side
_MIN_PHASE = 0.01  # of the compile: shorter ones are not told


def find_case(verdict: Verdict, name: str) -> Case:
    """Find the case that a name means: its id, or the beginning of one id only.

    Raises:
        UsageError: It means none, or several.
    """
    found = [case for case in verdict.cases if case.id == name]
    found = found or [case for case in verdict.cases if case.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(case.id for case in (found or verdict.cases)[:8])
    problem = "means several cases" if found else "is no case of this verdict"
    raise UsageError(f"{name!r} {problem}", f"Name one of: {known}.")


def render_story(verdict: Verdict, case: Case, width: int, folder: str = "") -> str:
    """Render all that a verdict knows of one case; ``folder`` is where it lies, and its traces below it."""
    own = _keep_case(verdict, case)
    shown = next(iter(own.evidence), None)
    sections = [
        [clean_line(case.id), *filter(None, [clean_line(write_first_cause(own), MAX_CAUSE)])],
        _tell_numbers(own),
        _tell_causes(own.causes),
        *(
            [
                _tell_values(own.comparisons, shown, width),
                _tell_phases(shown),
                _tell_parts(shown),
                _tell_breaks(shown),
                _tell_recompiles(shown),
                _tell_caches(shown),
                _tell_code(shown),
                _tell_traces(shown, folder),
            ]
            if shown
            else []
        ),
        _tell_failures(own),
        _tell_commands(own, case),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _keep_case(verdict: Verdict, case: Case) -> Verdict:
    return replace(
        verdict,
        cases=(case,),
        comparisons=tuple(one for one in verdict.comparisons if one.case_id == case.id),
        failures=tuple(one for one in verdict.failures if one.case_id == case.id),
        causes=tuple(one for one in verdict.causes if one.case_id == case.id),
        evidence=tuple(one for one in verdict.evidence if one.case_id == case.id),
    )


def _tell_numbers(own: Verdict) -> list[str]:
    """Every comparison on a line of its own: what decides and moved first."""
    ordered = sorted(own.comparisons, key=lambda one: (not one.decides, RANK[one.status], -one.severity))
    rows = [make_row([one]) for one in ordered]
    titles = ("", "metric", "before", "after", "change", "interval")
    lines = _lay_out(
        [titles, *((row.label, row.metric, row.before, row.after, row.change, row.interval) for row in rows)]
    )
    told = [
        "",
        *(
            f"    {row.sentence}" if row.status is Status.UNCHANGED and not row.is_plain else ""
            for row in rows
        ),
    ]
    return ["Numbers", *(line for pair in zip(lines, told, strict=True) for line in pair if line)]


def _lay_out(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _tell_causes(causes: Sequence[Cause]) -> list[str]:
    """The likeliest first, with what each weighs."""
    told = [f"  {one.weight:.2f}  {clean_line(describe_cause(one.fact), MAX_CAUSE)}" for one in causes]
    return ["Causes, the likeliest first, with how much each accounts for (0 to 1)", *told] if told else []


def _tell_values(comparisons: Iterable[Comparison], shown: CaseEvidence, width: int) -> list[str]:
    """Both sides' values of what moved, or else of the latencies; a dot is one trial."""
    moved = [one.metric for one in comparisons if one.status not in QUIET]
    lines = []
    for metric in dict.fromkeys(moved):
        before, after = (side.values.get(metric, ()) for side in shown.sides)
        strips = _draw_strips(metric, before, after, width)
        if strips and SPECS[metric].family is not Family.EXACT:
            lines += [f"  {name_metric(metric)}", *(f"    {line}" for line in strips)]
    return ["Values, a dot for each trial (: two, * three, # more in one column)", *lines] if lines else []


def _draw_strips(metric: Metric, before: Sequence[float], after: Sequence[float], width: int) -> list[str]:
    """Draw a line of each side, and below them the ends of the scale; nothing where nothing is known."""
    low, high = min((*before, *after), default=0.0), max((*before, *after), default=0.0)
    if not (before or after):
        return []
    columns = max(10, width - _SIDE - 4)
    sides = (("before", before), ("after", after))
    lines = [
        f"{label:<{_SIDE}} |{_draw_dots(values, low, high, columns)}|" for label, values in sides if values
    ]
    ends = render_value(metric, low), render_value(metric, high)
    gap = max(1, columns - len(ends[0]) - len(ends[1]))
    return [*lines, f"{'':<{_SIDE}}  {ends[0]}{' ' * gap}{ends[1] if high > low else ''}".rstrip()]


def _draw_dots(values: Sequence[float], low: float, high: float, columns: int) -> str:
    counts = [0] * columns
    for value in values:
        place = (value - low) / (high - low) if high > low else 0.5
        counts[min(columns - 1, int(place * columns))] += 1
    return "".join(_DOTS[min(count, len(_DOTS)) - 1] if count else " " for count in counts)


def _tell_phases(shown: CaseEvidence) -> list[str]:
    """Where a cold compile spends its time: parts that add up."""
    sides_s = [side.phases_s for side in shown.sides]
    least_s = _MIN_PHASE * max(sum(side.values()) for side in sides_s)
    long = {clean_line(name) for side in sides_s for name, seconds in side.items() if seconds >= least_s}
    rows = [row for row in list_sides(shown, lambda side: side.phases_s, render_seconds) if row[0] in long]
    return ["Phases of a cold compile", *_lay_out([("phase", "before", "after"), *rows])] if rows else []


def _tell_parts(shown: CaseEvidence) -> list[str]:
    """What only a case of its kind has: the call of each shape, or building and loading a package."""
    rows = list_parts(shown)
    return ["Parts", *_lay_out([("part", "before", "now"), *rows])] if rows else []


def _tell_breaks(shown: CaseEvidence) -> list[str]:
    lines = []
    for found in shown.after.graph_breaks:
        lines.append(f"  {_clean(found.location or 'place not told')}: {_clean(found.reason)}")
        lines += [
            f"    {_clean(frame.location)} in {_clean(frame.function)}: {_clean(frame.code)}"
            for frame in found.stack
        ]
    before, now = (len(side.graph_breaks) for side in shown.sides)
    title = f"Graph breaks, {before} before and {now} now"
    return [title, *lines] if lines else []


def _tell_recompiles(shown: CaseEvidence) -> list[str]:
    lines = [f"  {_clean(describe_recompile(one))}" for one in shown.after.recompile_reasons]
    return ["Guards that failed, with the line that made them", *lines] if lines else []


def _tell_caches(shown: CaseEvidence) -> list[str]:
    """What the second process found."""
    rows = list_sides(shown, lambda side: side.caches, _describe_use)
    title = "Caches, as the second process found them"
    return [title, *_lay_out([("cache", "before", "after"), *rows])] if rows else []


def _describe_use(use: CacheUse) -> str:
    return f"{use.hits} found, {use.misses} missed, {use.bypasses} passed by"


def _tell_code(shown: CaseEvidence) -> list[str]:
    """The difference of each changed kernel, or why there is none to show."""
    if not shown.kernels:
        return []
    lines = [line for kernel in shown.kernels for line in _diff_kernel(kernel)]
    more = [f"  and {shown.more_kernels} more kernels"] if shown.more_kernels else []
    return [f"Generated code: {len(shown.kernels) + shown.more_kernels} kernels differ", *lines, *more]


def _diff_kernel(kernel: KernelChange) -> list[str]:
    name = _clean(kernel.name)
    if not (kernel.before or kernel.after):
        return [f"  {name}: its source was not kept; pairs keep it (compile-gate ab)"]
    diff = difflib.unified_diff(
        kernel.before.splitlines(), kernel.after.splitlines(), f"before/{name}", f"after/{name}", lineterm=""
    )
    lines = [f"  {_clean(line, keep=True)}" for line in diff]
    rest = len(lines) - MAX_DIFF
    more = [f"  ... {rest} more lines"] if rest > 0 else []
    cut = [f"  {CODE_CUT}"] if kernel.is_cut else []
    return [*lines[:MAX_DIFF], *more, *cut]


def _tell_traces(shown: CaseEvidence, folder: str) -> list[str]:
    """How to read what ``--trace`` recorded, and what this torch does not report."""
    lines = [f"  {_clean(write_tlparse(trace, folder))}" for side in shown.sides for trace in side.traces]
    unknown = [f"  {_clean(describe_measuring(one))}" for one in shown.after.unknown]
    return [
        *(
            ["torch's own trace of a compile like each trial's (pip install tlparse)", *lines]
            if lines
            else []
        ),
        *(["Not known", *unknown] if unknown else []),
    ]


def _tell_failures(own: Verdict) -> list[str]:
    told = [f"  {_clean(describe_whole(one))}" for one in own.failures]
    return ["Failures", *told] if told else []


def _tell_commands(own: Verdict, case: Case) -> list[str]:
    """How to see it again: judged, measured once, by hand, and traced."""
    setting = clean_line(write_setting(own))
    names = [clean_line(case.id)]
    look = _write_look(case)
    return [
        "See it again",
        f"  {render_command(case.id, own.comparisons, own)}",
        f"  {write_selected('measure', names, setting)} --trials 1",
        *([f"  {look}", f"  TORCH_TRACE=trace {look}  # then: tlparse trace/*"] if look else []),
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


def _clean(text: str, *, keep: bool = False) -> str:
    """One harmless line; ``keep`` leaves its indentation."""
    indent = text[: len(text) - len(text.lstrip(" +-"))] if keep else ""
    return indent + clean_line(text[len(indent) :], MAX_CODE_CHARS)
