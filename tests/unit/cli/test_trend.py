"""A history is written by the commands that measure, and rendered by `trend`."""

import re
import sys
from pathlib import Path

import pytest

from gate.records.cases import Metric
from gate.store.history import (
    HistoryHead,
    HistoryKind,
    HistoryReading,
    append_line,
    make_history_line,
    read_history,
)
from tests.unit.cli.conftest import CASE_ID, CONFIG, Place


def test_runs_are_told_in_a_line_each_and_rendered(place: Place) -> None:
    """A check and a refresh, by the key of gate.yml and by the option."""
    (place.top / "gate.yml").write_text(f"history: perf/runs\n{CONFIG}", encoding="utf-8")
    assert place.run("check", "--quiet") == 0
    assert place.run("baseline", "refresh", "--quiet", "--reason", "again", "--history", "perf/runs") == 0
    lines = list(read_history(place.top / "perf/runs", HistoryReading()))
    assert {line.head.kind for line in lines} == {HistoryKind.CHECK, HistoryKind.BASELINE}
    check = next(line for line in lines if line.head.kind is HistoryKind.CHECK)
    assert check.head.torch == "2.13.0"
    assert re.fullmatch("acting-[0-9a-f]{8}", check.head.host)
    assert check.cases[CASE_ID][Metric.COMPILED_LATENCY][0] == pytest.approx(0.010, rel=0.05)
    place.read()
    assert place.run("trend") == 0
    assert "pages of 2 runs" in place.read().out
    assert CASE_ID in (place.top / "out/trend/index.html").read_text(encoding="utf-8")


def test_creep_is_told_by_a_run_against_the_anchor(place: Place) -> None:
    """Its figures are changes, and it names the anchor."""
    place.git("init", "--quiet", "--initial-branch=main")
    place.git("add", "gate.yml", "baselines")
    place.git("commit", "--quiet", "--message", "Begin")
    assert place.run("baseline", "anchor", "--reason", "a release") == 0
    place.plant("slowdown", 0.003)
    assert place.run("ab", "--anchor", "--quiet", "--history", "history.jsonl") == 10
    (line,) = read_history(place.top / "history.jsonl", HistoryReading())
    assert line.head.kind is HistoryKind.ANCHOR
    assert len(line.head.anchor) == 40
    assert line.cases[CASE_ID][Metric.COMPILED_LATENCY][0] == pytest.approx(0.3, abs=0.05)


def test_other_pairs_are_not_kept_in_silence(place: Place) -> None:
    """`ab` of two commits is no point of a line: asked to keep it, it refuses."""
    assert place.run("ab", "HEAD", "--history", "history.jsonl") == 2
    assert "--history: only comparisons with the release anchor are stored" in place.read().err


def test_without_ruptures_the_fix_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page says that nothing changed where nobody looked."""
    write_year(Path("h.jsonl"))
    monkeypatch.setitem(sys.modules, "ruptures", None)
    assert place.run("trend", "h.jsonl") == 2
    assert "pip install 'ruptures>=1.1.9'" in place.read().err


def write_year(path: Path) -> None:
    """Some runs, of which the last have another value."""
    for number in range(12):
        head = HistoryHead(
            id="",
            kind=HistoryKind.CHECK,
            created=f"2026-03-{number + 1:02}T03:00:00+00:00",
            machine="cpu: a",
        )
        append_line(
            path, make_history_line(head, {"a/x": {Metric.COMPILED_LATENCY: (0.02 if number > 5 else 0.01,)}})
        )


def test_a_history_that_cannot_be_written_changes_no_verdict(place: Place) -> None:
    """It is a warning."""
    (place.top / "file").write_text("", encoding="utf-8")
    assert place.run("check", "--quiet", "--history", "file/history.jsonl") == 0
    assert "this run is not in the history" in place.read().err


def test_what_cannot_be_read_is_told(place: Place) -> None:
    """Damaged lines by their place; nothing but damage is no 0; no history is a mistake of the caller."""
    Path("h.jsonl").write_text("{\n" * 8, encoding="utf-8")
    assert place.run("trend", "h.jsonl") == 3
    told = place.read().err
    assert "warning: h.jsonl:1: is no JSON: left out" in told
    assert "warning: 3 more lines were left out" in told
    assert place.run("trend") == 2
    assert "nothing says where the history is" in place.read().err
    assert place.run("trend", "none.jsonl") == 2


def test_a_history_is_compacted(place: Place) -> None:
    """Into one file a month of its directory; what is older than asked is left out."""
    for _ in range(2):
        assert place.run("check", "--quiet", "--history", "runs") == 0
    assert place.run("trend", "runs", "--compact", "--out", "site") == 0
    assert "2 runs" in place.read().out
    (file,) = Path("runs").iterdir()
    assert re.fullmatch(r"20\d\d-\d\d\.jsonl", file.name)
    assert Path("site/index.html").is_file()
    assert place.run("trend", "runs", "--since", "2999-01-01") == 3
    assert place.run("trend", "runs", "--since", "2020-01-01") == 0
    assert place.run("trend", "runs", "--since", "lately") == 2


def test_pages_may_lie_around_what_gate_yml_names(place: Place) -> None:
    """No results and no baselines are written, so nothing can be written over."""
    assert place.run("check", "--quiet", "--history", "runs") == 0
    assert place.run("trend", "runs", "--out", ".") == 0
    assert Path("index.html").is_file()
