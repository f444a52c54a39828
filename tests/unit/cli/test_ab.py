"""``ab``: what is on disk while it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.cli import ab
from gate.files.codec import save_run
from gate.records import Run
from tests.unit.cli.conftest import Place
from tests.unit.cli.ways import begin_repository


def test_a_run_is_finished_once_its_pairs_are(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill leaves before the first pair, and between two, says that the run was stopped."""
    begin_repository(place)
    with (place.top / "gate.yml").open("a", encoding="utf-8") as config:
        config.write("# changed\n")
    saved: list[tuple[bool, int]] = []

    def watch(run: Run, path: Path) -> None:
        saved.append((run.finished, len(run.trials)))
        save_run(run, path)

    monkeypatch.setattr(ab, "save_run", watch)
    assert place.run("ab", "HEAD", "--quiet") == 0
    *before, (finished, trials) = saved
    assert finished
    assert before[0] == (False, 0)
    assert before[-1] == (False, trials)
    assert not any(finished for finished, _ in before)
