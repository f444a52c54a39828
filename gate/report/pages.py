"""The pages of a verdict: HTML files that need nothing else, with charts drawn before; pure.

Templates escape every text but files of this package and drawings.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import jinja2
from markupsafe import Markup

from gate.fingerprint import compute_environment_id, list_parts
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family, Role, select_metrics
from gate.records.cases import Metric, group_cases
from gate.records.run import Environment
from gate.records.verdict import CaseEvidence, Comparison, Status, Verdict
from gate.report import FORMATS
from gate.report.case_blocks import SHOWN, Block, order_comparison
from gate.report.charts import (
    BEFORE,
    HEAD,
    Drawing,
    Lane,
    Plot,
    choose_axis_unit,
    draw_bars,
    draw_interval,
    draw_strip,
)
from gate.report.clean import bind_units, clean_line
from gate.report.comparison_rows import STATUS_KINDS, Row, make_row
from gate.report.content import OUTCOME_KINDS, Report, make_report
from gate.report.explain import CaseView, make_view
from gate.report.footer import COLUMNS, MARKS, Cell
from gate.report.words.comparisons import compute_bar, exceeds_threshold, find_largest, render_bar
from gate.report.words.templates import describe_move, name_metric, name_status
from gate.units import format_noun, format_value
from gate.version import __version__

_DIRECTORY = Path(__file__).with_name("templates")
# What lies in the page itself may be used, nothing may be fetched, sent, framed in or submitted.
_POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; base-uri 'none';"
    " form-action 'none'"
)
_KIND_NAMES = {
    "bad": "worse or failed",
    "unsure": "inconclusive",
    "other": "accepted or not judged",
    "good": "improved",
    "same": "unchanged",
}
_MAX_HEADLINE = 160  # characters next to a case's name
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_FUNCTION = 50  # characters of its name, the last: a chart is as wide
_MAX_POINTS = 60  # of one side, the latest: more hide each other
_MOST_OPEN = 5  # cases that are read without a click: they are the gravest; the first of many
MOST_WHOLE = 25  # cases whose sections, some 30 KB each, are in the page itself; of more, others are pages
_MOST_ROWS = 1000  # of its table, and cases that have a page
CASE_PAGES = "cases"  # the directory next to the verdict's page
_LINK = re.compile(r"https://[A-Za-z0-9._~:/?#@%&=+,;-]{1,500}")


def render_page(template: str, **values: object) -> str:
    """``values`` are its ``title`` and what the template asks for; a missing one is an error."""
    style, script = _load("style.css"), _load("page.js")
    policy = _POLICY.format(style=_hash(style), script=_hash(script))
    page = _make_environment().get_template(template)
    return page.render(style=style, script=script, policy=policy, gate_version=__version__, **values)


@cache
def _make_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_DIRECTORY),
        autoescape=True,  # of every template, whatever its name
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"values": _keep_together, "name_status": name_status}
    environment.globals |= {
        "KIND_NAMES": _KIND_NAMES,
        "COLUMNS": COLUMNS,
        "MARKS": MARKS,
        "OUTCOME_KINDS": OUTCOME_KINDS,
        "STATUS_KINDS": STATUS_KINDS,
    }
    return environment


def _keep_together(text: str) -> str:
    return bind_units(text).replace(" -> ", "\u00a0\N{RIGHTWARDS ARROW} ")


@cache
def _load(name: str) -> Markup:
    return Markup((_DIRECTORY / name).read_text(encoding="utf-8"))  # noqa: S704 - our own text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCase:
    anchor: str
    address: str  # where its section is: in this page or in one of its own; "" where there is none
    block: Block  # its rows are those with news
    kind: str
    headline: str  # the metric that changed most, or what became of the case
    cells: tuple[Cell, ...]  # main figures, as the report's columns
    others: tuple[Row, ...]
    values: str = ""  # of the metric that changed most, before and after
    change: str = ""
    noticed: str = ""  # from which size on it would have been; of what is unchanged
    severity: float | None = None  # of it, to sort by
    drawing: Drawing | None = None
    plots: Mapping[str, tuple[Plot, ...]] = field(default_factory=dict)  # by what a reader asks
    view: CaseView | None = None  # of what was kept of both sides


def render_verdict_page(verdict: Verdict) -> str:
    return next(render_pages(verdict))[1]


def render_pages(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Names and texts: the verdict's page, and those of cases that do not fit into it."""
    environment = list_environment(verdict.environment)
    differing = list_differences(verdict.base_environment, verdict.environment)
    report = make_report(verdict, everything=True, most=_MOST_ROWS)
    cases = tuple(list_cases(verdict, report))
    others = list_cases(verdict, report, range(MOST_WHOLE, _MOST_ROWS))
    page = render_page(
        "verdict.html",
        title=f"{report.outcome.value}: {report.headline}",
        report=report,
        cases=cases,
        environment=environment,
        differing=differing,
        has_base=verdict.base_environment is not None
        and any(comparison.change for comparison in verdict.comparisons),
        run_url=clean_link(verdict.provenance.run_url),
        most_open=_MOST_OPEN if len(cases) <= MOST_WHOLE else 1,
        most_whole=MOST_WHOLE,
        unlisted=max(0, len(verdict.cases) - len(cases)),
    )
    yield FORMATS["html"].file, page
    for case in others:
        if case.address.startswith(CASE_PAGES):
            text = render_page("case_page.html", title=case.block.title, case=case)
            yield case.address, text


def list_cases(verdict: Verdict, report: Report, whole: range = range(MOST_WHOLE)) -> Iterator[PageCase]:
    """The gravest first; the cases of the numbers ``whole`` with both sides."""
    comparisons = {clean_line(name): rows for name, rows in group_cases(verdict.comparisons).items()}
    anchors = make_anchors(block.title for block in report.blocks)
    kept = {clean_line(evidence.case_id): evidence for evidence in verdict.evidence}
    for number, block in enumerate(report.blocks):
        name, rows = block.title, comparisons.get(block.title, [])
        address, leading = _choose_address(block, anchors[name], number), _choose_leading(block, rows)
        case = PageCase(
            anchor=anchors[name],
            address=address,
            block=replace(block, rows=tuple(row for row in block.rows if row.status in SHOWN)),
            kind=STATUS_KINDS[block.status],
            headline=_choose_headline(block, leading),
            cells=report.figures[name],
            others=tuple(row for row in block.rows if row.status not in SHOWN),
        )
        if leading:
            case = _add_leading(case, leading)
        evidence = kept.get(name) if address and number in whole else None
        if evidence:
            case = replace(case, plots=_list_plots(rows, evidence), view=make_view(evidence))
        yield case


def _choose_address(block: Block, anchor: str, number: int) -> str:
    if number < MOST_WHOLE:
        return f"#{anchor}"
    # What is unchanged has no page of its own.
    return "" if block.status is Status.UNCHANGED else f"{CASE_PAGES}/{anchor}.html"


def _choose_leading(block: Block, rows: Sequence[Comparison]) -> Comparison | None:
    if block.status is Status.UNCHANGED:
        return find_largest(row for row in rows if row.decides)
    return min(rows, key=order_comparison, default=None)


def _add_leading(case: PageCase, leading: Comparison) -> PageCase:
    """With the change of the metric that changed most."""
    drawing = _draw_change(leading) if case.address else None
    case = replace(case, severity=leading.severity, drawing=drawing)
    if leading.change is None or case.block.failures:
        return case
    row = make_row([leading])
    return replace(
        case,
        values=f"{row.before} \N{RIGHTWARDS ARROW} {row.after}",
        change=row.change,
        noticed=row.noticed if case.block.status is Status.UNCHANGED else "",
    )


def make_anchors(case_ids: Iterable[str]) -> Mapping[str, str]:
    """Of plain characters, and no two alike."""
    anchors: dict[str, str] = {}
    for case_id in case_ids:
        plain = f"case-{_NOT_IN_A_NAME.sub('-', case_id)[:120].strip('-')}"
        name, number = plain, 1
        while name in anchors.values():
            number += 1
            name = f"{plain}-{number}"
        anchors[case_id] = name
    return anchors


def list_environment(environment: Environment) -> tuple[tuple[str, str], ...]:
    """Without packages: there may be hundreds."""
    bare = replace(environment, packages={})
    rows = (("environment", compute_environment_id(environment)), *list_parts(bare, bare))
    return tuple((clean_line(row[0]), clean_line(row[-1])) for row in rows if row[-1])


def list_differences(before: Environment | None, after: Environment) -> tuple[tuple[str, str, str], ...]:
    """Label, before, and head's."""
    return tuple(
        (clean_line(label), clean_line(old or "none"), clean_line(new or "none"))
        for label, old, new in list_parts(before or after, after)
        if old != new
    )


def clean_link(address: str) -> str:
    """The address, if it is of the web and encrypted; else ""."""
    return address if _LINK.fullmatch(address) else ""


def _choose_headline(block: Block, leading: Comparison | None) -> str:
    if block.failures:
        return clean_line(block.failures[0], _MAX_HEADLINE)
    if leading is None or leading.change is None:
        return clean_line(block.rows[0].sentence, _MAX_HEADLINE) if block.rows else ""
    return name_metric(leading.metric)


def _select_drawn(worse: str) -> tuple[Metric, ...]:
    drawn = select_metrics(lambda spec: spec.role is not Role.EXPLAINS and spec.family is not Family.EXACT)
    return tuple(metric for metric in drawn if SPECS[metric].worse == worse and metric not in COMPILE_TIMES)


# What is drawn of a case, by what a reader asks; counts that moved stand in its table.
_GROUPS: Mapping[str, tuple[Metric, ...]] = {
    "Speed": tuple(dict.fromkeys((*LATENCIES, *_select_drawn("slower")))),
    "Compile time": COMPILE_TIMES,
    "Memory": _select_drawn("larger"),
    "Accuracy": _select_drawn("less exact"),
}


def _list_plots(comparisons: Sequence[Comparison], evidence: CaseEvidence) -> Mapping[str, tuple[Plot, ...]]:
    rows = {
        comparison.metric: comparison
        for comparison in comparisons
        if evidence.after.values.get(comparison.metric)
    }
    groups = {
        title: tuple(_plot_metric(rows[metric], evidence) for metric in metrics if metric in rows)
        for title, metrics in _GROUPS.items()
    }
    groups["Compile time"] += tuple(_plot_calls(evidence))
    return {title: plots for title, plots in groups.items() if plots}


def _plot_calls(evidence: CaseEvidence) -> Iterator[Plot]:
    before, after = (side.calls_within for side in evidence.sides)
    rows = [
        (clean_line(name)[-_MAX_FUNCTION:], before.get(name, 0), after.get(name, 0))
        for name in dict.fromkeys((*after, *before))
    ]
    if rows:
        label = "Python calls of a compile within functions, before and of head"
        yield Plot(title="Python calls within functions", drawing=draw_bars(label, rows, "{:,.0f}".format))


def _plot_metric(comparison: Comparison, evidence: CaseEvidence) -> Plot:
    metric = comparison.metric
    before, after = (side.values.get(metric, ()) for side in evidence.sides)
    lanes = [Lane(name=HEAD, values=after[-_MAX_POINTS:], estimate=comparison.candidate)]
    if before or comparison.baseline:
        lanes.insert(0, Lane(name=BEFORE, values=before[-_MAX_POINTS:], estimate=comparison.baseline))
    is_log2 = SPECS[metric].family is Family.LOG2  # its factor would not fit below an axis
    write = "{:+.2f}".format if is_log2 else partial(format_value, metric)
    drawing = draw_strip(
        _describe_plot(comparison, len(before), len(after)),
        lanes,
        write,
        limit=_compute_limit(comparison),
        unit=choose_axis_unit(metric, (value for lane in lanes for value in lane.values)),
    )
    return Plot(
        title=name_metric(metric),
        drawing=drawing,
        note=_describe_note(comparison),
        kind=STATUS_KINDS[comparison.status],
    )


def _describe_plot(comparison: Comparison, before: int, after: int) -> str:
    sides = [f"{format_noun(after, 'value')} of head"] + ([f"{before} of the side before"] if before else [])
    bar = render_bar(comparison)
    counts = f", a change counts beyond {bar}" if bar else ""
    return f"{name_metric(comparison.metric)}: {' and '.join(sides)}{counts}"


def _describe_note(comparison: Comparison) -> str:
    move, bar = describe_move(comparison), render_bar(comparison)
    is_small = comparison.status is Status.UNCHANGED and comparison.change and comparison.change.centre
    return (
        f"{move}, below the threshold of {bar}"
        if is_small and bar and not exceeds_threshold(comparison)
        else move
    )


def _compute_limit(comparison: Comparison) -> float | None:
    bar, before, spec = compute_bar(comparison), comparison.baseline, SPECS[comparison.metric]
    if not bar or before is None:
        return None
    allowed = bar * before.centre if spec.is_ratio else bar
    return before.centre - allowed if spec.higher_is_better else before.centre + allowed


def _draw_change(comparison: Comparison) -> Drawing | None:
    bar, change = compute_bar(comparison), comparison.change
    if change is None or not bar:
        return None
    label = f"{name_metric(comparison.metric)} {describe_move(comparison)}"
    ends = (change.low / bar, change.centre / bar, change.high / bar)
    return draw_interval(label, ends, STATUS_KINDS[comparison.status])
