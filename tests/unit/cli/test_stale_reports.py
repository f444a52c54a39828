"""What a command leaves is its own: nothing of an earlier run is read as its verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import CASE_ID, Place

REPORTS = ("verdict.json", "report.md", "report.html", "junit.xml")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("measure", "--quiet"), 0),
        (("check", "--quiet", "--base", "nowhere"), 2),
        (("ab", "nowhere", "--quiet"), 2),
        (("merge", "old.json", "--out", "out"), 0),
        (("compare", "baselines", "nowhere.json", "--out", "out"), 2),
    ],
    ids=["measure", "check", "ab", "merge", "compare"],
)
def test_a_command_that_does_not_judge_leaves_no_verdict(
    place: Place, arguments: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Yesterday's PASS is gone, also that of a two-factor ``ab``, so a step that always runs uploads none."""
    directories = [place.top / "out", *([place.top / "out/code"] if arguments[0] == "ab" else [])]
    for directory in directories:
        directory.mkdir()
        for name in REPORTS:
            (directory / name).write_text("PASS", encoding="utf-8")
    assert place.run(*arguments) == code
    left = [path.name for directory in directories for path in directory.iterdir()]
    assert not set(REPORTS) & set(left)
    capsys.readouterr()
    assert place.run("report", "out") == 2
    assert "there is no verdict in out" in capsys.readouterr().err


def test_a_report_that_cannot_be_removed_is_told(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory of its name: the command ends before anything is measured."""
    (place.top / "out/junit.xml").mkdir(parents=True)
    assert place.run("measure", "--quiet") == 2
    told = capsys.readouterr().err
    assert "out/junit.xml cannot be replaced" in told
    assert "Remove it, or name another directory with --out." in told


def test_a_directory_may_have_a_dot_in_its_name(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Named after a release, say; a file that is not there is still told."""
    out = "results-2.13"
    assert place.run("compare", "old.json", "slow.json", "--out", out, "--quiet") == 10
    capsys.readouterr()
    assert place.run("report", out) == 0
    assert CASE_ID in capsys.readouterr().out
    assert place.run("report", "none-2.13") == 2
    assert not Path("none-2.13").exists()
