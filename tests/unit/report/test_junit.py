"""The report for test dashboards, checked by the rules that their parsers share."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.run import BASE_ARM, CANDIDATE_ARM, FailureKind
from gate.records.verdict import Outcome, Reason, Status, Verdict
from gate.report.junit import render_junit
from tests.make import make_failure, make_row
from tests.words import make_facts, write_opening

# What the schemas of Jenkins, GitLab and pytest's own xunit2 have in common.
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "property": set(),
    "testcase": {"failure", "error", "skipped"},
    "failure": set(),
    "error": set(),
    "skipped": set(),
}


def parse_junit(text: str) -> ET.Element:
    """Parse a report and check it against the rules."""
    root = ET.fromstring(text)  # noqa: S314 - our own output
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN[element.tag]
    for suite in root.iter("testsuite"):
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}"))
    assert all(len(case) <= 1 for case in root.iter("testcase"))
    return root


def find_elements(root: ET.Element) -> dict[tuple[str, str], str]:
    """The element inside each testcase, by class and name."""
    return {
        (case.get("classname", ""), case.get("name", "")): case[0].tag
        for case in root.iter("testcase")
        if len(case)
    }


def test_every_situation_is_valid(situation: tuple[str, Verdict]) -> None:
    """Counts, attributes and nesting are valid."""
    assert parse_junit(render_junit(situation[1])).tag == "testsuites"


def test_regressions_fail_and_inconclusive_is_an_error(verdicts: Mapping[str, Verdict]) -> None:
    """A regression is a failure of its metric, INCONCLUSIVE an error."""
    root = parse_junit(render_junit(verdicts["regression"]))
    bert, resnet = "bert/inference-float32-smoke-default", "resnet50/inference-float32-smoke-default"

    expected = {
        (bert, "compiled_latency"): "failure",
        (bert, "warm_speedup"): "failure",
        (bert, "graph_breaks"): "failure",
        (resnet, "drift"): "failure",
        (resnet, "cold_compile_time"): "error",
    }
    assert expected == find_elements(root)


@pytest.mark.parametrize("fails", [True, False])
def test_inconclusive_is_red_where_the_command_fails(verdicts: Mapping[str, Verdict], fails: bool) -> None:
    """INCONCLUSIVE is an error with exit code 11 and none with 0."""
    root = parse_junit(render_junit(verdicts["inconclusive"], fails=fails))
    assert {"error" if fails else "skipped"} == set(find_elements(root).values())
    element = root[0].find("testcase/*")
    assert element is not None
    assert "inconclusive" in element.get("message", "")


@pytest.mark.parametrize("fails", [None, True, False])
def test_red_is_what_the_exit_code_is(situation: tuple[str, Verdict], fails: bool | None) -> None:
    """Each report of a command that fails has an error or a failure."""
    root = parse_junit(render_junit(situation[1], fails=fails))
    failing = situation[1].outcome is not Outcome.PASS if fails is None else fails
    assert not failing or {"error", "failure"} & set(find_elements(root).values())


def test_verdict_that_compared_nothing_is_an_error_of_its_own(verdicts: Mapping[str, Verdict]) -> None:
    """Every metric is skipped, and an error has the headline and the next step."""
    root = parse_junit(render_junit(verdicts["nothing_compared"]))
    (error,) = root.iter("error")
    assert error.get("message") == write_opening(verdicts["nothing_compared"])
    assert "baseline refresh" in (error.text or "")
    root = parse_junit(render_junit(verdicts["nothing_compared"], fails=False))
    assert {"skipped"} == set(find_elements(root).values())


def test_every_testcase_has_a_time_and_the_suite_a_host(situation: tuple[str, Verdict]) -> None:
    root = parse_junit(render_junit(situation[1]))
    assert all(float(case.get("time", "nan")) >= 0 for case in root.iter("testcase"))
    assert ["localhost"] == [suite.get("hostname") for suite in root.iter("testsuite")]


def test_crashes_and_missing_cases_are_errors(verdicts: Mapping[str, Verdict]) -> None:
    """A case without a value is an error with the end of its log."""
    root = parse_junit(render_junit(verdicts["incomplete"]))

    assert list(find_elements(root).values()) == ["error"] * 3
    assert "Segmentation fault" in (root.findtext("testsuite/testcase/error") or "")


def test_unjudged_is_skipped_not_passed(verdicts: Mapping[str, Verdict]) -> None:
    """Times on another machine are skipped."""
    elements = find_elements(parse_junit(render_junit(verdicts["other_machine"])))

    assert len(elements) == 12
    assert {"skipped"} == set(elements.values())
    assert "only measured" not in render_junit(verdicts["other_machine"])


def test_metrics_that_do_not_decide_are_no_testcases(verdicts: Mapping[str, Verdict]) -> None:
    """Control metrics are left out."""
    root = parse_junit(render_junit(verdicts["pass"]))

    assert not [case for case in root.iter("testcase") if case.get("name") == "eager_latency"]


def test_a_failure_without_a_comparison_is_an_error(verdicts: Mapping[str, Verdict]) -> None:
    failure = make_failure("x", "300 s", kind=FailureKind.HANG, stage="rounds")

    elements = find_elements(parse_junit(render_junit(replace(verdicts["pass"], failures=(failure,)))))

    assert elements == {("x", "whole case"): "error"}


@pytest.mark.parametrize("arm", [CANDIDATE_ARM, BASE_ARM])
def test_a_failure_in_quarantine_or_of_the_base_is_not_red_where_the_command_passes(
    verdicts: Mapping[str, Verdict], arm: str
) -> None:
    """A crash in quarantine, or of the base, is no error if the command passes."""
    case_id = verdicts["pass"].cases[0].id
    failure = make_failure(case_id, "300 s", kind=FailureKind.HANG, stage="rounds", arm=arm)
    status, reason = {
        CANDIDATE_ARM: (Status.FAILED, Reason.CASE_FAILED),
        BASE_ARM: (Status.NOT_COMPARABLE, Reason.UNPAIRED),
    }[arm]
    row = make_row(case_id, Metric.COMPILED_LATENCY, status, reason=reason, decides=False)
    verdict = replace(verdicts["pass"], comparisons=(row,), failures=(failure,))
    assert find_elements(parse_junit(render_junit(verdict, fails=False))) == {}


@settings(max_examples=150)
@given(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60),
    st.sampled_from(list(Status)),
)
def test_any_string_parses(verdicts: Mapping[str, Verdict], case_id: str, text: str, status: Status) -> None:
    """No character breaks the XML."""
    failure = make_failure(case_id, text, kind=FailureKind.ERROR, stage=text, log_tail=f"{text}\n]]>")
    remarks = make_facts(Code.ACCEPTED_BY, text)
    row = make_row(case_id, Metric.DRIFT, status, reason=Reason.UNSETTLED, remarks=remarks)
    headline = make_facts(Code.REGRESSED_CASE, text)
    verdict = replace(verdicts["pass"], headline=headline, comparisons=(row,), failures=(failure,))

    assert parse_junit(render_junit(verdict)).tag == "testsuites"
