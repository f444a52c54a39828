"""Whole pages: a frame with style and script, filled with a verdict or a history; pure."""

import base64
import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from gate.fingerprint import compute_environment_id, list_parts
from gate.records import Environment, Status, Verdict
from gate.records.cases import group_cases
from gate.report.clean import clean_line
from gate.report.content import make_report
from gate.report.footer import COLUMNS, MARKS
from gate.report.page.cases import PageCase, make_anchors, make_case
from gate.report.view import OUTCOME_KINDS, STATUS_KINDS, Report
from gate.report.words.templates import name_status
from gate.units import MICRO
from gate.version import __version__

_DIRECTORY = Path(__file__).with_name("templates")
# What lies in the page itself may be used, nothing may be fetched, sent, framed in or submitted.
_POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; base-uri 'none';"
    " form-action 'none'"
)


def render_page(template: str, **values: object) -> str:
    """Fill a template of this package; it extends ``base.html`` and escapes all that is not a drawing.

    ``values`` are its ``title`` and the template's own. One that is lacking is an error.
    """
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
    environment.filters |= {"values": _hold_together, "name_status": name_status}
    environment.globals |= {
        "KIND_NAMES": _KIND_NAMES,
        "COLUMNS": COLUMNS,
        "MARKS": MARKS,
        "OUTCOME_KINDS": OUTCOME_KINDS,
        "STATUS_KINDS": STATUS_KINDS,
    }
    return environment


_UNIT = re.compile(rf"(?<=\d) (?=(?:%|[{MICRO}m]?s|[KMG]iB)(?!\w))")


def _hold_together(text: str) -> str:
    """Let no line end between a number and its unit, or before an arrow."""
    return _UNIT.sub("\u00a0", text).replace(" -> ", "\u00a0\N{RIGHTWARDS ARROW} ")


@cache
def _load(name: str) -> Markup:
    """A file of this package, which goes into a page as it is."""
    return Markup((_DIRECTORY / name).read_text(encoding="utf-8"))  # noqa: S704 - our own text


def _hash(text: str) -> str:
    """The name by which a policy permits an inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


_KIND_NAMES = {
    "bad": "worse or failed",
    "unsure": "could not tell",
    "other": "accepted or not judged",
    "good": "improved",
    "same": "unchanged",
}
_MOST_OPEN = 5  # cases that are read without a click: they are the gravest
MOST_WHOLE = 25  # cases whose sections, some 30 KB each, are in the page itself; of more, others are pages
_MOST_ROWS = 1000  # of its table, and cases that have a page
VERDICT_PAGE, CASE_PAGES = "report.html", "cases"  # the file, and the directory beside it
_LINK = re.compile(r"https://[A-Za-z0-9._~:/?#@%&=+,;-]{1,500}")


def render_verdict_page(verdict: Verdict) -> str:
    """Return one HTML file with all that there is to see of a verdict; it needs no other."""
    report = make_report(verdict, everything=True, most=_MOST_ROWS)
    cases = make_case_views(verdict, report)
    return render_page(
        "verdict.html",
        title=f"{report.outcome.value}: {report.headline}",
        report=report,
        cases=cases,
        environment=list_environment(verdict.environment),
        differing=list_differences(verdict.base_environment, verdict.environment),
        has_base=verdict.base_environment is not None and any(one.change for one in verdict.comparisons),
        run_url=find_link(verdict.provenance.run_url),
        most_open=_MOST_OPEN,
        most_whole=MOST_WHOLE,
        unlisted=max(0, len(verdict.cases) - len(cases)),
    )


def render_case_pages(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Render the cases with news that do not fit into the page of the verdict: names and texts.

    The names are below the directory of that page.
    """
    report = make_report(verdict, everything=True, most=_MOST_ROWS)
    blocks = enumerate(report.blocks)
    has_news = {place for place, block in blocks if block.status is not Status.UNCHANGED}
    own_page = has_news - {*range(MOST_WHOLE)}
    for place, case in enumerate(_list_cases(verdict, report, own_page)):
        if place in own_page:
            text = render_page("case_page.html", title=case.block.title, case=case, home=VERDICT_PAGE)
            yield f"{CASE_PAGES}/{case.anchor}.html", text


def make_case_views(verdict: Verdict, report: Report) -> tuple[PageCase, ...]:
    """Make what is shown of all cases, those first that need a reader most, and the first of them whole."""
    cases = tuple(_list_cases(verdict, report, range(MOST_WHOLE)))
    return (*cases[:MOST_WHOLE], *map(_lead_away, cases[MOST_WHOLE:]))


def _lead_away(case: PageCase) -> PageCase:
    """A case whose section is in a page of its own, or that has none."""
    if case.block.status is Status.UNCHANGED:
        return replace(case, address="", drawing=None)
    return replace(case, address=f"{CASE_PAGES}/{case.anchor}.html")


def _list_cases(verdict: Verdict, report: Report, whole: Collection[int]) -> Iterator[PageCase]:
    """All cases; those of these numbers with both sides."""
    comparisons = {clean_line(name): rows for name, rows in group_cases(verdict.comparisons).items()}
    cells = {line.case_id: line.cells for line in report.case_lines}
    anchors = make_anchors(block.title for block in report.blocks)
    evidence = {clean_line(one.case_id): one for one in verdict.evidence}
    for number, block in enumerate(report.blocks):
        name, shown = block.title, evidence.get(block.title) if number in whole else None
        yield make_case(anchors[name], block, cells[name], comparisons.get(name, ()), shown)


def list_environment(environment: Environment) -> tuple[tuple[str, str], ...]:
    """List all that is known of where it was measured."""
    rows = (("environment", compute_environment_id(environment)), *list_parts(environment, environment))
    return tuple((clean_line(row[0]), clean_line(row[-1])) for row in rows if row[-1])


def list_differences(before: Environment | None, after: Environment) -> tuple[tuple[str, str, str], ...]:
    """List what is not the same where both sides were measured: what, before, and head's."""
    return tuple(
        (clean_line(label), clean_line(old or "none"), clean_line(new or "none"))
        for label, old, new in list_parts(before or after, after)
        if old != new
    )


def find_link(address: str) -> str:
    """The address, where it is one that a link may lead to: of the web, and encrypted."""
    return address if _LINK.fullmatch(address) else ""
