"""The report for test dashboards: one testcase a deciding comparison, its case as the classname.

A regression is a ``failure``, a failed or missing case an ``error``; what was not judged is ``skipped``
with a message that says so. Who reads nothing but this file must not see green where the command fails:
then what is not settled is an ``error`` too, and where nothing else is red the verdict itself is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from gate.records import (
    BASE_ARM,
    OF_WHOLE_CASE,
    CaseFailure,
    Cause,
    Code,
    Comparison,
    Metric,
    Outcome,
    Reason,
    Status,
    Verdict,
    quote_failure,
)
from gate.records.cases import group_cases
from gate.report.blocks import render_command
from gate.report.clean import clean_line, clean_lines
from gate.report.rows import WHOLE_CASE, complete_sentence, make_row
from gate.report.words.causes import describe_cause, doubt_cause
from gate.report.words.failures import describe_whole
from gate.report.words.headline import write_headline, write_opening
from gate.report.words.notes import write_notes
from gate.report.words.steps import write_steps

_LOG_LINES = 60  # a dashboard folds it away
ELEMENTS: Mapping[Status, str] = {
    Status.REGRESSED: "failure",
    Status.FAILED: "error",
    Status.MISSING: "error",
    Status.INCONCLUSIVE: "error",
    Status.NEW: "skipped",
    Status.NOT_COMPARABLE: "skipped",
}
# Where INCONCLUSIVE is let through (`--fail-on regression`), it is neither passed nor failed.
LENIENT_ELEMENTS: Mapping[Status, str] = {**ELEMENTS, Status.INCONCLUSIVE: "skipped"}
_RED = frozenset({"failure", "error"})
# Whose machine it was is in no verdict; the schemas ask for a name, and for this one where there is none.
_HOST = 'hostname="localhost"'
# A comparison takes no time of its own; what the run took is the suite's.
_NO_TIME = 'time="0.000"'


def render_junit(verdict: Verdict, *, fails: bool | None = None) -> str:
    """Return the report as JUnit XML.

    ``fails`` is whether the command's exit code is not 0; left out, every outcome but PASS fails.
    """
    failing = verdict.outcome is not Outcome.PASS if fails is None else fails
    elements = ELEMENTS if failing else LENIENT_ELEMENTS
    deciding = [one for one in verdict.comparisons if one.decides]
    deciding += _list_unreported(verdict.comparisons, verdict.failures)
    cases = _render_cases(deciding, verdict, elements)
    found = [elements.get(one.status, "") for one in deciding]
    if failing and _RED.isdisjoint(found):
        cases.append(_render_verdict(verdict))
        found.append("error")
    totals = (
        f'tests="{len(cases)}" failures="{found.count("failure")}"'
        f' errors="{found.count("error")}" time="{max(verdict.wall_s, 0.0):.3f}"'
    )
    skipped = f'skipped="{found.count("skipped")}"'
    stamp = clean_line(verdict.provenance.created)[:19]
    timestamp = f" timestamp={quoteattr(stamp)}" if stamp else ""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="compile-gate" {totals}>',
        f'<testsuite name="compile-gate" {_HOST} {totals} {skipped}{timestamp}>',
        *_render_properties(verdict),
        *cases,
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _render_verdict(verdict: Verdict) -> str:
    """The testcase of a verdict that fails though no comparison is red: nothing was compared, say."""
    message, kind = _quote(write_opening(verdict)), _quote(verdict.outcome.value.lower())
    steps = (clean_line(f"{step.text} {step.command}") for step in write_steps(verdict))
    body = escape("\n".join(steps))
    start = f'<testcase classname="compile-gate" name="verdict" {_NO_TIME}>'
    return f"{start}<error message={message} type={kind}>{body}</error></testcase>"


def _list_unreported(comparisons: Sequence[Comparison], failures: Sequence[CaseFailure]) -> list[Comparison]:
    """A failure that no comparison shows becomes one: nothing that went wrong may look green.

    One in quarantine is shown and decides nothing. A failure of the base's is shown by whatever is known of
    the case, and is no failure of head's.
    """
    failed = {one.case_id for one in comparisons if one.status is Status.FAILED}
    known = {one.case_id for one in comparisons}
    reported = {BASE_ARM: known}
    lost = {one.case_id: one for one in failures if one.case_id not in reported.get(one.arm, failed)}
    return [_make_failed(one) for one in lost.values()]


def _make_failed(failure: CaseFailure) -> Comparison:
    return Comparison(
        case_id=failure.case_id,
        metric=Metric.COMPILED_LATENCY,  # not shown: the comparison stands for the whole case
        status=Status.FAILED,
        reason=Reason.CASE_FAILED,
        decides=True,
        remarks=(quote_failure(Code.FAILURE, failure),),
    )


def _render_properties(verdict: Verdict) -> list[str]:
    properties = (
        ("outcome", verdict.outcome.value),
        ("headline", write_headline(verdict)),
        ("commit", verdict.provenance.commit),
        ("torch", verdict.environment.torch),
        ("device", verdict.environment.device_model),
        *(("note", note) for note in write_notes(verdict)),
    )
    lines = [f"<property name={_quote(name)} value={_quote(value)}/>" for name, value in properties]
    return ["<properties>", *lines, "</properties>"]


def _render_cases(
    deciding: Sequence[Comparison], verdict: Verdict, elements: Mapping[Status, str]
) -> list[str]:
    failures = {failure.case_id: failure for failure in reversed(verdict.failures)}
    causes = group_cases(verdict.causes)
    cases = []
    for one in deciding:
        start, element = _begin_case(one), elements.get(one.status, "")
        if not element:
            cases.append(f"{start}/>")
            continue
        message, kind = _quote(complete_sentence(one)), _quote(one.reason.value)
        if element == "skipped":
            cases.append(f"{start}><skipped message={message}/></testcase>")
            continue
        details = _list_details(
            one,
            failures.get(one.case_id) if one.status is Status.FAILED else None,
            causes.get(one.case_id, ()),
            render_command(one.case_id, [one], verdict),
        )
        body = escape("\n".join(details))
        cases.append(f"{start}><{element} message={message} type={kind}>{body}</{element}></testcase>")
    return cases


def _begin_case(comparison: Comparison) -> str:
    name = WHOLE_CASE if comparison.reason in OF_WHOLE_CASE else comparison.metric.value
    return f"<testcase classname={_quote(comparison.case_id)} name={_quote(name)} {_NO_TIME}"


def _list_details(
    comparison: Comparison, failure: CaseFailure | None, causes: Sequence[Cause], again: str
) -> list[str]:
    lines = make_row([comparison]).describe_bounds()
    if failure:
        lines.append(clean_line(describe_whole(failure)))
        lines += [f"log: {clean_line(failure.log)}"] if failure.log else []
    write = doubt_cause if comparison.status is Status.INCONCLUSIVE else str
    lines += [f"why: {clean_line(write(describe_cause(cause.fact)))}" for cause in causes]
    lines.append(f"run again: {again}")
    return lines + list(clean_lines(failure.log_tail, _LOG_LINES) if failure else ())


def _quote(text: str) -> str:
    return quoteattr(clean_line(text))
