"""No report of an earlier run is left to be read as a command's own."""

import errno
import os
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from gate.cli.output import remove_files
from gate.errors import UsageError
from gate.files.codec import RUN
from tests.unit.cli.conftest import CASE_ID, Sandbox, make_run

REPORTS = ("verdict.json", "report.md", "report.html", "junit.xml")


def write_reports(directory: Path) -> None:
    """Write the reports of an earlier run."""
    directory.mkdir(parents=True)
    for name in REPORTS:
        (directory / name).write_text("PASS", encoding="utf-8")


@pytest.mark.parametrize(
    "arguments", [("measure", "--quiet"), ("merge", "old.json", "--out", "out")], ids=["measure", "merge"]
)
def test_a_run_that_is_not_judged_leaves_no_verdict(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    """An old PASS next to a new run would be read as that one's."""
    write_reports(sandbox.top / "out")
    assert sandbox.run(*arguments) == 0
    assert {path.name for path in (sandbox.top / "out").iterdir()}.isdisjoint(REPORTS)
    sandbox.read()
    assert sandbox.run("report", "out") == 2
    errors = sandbox.read().err
    assert "there is no verdict in out: its run is still going on, was stopped, or only measured" in errors
    assert "with --resume, and it goes on from there; or judge what there is: compile-gate compare" in errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--quiet", "--base", "nowhere"),
        ("ab", "nowhere", "--quiet"),
        ("ab", "HEAD", "nowhere", "--quiet"),
        (
            "ab",
            "HEAD",
            "nowhere",
            "--quiet",
            "--base-python",
            sys.executable,
            "--head-python",
            sys.executable,
        ),
        ("compare", "baselines", "nowhere.json", "--out", "out"),
        ("calibrate", "--quiet", "--resume"),
        ("check", "--quiet", "--resume"),
    ],
    ids=" ".join,
)
def test_a_mistyped_name_costs_no_verdict(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    """A command that ends before it measures keeps the old verdict."""
    sandbox.begin()
    RUN.save(make_run(), sandbox.top / "out/run.json")  # of another environment: nothing continues it
    for name in REPORTS:
        (sandbox.top / "out" / name).write_text("PASS", encoding="utf-8")
    assert sandbox.run(*arguments) == 2
    assert {path.name for path in (sandbox.top / "out").iterdir()} >= set(REPORTS)


def test_a_report_that_cannot_be_removed_is_reported(sandbox: Sandbox) -> None:
    """A directory has its name: the command ends before anything is measured."""
    (sandbox.top / "out/junit.xml").mkdir(parents=True)
    assert sandbox.run("measure", "--quiet") == 2
    errors = sandbox.read().err
    assert "out/junit.xml cannot be replaced" in errors
    assert "Remove it, or name another directory with --out." in errors


def test_what_is_not_there_is_not_called_in_the_way(tmp_path: Path) -> None:
    """A read-only file system refuses to remove a missing file: the error comes at the write."""
    refused = OSError(errno.EROFS, os.strerror(errno.EROFS))
    with patch.object(Path, "unlink", side_effect=refused) as unlink:
        remove_files(tmp_path / "verdict.json")
        assert unlink.called
        (tmp_path / "verdict.json").touch()
        with pytest.raises(UsageError, match=os.strerror(errno.EROFS)):
            remove_files(tmp_path / "verdict.json")


def test_a_directory_may_have_a_dot_in_its_name(sandbox: Sandbox) -> None:
    """A release's name, say; a missing file is still reported."""
    out = "results-2.13"
    assert sandbox.run("compare", "old.json", "slow.json", "--out", out, "--quiet") == 10
    sandbox.read()
    assert sandbox.run("report", out) == 0
    assert CASE_ID in sandbox.read().out
    assert sandbox.run("report", "none-2.13") == 2
    assert not Path("none-2.13").exists()
