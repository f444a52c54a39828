"""The pages of a calibration and of a selftest say what their texts say, and draw each rate."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from gate.report.calibration import study_calibration
from gate.report.page.pages import render_study_page
from gate.report.selftest import study_selftest
from tests.unit.report.page.reading import parse, read_text
from tests.unit.report.test_calibration import CALIBRATION
from tests.unit.report.test_selftest import BAD, OPEN, make_report

HOSTILE = "</td><script>alert(1)</script>"


def count_drawings(root: ET.Element) -> int:
    return sum(str(one.tag).endswith("}svg") for one in root.iter())


def test_calibration() -> None:
    """All tables of a calibration are on its page, and each replayed rate is drawn."""
    root, faults = parse(render_study_page(study_calibration(CALIBRATION)))

    text = read_text(root)
    assert not faults
    assert [title in text for title in ("Noise", "replayed")] == [True] * 2
    assert count_drawings(root) == len(CALIBRATION.replays)


def test_selftest() -> None:
    """A selftest that failed says so on top, with what failed, and each rate is drawn."""
    report = make_report(BAD)

    root, faults = parse(render_study_page(study_selftest(report)))

    assert not faults
    assert read_text(root).startswith("Skip to the content\nFAILED\n")
    assert count_drawings(root) == sum(score.rate is not None for score in report.scores)


def test_a_selftest_that_stayed_open() -> None:
    """It is no pass on its page either."""
    root, faults = parse(render_study_page(study_selftest(make_report(OPEN))))

    assert not faults
    assert read_text(root).startswith("Skip to the content\nINCONCLUSIVE\n")


def test_hostile_names() -> None:
    """A case's name stays text."""
    report = replace(make_report(BAD), case_ids=(HOSTILE,), untried=(HOSTILE,))

    root, faults = parse(render_study_page(study_selftest(report)))

    assert not faults
    assert len(list(root.iter("script"))) == 1
    assert read_text(root).count(HOSTILE) == 2
