"""The page of a verdict: what came out and why, a table of all cases, then each of them; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gate.fingerprint import compute_environment_id, list_parts
from gate.records import Environment, Verdict
from gate.records.groups import group_cases
from gate.report.blocks import make_blocks
from gate.report.clean import clean_line
from gate.report.content import make_report
from gate.report.figures import COLUMNS, MARKS, make_case_lines
from gate.report.page.cases import CaseView, ShownCase, make_anchors, make_case
from gate.report.page.layout import render_page
from gate.report.rows import MAX_SENTENCE
from gate.report.words import pages as words
from gate.report.words.headline import write_first_cause
from gate.report.words.terms import name_status

_MOST_OPEN = 5  # cases that are read without a click: they are the gravest
_LINK = re.compile(r"https://[A-Za-z0-9._~:/?#@%&=+,;-]{1,500}")


def render_verdict_page(verdict: Verdict) -> str:
    """Return one HTML file with all that there is to see of a verdict; it needs no other."""
    report, cases = make_report(verdict), make_case_views(verdict)
    cause = clean_line(write_first_cause(verdict), MAX_SENTENCE) or next(
        iter((*report.causes, *_list_causes(cases))), ""
    )
    return render_page(
        "verdict.html",
        title=f"{report.outcome.value}: {report.headline}",
        report=report,
        cases=cases,
        headline=report.headline.removesuffix(cause).rstrip(),
        cause=cause,
        environment=list_environment(verdict.environment),
        differing=list_differences(verdict.base_environment, verdict.environment),
        same_environment=words.SAME_ENVIRONMENT if verdict.base_environment else words.NO_ENVIRONMENT,
        run_url=find_link(verdict.provenance.run_url),
        marks=MARKS,
        most_open=_MOST_OPEN,
        words=words,
        name_status=name_status,
    )


def make_case_views(verdict: Verdict) -> tuple[CaseView, ...]:
    """Make the views of all cases, those first that need a reader most."""
    comparisons = {clean_line(name): rows for name, rows in group_cases(verdict.comparisons).items()}
    lines = {line.case_id: line for line in make_case_lines(verdict)}
    blocks = make_blocks(verdict, everything=True)
    anchors = make_anchors(block.title for block in blocks)
    evidence = {clean_line(one.case_id): one for one in verdict.evidence}
    return tuple(
        make_case(
            ShownCase(
                block=block,
                line=lines[block.title],
                comparisons=comparisons.get(block.title, ()),
                evidence=evidence.get(block.title),
                columns=tuple(COLUMNS),
            ),
            anchors[block.title],
        )
        for block in blocks
    )


def _list_causes(cases: Iterable[CaseView]) -> Iterator[str]:
    """The causes of each case, of the gravest first, where the verdict names none of all."""
    return (cause for case in cases for cause in case.block.causes)


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
