"""What a run leaves in a history: what its verdict was made of."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli.output import append_run, read_other_days
from gate.files.entry import VERSION
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.records.cases import Case, Metric
from gate.records.facts import Disturbance
from gate.records.run import Conditions, Provenance, Run, Trial
from gate.store.history import HistoryKind, HistoryReading, read_history
from tests.hosts import CPU_HOST

CASE = Case(id="m/test", model="m")


def make_trial(index: int, seconds: float, *, disturbed: bool) -> Trial:
    """A trial of one compile with one graph break."""
    return Trial(
        case_id=CASE.id,
        index=index,
        samples={Metric.COLD_COMPILE_TIME: (seconds,), Metric.GRAPH_BREAKS: (1.0,)},
        conditions=Conditions(disturbances=(Disturbance.CROWDED,) if disturbed else ()),
    )


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
    """A disturbed trial's times are left out where a calm one tells, and its counts stay."""
    trials = tuple(
        make_trial(index, seconds, disturbed=one)
        for index, (seconds, one) in enumerate(zip((10.0, 40.0), disturbed, strict=True))
    )
    run = Run(cases=(CASE,), environment=CPU_HOST, provenance=Provenance(), trials=trials, finished=True)
    path = tmp_path / "history.jsonl"

    append_run(make_config(GateFile(version=VERSION, history=str(path))), run, HistoryKind.CHECK)

    (line,) = read_history(path, HistoryReading())
    assert line.cases[CASE.id][Metric.COLD_COMPILE_TIME][0] == pytest.approx(expected)
    assert line.cases[CASE.id][Metric.GRAPH_BREAKS][0] == 1.0


def test_a_check_reads_the_last_thirty_days(tmp_path: Path) -> None:
    """Of 19 November those since 20 October; a history that is not there yet has none."""
    path = tmp_path / "history.jsonl"
    config = make_config(GateFile(version=VERSION, history=str(path)))
    today = make_run_of("2026-11-19")
    assert read_other_days(config, today) == {}
    for day in ("2026-10-19", "2026-10-20", "2026-11-18", "2026-11-19"):
        append_run(config, make_run_of(day), HistoryKind.CHECK)
    assert read_other_days(config, today)[CASE.id][Metric.COLD_COMPILE_TIME] == (10.0, 10.0)
    assert read_other_days(replace(config, history=None), today) == {}


def make_run_of(day: str) -> Run:
    """A run of one trial on this day."""
    trials = (make_trial(1, 10.0, disturbed=False),)
    made = Provenance(created=f"{day}T12:00:00+00:00")
    return Run(cases=(CASE,), environment=CPU_HOST, provenance=made, trials=trials, finished=True)
