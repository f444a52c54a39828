"""The report for test dashboards: one testcase a deciding comparison, its case as the classname.

Nothing here may look green where the command fails: then what is not settled is an ``error``, and where
nothing else is red, the verdict itself is one.
"""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from gate.records.cases import Metric, group_cases
from gate.records.codes import Code
from gate.records.run import BASE_ARM, CaseFailure
from gate.records.verdict import Comparison, Outcome, Reason, Status, Verdict
from gate.report.case_blocks import render_command
from gate.report.clean import clean_line, clean_lines
from gate.report.comparison_rows import WHOLE_CASE
from gate.report.words.comparisons import complete_sentence
from gate.report.words.facts import describe_cause, doubt_cause, write_notes
from gate.report.words.headline import write_headline, write_opening
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
_RED = frozenset({"failure", "error"})
_NAME = "compile-gate"


def render_junit(verdict: Verdict, *, fails: bool | None = None) -> str:
    """``fails`` is whether the command's exit code is not 0; left out, every outcome but PASS fails."""
    failing = verdict.outcome is not Outcome.PASS if fails is None else fails
    # Where INCONCLUSIVE is let through (`--fail-on regression`), it is neither passed nor failed.
    elements = ELEMENTS if failing else {**ELEMENTS, Status.INCONCLUSIVE: "skipped"}
    deciding = [comparison for comparison in verdict.comparisons if comparison.decides]
    deciding += _list_unreported(verdict.comparisons, verdict.failures)
    cases = _make_cases(deciding, verdict, elements)
    tags = [element.tag for case in cases for element in case]
    if failing and _RED.isdisjoint(tags):
        cases.append(_make_verdict_case(verdict))
        tags.append("error")
    totals = {
        "name": _NAME,
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "time": f"{max(verdict.wall_s, 0.0):.3f}",
    }
    # Whose machine it was is in no verdict; the schemas ask for a name, and for this one where there is none.
    whole = totals | {"hostname": "localhost", "skipped": str(tags.count("skipped"))}
    if stamp := clean_line(verdict.provenance.created)[:19]:
        whole["timestamp"] = stamp
    root = ET.Element("testsuites", totals)
    suite = ET.SubElement(root, "testsuite", whole)
    suite.append(_make_properties(verdict))
    suite.extend(cases)
    ET.indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _make_verdict_case(verdict: Verdict) -> ET.Element:
    case = _make_case(_NAME, "verdict")
    error = _make_element("error", message=write_opening(verdict), type=verdict.outcome.value.lower())
    error.text = "\n".join(clean_line(f"{step.text} {step.command}") for step in write_steps(verdict))
    case.append(error)
    return case


def _list_unreported(comparisons: Sequence[Comparison], failures: Sequence[CaseFailure]) -> list[Comparison]:
    """A failure in quarantine is shown and decides nothing. A failure of the base is none of head."""
    failed = {comparison.case_id for comparison in comparisons if comparison.status is Status.FAILED}
    shown = {comparison.case_id for comparison in comparisons}
    reported = {BASE_ARM: shown}
    lost = {
        failure.case_id: failure
        for failure in failures
        if failure.case_id not in reported.get(failure.arm, failed)
    }
    return [
        Comparison(
            case_id=case_id,
            metric=Metric.COMPILED_LATENCY,  # not shown: the comparison stands for the whole case
            status=Status.FAILED,
            reason=Reason.CASE_FAILED,
            decides=True,
            remarks=(failure.quote(Code.FAILURE),),
        )
        for case_id, failure in lost.items()
    ]


def _make_properties(verdict: Verdict) -> ET.Element:
    values = (
        ("outcome", verdict.outcome.value),
        ("headline", write_headline(verdict)),
        ("commit", verdict.provenance.commit),
        ("torch", verdict.environment.torch),
        ("device", verdict.environment.device_model),
        *(("note", note) for note in write_notes(verdict)),
    )
    properties = ET.Element("properties")
    for name, value in values:
        properties.append(_make_element("property", name=name, value=value))
    return properties


def _make_cases(
    deciding: Sequence[Comparison], verdict: Verdict, elements: Mapping[Status, str]
) -> list[ET.Element]:
    failures = {failure.case_id: failure for failure in reversed(verdict.failures)}
    causes = group_cases(verdict.causes)
    cases = []
    for comparison in deciding:
        case = _make_case(
            comparison.case_id, WHOLE_CASE if comparison.is_of_whole_case else comparison.metric.value
        )
        cases.append(case)
        if name := elements.get(comparison.status, ""):
            element = _make_element(name, message=complete_sentence(comparison))
            case.append(element)
            if name != "skipped":
                element.set("type", comparison.reason.value)
                failure = failures.get(comparison.case_id) if comparison.status is Status.FAILED else None
                facts = [cause.fact for cause in causes.get(comparison.case_id, ())]
                write = doubt_cause if comparison.status is Status.INCONCLUSIVE else str
                details = [f"log: {failure.log}"] if failure and failure.log else []
                details += [f"why: {write(describe_cause(fact))}" for fact in facts]
                details.append(f"run again: {render_command([comparison.case_id], [comparison], verdict)}")
                tail = clean_lines(failure.log_tail, _LOG_LINES) if failure else ()
                element.text = "\n".join((*map(clean_line, details), *tail))
    return cases


def _make_case(classname: str, name: str) -> ET.Element:
    # A comparison takes no time of its own; what the run took is the suite's.
    return _make_element("testcase", classname=classname, name=name, time="0.000")


def _make_element(tag: str, **attributes: str) -> ET.Element:
    """Each attribute becomes one printable line: it may quote anything."""
    return ET.Element(tag, {name: clean_line(value) for name, value in attributes.items()})
