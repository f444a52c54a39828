"""The pages of a calibration and of a selftest: their tables, with each rate drawn; pure."""

from __future__ import annotations

from gate.records.calibration import Calibration, Rate
from gate.records.selftest import SelftestReport
from gate.report.calibration import describe_calibration, list_sections, list_unstable
from gate.report.clean import clean_line
from gate.report.page.charts import Interval, draw_interval
from gate.report.page.drawing import Drawing
from gate.report.page.layout import render_page
from gate.report.selftest import describe_result, describe_selftest, list_shortcomings, list_tables
from gate.report.view import Section
from gate.report.words.notes import write_note

# Of what a selftest comes to.
_KINDS = {"PASSED": "good", "FAILED": "bad", "INCONCLUSIVE": "unsure", "INCOMPLETE": "unsure"}


def render_calibration_page(calibration: Calibration) -> str:
    """Return the page of a calibration."""
    unstable = list_unstable(calibration)
    return render_page(
        "study.html",
        title="calibration",
        kind="unsure" if calibration.unstable else "good",
        outcome="CALIBRATION",
        headline=clean_line(unstable[0]),
        facts=describe_calibration(calibration),
        lines=tuple(map(clean_line, unstable[1:])),
        sections=tuple(map(_draw_rates, list_sections(calibration))),
        notes=tuple(clean_line(write_note(note)) for note in calibration.notes),
    )


def render_selftest_page(report: SelftestReport) -> str:
    """Return the page of a selftest."""
    outcome, headline = describe_result(report)
    untried = (f"Not tried: {', '.join(report.untried)}.",) if report.untried else ()
    return render_page(
        "study.html",
        title=f"selftest: {outcome}",
        kind=_KINDS[outcome],
        outcome=outcome,
        headline=headline,
        facts=describe_selftest(report),
        lines=tuple(map(clean_line, list_shortcomings(report))),
        sections=tuple(map(_draw_rates, list_tables(report))),
        notes=tuple(map(clean_line, untried)),
    )


def _draw_rates(section: Section) -> tuple[Section, tuple[Drawing | None, ...]]:
    """A drawing for each row of a section, of its share between none and all."""
    return section, tuple(_draw_rate(rate) for rate in section.rates)


def _draw_rate(rate: Rate | None) -> Drawing | None:
    if rate is None or not rate.of:
        return None
    label = f"{100 * rate.share:.1f} %, interval {100 * rate.low:.1f} to {100 * rate.high:.1f} %"
    interval = Interval(centre=rate.share, low=rate.low, high=rate.high)
    return draw_interval(label, interval, (0.0, 1.0), (0.0,))
