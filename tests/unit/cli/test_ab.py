"""``ab``: what is on disk while it measures."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.cli.output import RunSaver
from gate.errors import ExitCode
from gate.files.codec import VERDICT
from gate.records.cases import Metric
from gate.records.run import Run
from gate.records.verdict import Reason, Status
from gate.report.words.steps import write_ab
from tests.unit.cli.conftest import Place
from tests.unit.cli.sides import begin_repository


def test_a_run_is_finished_once_its_pairs_are(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill leaves before the first pair, and between two, says that the run was stopped."""
    begin_repository(place)
    with (place.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("# changed\n")
    saved: list[tuple[bool, int]] = []

    keep = RunSaver.keep

    def watch(saver: RunSaver, make_run: Callable[[], Run], *, finished: bool = False) -> None:
        saved.append((finished, len(make_run().trials)))
        keep(saver, make_run, finished=finished)

    monkeypatch.setattr(RunSaver, "keep", watch)
    assert place.run("ab", "HEAD", "--quiet") == 0
    *before, (finished, trials) = saved
    assert finished
    assert before[0] == (False, 0)
    assert before[-1] == (False, trials)
    assert not any(finished for finished, _ in before)


def break_base(place: Place) -> None:
    """Commit a project whose case crashes, and repair it in the working tree."""
    place.plant("crash")
    begin_repository(place)
    place.git("add", "fault.json")
    place.git("commit", "--quiet", "--message", "Crash")
    (place.top / "fault.json").unlink()


@pytest.mark.parametrize(
    ("repaired", "status", "reason"),
    [(True, Status.NOT_COMPARABLE, Reason.UNPAIRED), (False, Status.FAILED, Reason.CASE_FAILED)],
)
def test_a_case_that_fails_in_the_base_is_measured_all_the_same(
    place: Place, repaired: bool, status: Status, reason: Reason
) -> None:
    """A change that repairs it has nothing to be held against; one that does not has failed as well."""
    break_base(place)
    with (place.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("# changed\n")
    if not repaired:
        place.plant("crash")
    place.run("ab", "HEAD", "--quiet")
    verdict = VERDICT.load(place.top / "out" / "verdict.json")
    rows = {(row.status, row.reason) for row in verdict.comparisons if row.metric is Metric.COMPILED_LATENCY}
    assert (status, reason) in rows
    assert (Status.MISSING, Reason.NOT_RUN) not in rows


def test_code_and_interpreter_are_not_compared_at_once(place: Place) -> None:
    """Nobody could tell which of the two changed something: one after the other, and nothing is removed."""
    begin_repository(place)
    assert place.run("ab", "HEAD", "--head-python", sys.executable, "--quiet") == ExitCode.USAGE
    assert "Compare the interpreters without BASE first" in place.read().err


def test_a_directory_without_gate_yml_is_measured_by_yours(place: Place) -> None:
    """Its own models, as a commit without one; nothing is written into it."""
    other = place.top.parent / "other"
    other.mkdir()
    (other / "actor.py").touch()
    place.plant("graph_break")
    assert place.run("ab", str(other)) == ExitCode.REGRESSION
    assert "the base has no gate.yml: yours is used for both sides" in place.read().err
    assert [path.name for path in other.iterdir()] == ["actor.py"]


def test_two_interpreters_are_named_to_measure_again(place: Place, tmp_path: Path) -> None:
    """Both run one torch and one code, and are two stacks all the same, which a command can name."""
    pythons = [tmp_path / name for name in ("old", "new")]
    for python in pythons:
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
    begin_repository(place)
    old, new = map(str, pythons)
    assert place.run("ab", "--base-python", old, "--head-python", new, "--quiet") == 0
    base = VERDICT.load(place.top / "out" / "verdict.json").base
    assert base is not None
    assert (base.other_stack, base.pythons) == (True, (old, new))
    assert write_ab(["a"], base) == f"compile-gate ab --base-python {old} --head-python {new} --select a"
