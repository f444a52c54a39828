"""``ab``: the run on disk while it measures, and what its two sides may be."""

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
from tests.unit.cli.conftest import Sandbox


def test_a_run_is_finished_once_its_pairs_are(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill before the first pair, or between two, leaves a run that is marked as stopped."""
    sandbox.begin()
    with (sandbox.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("# changed\n")
    saved: list[tuple[bool, int]] = []

    keep = RunSaver.keep

    def watch(saver: RunSaver, make_run: Callable[[], Run], *, finished: bool = False) -> None:
        saved.append((finished, len(make_run().trials)))
        keep(saver, make_run, finished=finished)

    monkeypatch.setattr(RunSaver, "keep", watch)
    assert sandbox.run("ab", "HEAD", "--quiet") == 0
    *before, (finished, trials) = saved
    assert finished
    assert before[0] == (False, 0)
    assert before[-1] == (False, trials)
    assert not any(finished for finished, _ in before)


def break_base(sandbox: Sandbox) -> None:
    """Commit a project whose case crashes, and repair it in the working tree."""
    sandbox.plant("crash")
    sandbox.begin()
    sandbox.git("add", "fault.json")
    sandbox.git("commit", "--quiet", "--message", "Crash")
    (sandbox.top / "fault.json").unlink()


@pytest.mark.parametrize(
    ("repaired", "status", "reason"),
    [(True, Status.NOT_COMPARABLE, Reason.UNPAIRED), (False, Status.FAILED, Reason.CASE_FAILED)],
)
def test_a_case_that_fails_in_the_base_is_measured_all_the_same(
    sandbox: Sandbox, repaired: bool, status: Status, reason: Reason
) -> None:
    """A change that repairs it has no base to compare with; one that does not has failed too."""
    break_base(sandbox)
    with (sandbox.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("# changed\n")
    if not repaired:
        sandbox.plant("crash")
    sandbox.run("ab", "HEAD", "--quiet")
    verdict = VERDICT.load(sandbox.top / "out" / "verdict.json")
    rows = {(row.status, row.reason) for row in verdict.comparisons if row.metric is Metric.COMPILED_LATENCY}
    assert (status, reason) in rows
    assert (Status.MISSING, Reason.NOT_RUN) not in rows


def test_code_and_interpreter_are_not_compared_at_once(sandbox: Sandbox) -> None:
    """Nobody would know which of the two changed something; nothing is removed."""
    sandbox.begin()
    assert sandbox.run("ab", "HEAD", "--head-python", sys.executable, "--quiet") == ExitCode.USAGE
    assert "Compare the interpreters without BASE first" in sandbox.read().err


def test_a_directory_without_gate_yml_is_measured_by_yours(sandbox: Sandbox) -> None:
    """Your configuration measures its models; nothing is written into it."""
    other = sandbox.top.parent / "other"
    other.mkdir()
    (other / "actor.py").touch()
    sandbox.plant("graph_break")
    assert sandbox.run("ab", str(other)) == ExitCode.REGRESSION
    assert "the base has no gate.yml: yours is used for both sides" in sandbox.read().err
    assert [path.name for path in other.iterdir()] == ["actor.py"]


def test_two_interpreters_are_named_to_measure_again(sandbox: Sandbox, tmp_path: Path) -> None:
    """Both run one torch and one code, but are two stacks, which a command can name."""
    pythons = [tmp_path / name for name in ("old", "new")]
    for python in pythons:
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
    sandbox.begin()
    old, new = map(str, pythons)
    assert sandbox.run("ab", "--base-python", old, "--head-python", new, "--quiet") == 0
    base = VERDICT.load(sandbox.top / "out" / "verdict.json").base
    assert base is not None
    assert (base.other_stack, base.pythons) == (True, (old, new))
    assert write_ab(["a"], base) == f"compile-gate ab --base-python {old} --head-python {new} --select a"
