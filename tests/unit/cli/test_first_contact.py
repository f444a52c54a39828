"""``first-contact``, with a worker that asks nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from gate.cli import first_contact, main
from gate.contact.conductor import Contact


def test_nothing_asked_is_exit_12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker whose time is up before it asks is INCOMPLETE, in one line that names its log."""
    idle = partial(Contact, worker=("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(first_contact, "Contact", idle)
    monkeypatch.chdir(tmp_path)
    code = main(["first-contact", "--device", "cpu", "--minutes", "0.02", "--only", "clocks_agree"])
    log = Path("first-contact", "seen", "worker-0.log")
    assert (code, log.exists()) == (12, True)
    assert capsys.readouterr().out.splitlines() == [
        f"UNASKED  all: nothing was asked within 1.2 s; see {log}, or raise --minutes",
        "",
        "0 PROVED, 0 REFUTED, 0 TOLD, 1 UNASKED. All that was seen is in first-contact/first-contact.zip.",
    ]
