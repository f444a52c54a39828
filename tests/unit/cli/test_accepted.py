"""``compare --accepted``: what counts, what is reported, and what an acceptance never hides."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gate.cli import main
from gate.files.codec import RUN, VERDICT
from gate.fingerprint import compute_environment_id
from gate.records.cases import Acceptance, Metric
from gate.records.run import CaseFailure, Provenance, Run
from gate.records.verdict import Outcome, Status
from gate.store.commit_files import render_commit_file
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_run, make_trials
from tests.words import describe_comparison, write_notes

CASE = "bert/inference-float32-smoke-default"
COMMIT = "a" * 40
METRIC = Metric.GRAPH_BREAKS
BEFORE = "before.json"
LATER, PAST = (datetime.now(UTC) + timedelta(days=300)).date().isoformat(), "2026-01-01"
HERE: dict[str, Any] = {"gate": "gate.yml", "environment": compute_environment_id(CPU_HOST)}
LACK = Acceptance(case=CASE, reason="the first change with a gate", author="ada", expires=LATER, **HERE)


def run_case(graph_breaks: float, failures: tuple[CaseFailure, ...] = ()) -> Run:
    trials = make_trials(CASE, [{Metric.GRAPH_BREAKS: graph_breaks}] * 3)
    return make_run(*trials, provenance=Provenance(commit=COMMIT), failures=failures)


def accept(allowance: float, expires: str = LATER) -> Acceptance:
    return replace(LACK, metric=METRIC, allowance=allowance, reason="the new decoder", expires=expires)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a configuration and a stored run without graph breaks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "baselines").mkdir()
    RUN.save(run_case(0.0), tmp_path / "before.json")
    return tmp_path


def compare(
    directory: Path, run: Run, *accepted: Acceptance, commit: str = COMMIT, left: str = BEFORE
) -> int:
    """Judge a run with what was accepted of a commit, and return the exit code."""
    RUN.save(run, directory / "after.json")
    path = directory / "accepted.yml"
    path.write_text(render_commit_file(commit, accepted), encoding="utf-8")
    options = [f"--accepted={path}"] if accepted else []
    return main(["compare", left, "after.json", "--out", "out", *options])


def test_an_accepted_regression_passes_by_name(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two accepted graph breaks: ACCEPTED with author, last day and reason, and exit code 0."""
    assert compare(directory, run_case(2.0)) == 10
    capsys.readouterr()

    assert compare(directory, run_case(2.0), accept(2.0)) == 0

    verdict = VERDICT.load(directory / "out" / "verdict.json")
    (row,) = verdict.comparisons
    assert (verdict.outcome, row.status) == (Outcome.PASS, Status.ACCEPTED)
    assert describe_comparison(row).endswith(f"Accepted by ada until {LATER}: the new decoder.")
    assert "ACCEPTED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("accepted", "note"),
    [
        (accept(1.0), f"ada accepted up to 1 until {LATER}, and this is more"),
        (accept(2.0, PAST), "expired on 2026-01-01 and no longer counts"),
        (LACK, ""),
    ],
    ids=["a larger one", "expired", "a lack of baselines"],
)
def test_what_is_not_covered_stays_a_regression(directory: Path, accepted: Acceptance, note: str) -> None:
    """More than was accepted, an expired entry, and an accepted lack of baselines."""
    assert compare(directory, run_case(2.0), accepted) == 10
    verdict = VERDICT.load(directory / "out" / "verdict.json")
    assert verdict.outcome is Outcome.REGRESSION
    assert note in " ".join(write_notes(verdict))


def test_an_acceptance_hides_no_failure(directory: Path) -> None:
    """A case that crashed in a trial is INCOMPLETE, whatever is accepted of it."""
    crash = make_failure(CASE, trial=2, stage="warm")
    assert compare(directory, run_case(2.0, (crash,)), accept(2.0), LACK) == 12


def test_a_lack_of_baselines_can_be_taken(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The outcome stays NOTHING_COMPARED, the exit code is 0, and the notes name the author."""
    assert compare(directory, run_case(0.0), left="baselines") == 3
    capsys.readouterr()

    assert compare(directory, run_case(0.0), LACK, left="baselines") == 0

    verdict = VERDICT.load(directory / "out" / "verdict.json")
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    taken = f"ada accepts that there are no baselines until {LATER}: the first change with a gate."
    assert taken in write_notes(verdict)
    output = capsys.readouterr().out
    assert "!! NOTHING_COMPARED, BUT EXIT 0: somebody accepted that; the notes say who." in output


def test_a_lack_of_baselines_that_expired_is_not_taken(directory: Path) -> None:
    """After its last day the exit code is 3."""
    assert compare(directory, run_case(0.0), replace(LACK, expires=PAST), left="baselines") == 3


THERE = "cpu-another-torch2.13.0-1a2b3c4d"


def test_what_was_accepted_of_another_machine_passes_nothing(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a regression nor a lack of baselines: exit codes 10 and 3, with a note."""
    regressed, lacking = (replace(accepted, environment=THERE) for accepted in (accept(2.0), LACK))
    assert compare(directory, run_case(2.0), regressed) == 10
    assert compare(directory, run_case(2.0), lacking, left="baselines") == 3
    output = " ".join(capsys.readouterr().out.split())
    assert output.count(f"Accepted by ada for gate.yml on {THERE}, so it does not count") == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--config", "gate.yml"), 0),
        (("--config", "b/gate.yml"), 10),
        (("--gate", "b/gate.yml"), 10),  # as the action says it
        (("--gate", "gate.yml:slow"), 10),
        (("--gate", "gate.yml"), 0),
    ],
)
def test_what_was_accepted_of_another_gate_passes_nothing(
    directory: Path, options: tuple[str, ...], code: int
) -> None:
    """Two gate.yml of one repository, or two keys of one, have separate acceptances."""
    (directory / ".git").mkdir()
    (directory / "b").mkdir()
    shutil.copy(directory / "gate.yml", directory / "b")
    (directory / "commit.yml").write_text(render_commit_file(COMMIT, (accept(2.0),)), encoding="utf-8")
    RUN.save(run_case(2.0), directory / "after.json")
    assert main(["compare", "before.json", "after.json", "--accepted=commit.yml", *options]) == code


def test_acceptances_of_several_commits_add_up(directory: Path) -> None:
    """In a merge group an acceptance of either commit counts."""
    RUN.save(run_case(2.0), directory / "after.json")
    for name, accepted in (("a", (accept(2.0),)), ("b", ())):
        (directory / name).write_text(render_commit_file(name * 40, accepted), encoding="utf-8")
    assert main(["compare", BEFORE, "after.json", "--accepted=b", "--accepted=a"]) == 0


def test_a_broken_file_is_an_error_that_names_it(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and nothing is judged."""
    (directory / "broken.yml").write_text("version: 1\n", encoding="utf-8")
    assert main(["compare", "before.json", "before.json", "--accepted", "broken.yml"]) == 2
    assert "broken.yml: the key 'commit' is missing" in capsys.readouterr().err
