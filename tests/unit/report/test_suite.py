"""A suite's line of totals and its tables."""

from dataclasses import replace

import pytest

from gate.records.cases import Mode, Task
from gate.records.verdict import ModeRow, ScopeRow, SuiteRow, SuiteSummary, Verdict
from gate.report import render
from gate.report.content import describe_break_even, list_sections
from tests.unit.report.conftest import make_pass

WHOLE = SuiteRow(
    task=Task.INFERENCE,
    mode=Mode.DEFAULT,
    cases=3,
    speedup=1.42,
    cold_compile_s=11.24,
    warm_compile_s=2.31,
    memory_ratio=0.87,
    break_even_calls=2213.0,
    never_paid=1,
)
SUMMARY = SuiteSummary(
    rows=(WHOLE, SuiteRow(task=Task.INFERENCE, mode=Mode.DEFAULT, family="cnn", cases=1, speedup=1.42)),
    modes=(
        ModeRow(
            case_id="m/default",
            default_id="m/default",
            cold_compile_s=10.0,
            compiled_s=0.001,
            break_even_calls=400.0,
        ),
        ModeRow(
            case_id="m/max-autotune",
            default_id="m/default",
            cold_compile_s=25.0,
            compiled_s=0.002,
            break_even_calls=None,
        ),
        ModeRow(case_id="n/max-autotune", default_id="", cold_compile_s=25.0, compiled_s=0.002),
    ),
    scopes=(
        ScopeRow(case_id="d/whole", whole_id="d/whole", cold_compile_s=30.0, cold_ratio=1.0, speedup=1.5),
        ScopeRow(case_id="d/blocks", whole_id="d/whole", cold_compile_s=6.0, cold_ratio=0.2, speedup=1.25),
    ),
)


def make_verdict() -> Verdict:
    return replace(make_pass(), summary=SUMMARY)


def test_tables() -> None:
    """Rows are families, modes and scopes; an unmeasured value is a dash."""
    suite, modes, scopes = list_sections(make_verdict())

    assert suite.rows == (
        ("inference", "default", "all", "3", "1.42x", "11.2 s", "2.31 s", "0.870x", "2,213 (1 never)"),
        ("inference", "default", "cnn", "1", "1.42x", "-", "-", "-", "-"),
    )
    assert modes.rows == (
        ("m/default", "10.0 s", "1.00 ms", "400", "-"),
        ("m/max-autotune", "25.0 s", "2.00 ms", "never", "never"),
        ("n/max-autotune", "25.0 s", "2.00 ms", "never", "-"),
    )
    assert scopes.rows == (("d/whole", "30.0 s", "-", "1.50x"), ("d/blocks", "6.00 s", "0.200x", "1.25x"))


def test_a_suite_of_one_case_has_no_means() -> None:
    verdict = replace(make_pass(), summary=SuiteSummary(rows=(replace(WHOLE, cases=1),)))

    assert list_sections(verdict) == ()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [(replace(WHOLE, break_even_calls=None), "never"), (replace(WHOLE, never_paid=0), "2,213")],
)
def test_what_pays_back(row: SuiteRow, sentence: str) -> None:
    """All cases pay back, or none ever does."""
    assert describe_break_even(row) == sentence


def test_the_page_has_the_tables() -> None:
    """The page names the kind of mean."""
    page = render(make_verdict(), "html")
    assert "The suite, geometric means" in page
    assert "Modes: which pays back after how many calls" in page
