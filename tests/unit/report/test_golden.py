"""Whole reports, one a situation, as a person would see them.

To rewrite the files after a wanted change: ``GATE_WRITE_GOLDEN=1 pytest tests/unit/report/test_golden.py``,
then read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gate.records import Verdict
from gate.report import FORMATS, render
from gate.report.text import Detail, render_text

DIRECTORY = Path(__file__).parents[2] / "golden" / "report"
WRITE = "GATE_WRITE_GOLDEN"


def check_golden(name: str, actual: str) -> None:
    path = DIRECTORY / name
    if os.environ.get(WRITE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8", newline="\n")
        pytest.skip(f"rewrote {name}: read the diff")
    assert path.exists(), f"{name} is missing: write it with {WRITE}=1"
    assert path.read_text(encoding="utf-8") == actual


# The page has tests of its own, in page/, and JSON is read back.
_NOT_STORED = frozenset({"html", "json"})


@pytest.mark.parametrize("report_format", [name for name in FORMATS if name not in _NOT_STORED])
def test_situation(situation: tuple[str, Verdict], report_format: str) -> None:
    """Each situation reads as its stored report."""
    name, verdict = situation

    suffix = Path(FORMATS[report_format].file or "report.txt").suffix
    check_golden(f"{name}{suffix}", render(verdict, report_format))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_widths(verdicts: Mapping[str, Verdict], width: int) -> None:
    """The widest report fits a narrow terminal and uses a wide one."""
    report = render_text(verdicts["regression"], width=width)

    wrapped = [line for line in report.splitlines() if "compile-gate " not in line]
    assert max(map(len, wrapped)) <= width
    check_golden(f"regression-{width}.txt", report)


def test_everything(verdicts: Mapping[str, Verdict]) -> None:
    """With -v unchanged comparisons are shown too."""
    check_golden(
        "inconclusive-everything.txt", render_text(verdicts["inconclusive"], detail=Detail.EVERYTHING)
    )
