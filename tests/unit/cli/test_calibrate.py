"""``calibrate`` on trials that were recorded before: no compiler, no torch."""

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gate.cli.parser import make_parser
from gate.cli.recording import run_calibrate
from gate.errors import ExitCode, MachineError, UsageError
from gate.files.codec import CALIBRATION, RUN
from gate.records.cases import Case, Metric
from gate.records.facts import Disturbance
from gate.records.run import CaseFailure, Conditions
from gate.records.studies import Calibration
from tests.make import make_failure, make_run, make_trials
from tests.words import write_note

CONFIG = "version: 1\nrefresh_trials: 4\nmax_trials: 2\n"
CASE = Case(id="m/x", model="m", factory="m:f", definition="d")


CROWDED = Conditions(foreign_cores=1.8, disturbances=(Disturbance.CROWDED,))


def calibrate(
    directory: Path,
    failures: tuple[CaseFailure, ...] = (),
    count: int = 9,
    noise: float = 0.01,
    config: str = CONFIG,
) -> tuple[int, Calibration]:
    """Calibrate on this number of trials of one case, with this noise."""
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    samples = [{Metric.COMPILED_LATENCY: math.exp(rng.gauss(-4, noise))} for _ in range(count)]
    run = make_run(*make_trials(CASE.id, samples), cases=(CASE,), failures=failures)
    RUN.save(run, directory / "recorded.json")
    (directory / "gate.yml").write_text(config, encoding="utf-8")
    return run_on(directory)


def run_on(directory: Path, *options: str) -> tuple[int, Calibration]:
    """Calibrate on the recorded run of a directory."""
    places = ("--config", str(directory / "gate.yml"), "--out", str(directory / "out"))
    recorded = ("--run", str(directory / "recorded.json"), "--requests", "20")
    code = run_calibrate(make_parser().parse_args(["calibrate", *places, *recorded, *options]))
    return code, CALIBRATION.load(directory / "out" / "calibration.json")


def test_a_recorded_run_is_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file holds the configuration's plan of a check, whatever --trials is, and the text names it."""
    code, calibration = calibrate(tmp_path)
    assert code == ExitCode.PASS
    assert (calibration.effort.baseline_trials, calibration.effort.trials) == (4, 1)
    assert (calibration.effort.max_trials, calibration.effort.requests) == (2, 20)
    assert [replay.regressed.of for replay in calibration.replays] == [20, 5, 5]
    printed = capsys.readouterr().out
    assert "takes 1 to 2 trials a case, against 4 that are stored" in printed
    assert f"Wrote {tmp_path / 'out' / 'calibration.json'}." in printed


def test_a_machine_that_others_use_is_no_evidence_about_a_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Disturbed trials that vary by 40 % are refused; with --anyway no case is called unstable."""
    _, calm = calibrate(tmp_path, noise=0.4)
    assert {case.case_id for case in calm.unstable} == {CASE.id}
    run = RUN.load(tmp_path / "recorded.json")
    trials = tuple(replace(trial, conditions=CROWDED) for trial in run.trials)
    RUN.save(replace(run, trials=trials), tmp_path / "recorded.json")
    with pytest.raises(MachineError, match=r"fewer than 3 undisturbed trials came back of m/x"):
        run_on(tmp_path)
    capsys.readouterr()
    _, crowded = run_on(tmp_path, "--anyway")
    assert (crowded.unstable, crowded.disturbed) == ((), (CASE.id,))
    output = capsys.readouterr().out
    assert "Too few undisturbed trials to call the times of these unstable: m/x" in output
    assert "quarantine" not in output


def test_recorded_runs_are_pooled(tmp_path: Path) -> None:
    """The same nine trials twice are eighteen."""
    calibrate(tmp_path)
    recorded, out = str(tmp_path / "recorded.json"), str(tmp_path / "out")
    options = ["--config", str(tmp_path / "gate.yml"), "--out", out, "--requests", "4"]
    run_calibrate(make_parser().parse_args(["calibrate", "--run", recorded, recorded, *options]))
    assert CALIBRATION.load(tmp_path / "out" / "calibration.json").trials == 18


def test_a_failure_is_shown_by_the_exit_code(tmp_path: Path) -> None:
    """A case that crashed in one trial makes the calibration incomplete and is in it."""
    failure = make_failure(CASE.id)
    code, calibration = calibrate(tmp_path, (failure,))
    assert code == ExitCode.INCOMPLETE
    assert calibration.failures == (failure,)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_trials_show_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int) -> None:
    """A case without a second value has no figure: exit 12 and a note."""
    code, calibration = calibrate(tmp_path, count=count)
    assert code == ExitCode.INCOMPLETE
    assert "Not enough trials of m/x: it takes 2 trials of a case." in tuple(
        map(write_note, calibration.notes)
    )
    assert [noise.detectable for noise in calibration.noise] == [None] * count
    assert "0.0 %" not in capsys.readouterr().out
    assert calibrate(tmp_path, count=2)[0] == ExitCode.PASS


@pytest.mark.parametrize("option", [["--trials", "7"], ["--pairs", "0"], ["--resume"]])
def test_recorded_runs_are_not_measured(tmp_path: Path, option: list[str]) -> None:
    """An option of measuring is refused with runs that are measured already."""
    (tmp_path / "gate.yml").write_text(CONFIG, encoding="utf-8")
    config = ["--config", str(tmp_path / "gate.yml")]
    options = make_parser().parse_args(["calibrate", *config, "--run", "recorded.json", *option])
    with pytest.raises(UsageError, match=option[0]):
        run_calibrate(options)


def test_what_is_in_quarantine_is_calibrated_as_if_it_were_not(tmp_path: Path) -> None:
    """30 % noise of a quarantined case must show, to decide whether it may leave."""
    expires = datetime.now(UTC).date() + timedelta(days=9)
    entry = f"{{case: '*', metric: compiled_latency, reason: noise, owner: a, expires: {expires}}}"
    quarantine = f"quarantine: [{entry}]\n"
    _, free = calibrate(tmp_path, noise=0.3)
    _, kept = calibrate(tmp_path, noise=0.3, config=CONFIG + quarantine)
    assert free.replays[0].inconclusive.hits > 0
    assert kept.replays == free.replays
