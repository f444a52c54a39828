"""Whole reports as golden files, one a situation."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gate.records.verdict import Verdict
from gate.report import FORMATS, render
from gate.report.text import Detail, render_text
from tests.golden_files import check_golden

# The page has tests of its own, in page/, and JSON is read back.
_NOT_STORED = frozenset({"html", "json"})


@pytest.mark.parametrize("report_format", [name for name in FORMATS if name not in _NOT_STORED])
def test_situation(situation: tuple[str, Verdict], report_format: str) -> None:
    """Each situation has its stored report."""
    name, verdict = situation

    suffix = Path(FORMATS[report_format].file or "report.txt").suffix
    check_golden(f"report/{name}{suffix}", render(verdict, report_format))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_widths(verdicts: Mapping[str, Verdict], width: int) -> None:
    """The widest report fits a narrow terminal and uses a wide one."""
    report = render_text(verdicts["regression"], width=width)

    wrapped = [line for line in report.splitlines() if "compile-gate " not in line]
    assert max(map(len, wrapped)) <= width
    check_golden(f"report/regression-{width}.txt", report)


def test_everything(verdicts: Mapping[str, Verdict]) -> None:
    """With -v unchanged comparisons are shown."""
    check_golden(
        "report/inconclusive-everything.txt", render_text(verdicts["inconclusive"], detail=Detail.EVERYTHING)
    )
