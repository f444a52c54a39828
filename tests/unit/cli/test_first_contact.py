"""``first-contact``, with no time to run a test."""

from pathlib import Path

import pytest

from gate.cli import main


def test_nothing_tested_is_exit_12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the time is up before a test runs, that is INCOMPLETE, in one line that names the log."""
    monkeypatch.chdir(tmp_path)
    code = main(["first-contact", "--device", "cpu", "--minutes", "0.001"])
    log = Path("first-contact", "seen", "collection.log")
    assert (code, log.exists()) == (12, True)
    assert capsys.readouterr().out.splitlines() == [
        f"SKIPPED  all: no test ran within 0.1 s; see {log}, or raise --minutes",
        "",
        "0 PASSED, 0 FAILED, 0 INFO, 1 SKIPPED. All that was seen is in first-contact/first-contact.zip.",
    ]


def test_a_directory_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier run's files there are no others' files."""
    monkeypatch.chdir(tmp_path)
    command = ("first-contact", "--device", "cpu", "--minutes", "0.001", "--out", "contact")
    assert [main(command) for _ in range(2)] == [12, 12], capsys.readouterr().err
