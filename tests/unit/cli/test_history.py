"""The history line of a run has the values of its verdict."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli.output import append_run, read_other_days
from gate.files.entry import VERSION
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.records.cases import Metric
from gate.records.run import Provenance, Run
from gate.store.history import HistoryKind, HistoryReading, read_history
from tests.make import make_run, make_trial

CASE = "m/test"


@pytest.mark.parametrize(
    ("disturbed", "expected"),
    [
        ((False, True), 10.0),  # the calm one alone
        ((False, False), 20.0),  # the geometric mean of both
        ((True, True), 20.0),  # both, for want of a calm one
    ],
)
def test_what_a_verdict_sets_aside_is_not_in_the_history(
    tmp_path: Path, disturbed: Sequence[bool], expected: float
) -> None:
    """A disturbed trial's times are left out if a calm one has them; its counts stay."""
    samples = ({Metric.COLD_COMPILE_TIME: seconds, Metric.GRAPH_BREAKS: 1.0} for seconds in (10.0, 40.0))
    run = make_run(
        *(make_trial(CASE, values, disturbed=is_so) for values, is_so in zip(samples, disturbed, strict=True))
    )
    path = tmp_path / "history.jsonl"

    append_run(make_config(GateFile(version=VERSION, history=str(path))), run, HistoryKind.CHECK)

    (line,) = read_history(path, HistoryReading())
    assert line.cases[CASE][Metric.COLD_COMPILE_TIME][0] == pytest.approx(expected)
    assert line.cases[CASE][Metric.GRAPH_BREAKS][0] == 1.0


def test_a_check_reads_the_last_thirty_days(tmp_path: Path) -> None:
    """On 19 November, those since 20 October; a missing history has none."""
    path = tmp_path / "history.jsonl"
    config = make_config(GateFile(version=VERSION, history=str(path)))
    today = make_run_of("2026-11-19")
    assert read_other_days(config, today) == {}
    for day in ("2026-10-19", "2026-10-20", "2026-11-18", "2026-11-19"):
        append_run(config, make_run_of(day), HistoryKind.CHECK)
    assert read_other_days(config, today)[CASE][Metric.COLD_COMPILE_TIME] == (10.0, 10.0)
    assert read_other_days(replace(config, history=None), today) == {}


def make_run_of(day: str) -> Run:
    """A run of one trial on this day."""
    trial = make_trial(CASE, {Metric.COLD_COMPILE_TIME: 10.0})
    return make_run(trial, provenance=Provenance(created=f"{day}T12:00:00+00:00"))
