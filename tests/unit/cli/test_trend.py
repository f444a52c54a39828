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
from tests.unit.cli.conftest import CASE_ID, CONFIG, Sandbox


def test_runs_are_listed_in_a_line_each_and_rendered(sandbox: Sandbox) -> None:
    """A check and a refresh, by the key of gate.yml and by the option."""
    (sandbox.top / "gate.yml").write_text(f"history: perf/runs\n{CONFIG}", encoding="utf-8")
    assert sandbox.run("check", "--quiet") == 0
    assert sandbox.run("baseline", "refresh", "--quiet", "--reason", "again", "--history", "perf/runs") == 0
    lines = list(read_history(sandbox.top / "perf/runs", HistoryReading()))
    assert {line.head.kind for line in lines} == {HistoryKind.CHECK, HistoryKind.BASELINE}
    check = next(line for line in lines if line.head.kind is HistoryKind.CHECK)
    assert check.head.torch == "2.13.0"
    assert re.fullmatch("acting-[0-9a-f]{8}", check.head.host)
    assert check.cases[CASE_ID][Metric.COMPILED_LATENCY][0] == pytest.approx(0.010, rel=0.05)
    sandbox.read()
    assert sandbox.run("trend") == 0
    assert "pages of 2 runs" in sandbox.read().out
    assert CASE_ID in (sandbox.top / "out/trend/index.html").read_text(encoding="utf-8")


def test_creep_is_shown_by_a_run_against_the_anchor(sandbox: Sandbox) -> None:
    """Its figures are changes, and it names the anchor."""
    sandbox.begin()
    assert sandbox.run("baseline", "anchor", "--reason", "a release") == 0
    sandbox.plant("slowdown", 0.003)
    assert sandbox.run("ab", "--anchor", "--quiet", "--history", "history.jsonl") == 10
    (line,) = read_history(sandbox.top / "history.jsonl", HistoryReading())
    assert line.head.kind is HistoryKind.ANCHOR
    assert len(line.head.anchor) == 40
    assert line.cases[CASE_ID][Metric.COMPILED_LATENCY][0] == pytest.approx(0.3, abs=0.05)


def test_other_pairs_are_not_kept_in_silence(sandbox: Sandbox) -> None:
    """`ab` of two commits is no point of a line: with --history it is refused."""
    assert sandbox.run("ab", "HEAD", "--history", "history.jsonl") == 2
    assert "--history: only comparisons with the release anchor are stored" in sandbox.read().err


def test_without_ruptures_the_fix_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without the search must not show that nothing changed."""
    write_year(Path("h.jsonl"))
    monkeypatch.setitem(sys.modules, "ruptures", None)
    assert sandbox.run("trend", "h.jsonl") == 2
    assert "pip install 'ruptures>=1.1.9'" in sandbox.read().err


def write_year(path: Path) -> None:
    """Write runs of which the last have another value."""
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


def test_a_history_that_cannot_be_written_changes_no_verdict(sandbox: Sandbox) -> None:
    """It is a warning."""
    (sandbox.top / "file").write_text("", encoding="utf-8")
    assert sandbox.run("check", "--quiet", "--history", "file/history.jsonl") == 0
    assert "this run is not in the history" in sandbox.read().err


def test_what_cannot_be_read_is_reported(sandbox: Sandbox) -> None:
    """Damaged lines are named; a history of only those is no 0; a missing one is the caller's mistake."""
    Path("h.jsonl").write_text("{\n" * 8, encoding="utf-8")
    assert sandbox.run("trend", "h.jsonl") == 3
    errors = sandbox.read().err
    assert "warning: h.jsonl:1: is no JSON: left out" in errors
    assert "warning: 3 more lines were left out" in errors
    assert sandbox.run("trend") == 2
    assert "nothing says where the history is" in sandbox.read().err
    assert sandbox.run("trend", "none.jsonl") == 2


def test_a_history_is_compacted(sandbox: Sandbox) -> None:
    """Into one file a month; runs older than --since are left out."""
    for _ in range(2):
        assert sandbox.run("check", "--quiet", "--history", "runs") == 0
    assert sandbox.run("trend", "runs", "--compact", "--out", "site") == 0
    assert "2 runs" in sandbox.read().out
    (file,) = Path("runs").iterdir()
    assert re.fullmatch(r"20\d\d-\d\d\.jsonl", file.name)
    assert Path("site/index.html").is_file()
    assert sandbox.run("trend", "runs", "--since", "2999-01-01") == 3
    assert sandbox.run("trend", "runs", "--since", "2020-01-01") == 0
    assert sandbox.run("trend", "runs", "--since", "lately") == 2


def test_pages_may_lie_around_what_gate_yml_names(sandbox: Sandbox) -> None:
    """No results and no baselines are written, so nothing can be replaced."""
    assert sandbox.run("check", "--quiet", "--history", "runs") == 0
    assert sandbox.run("trend", "runs", "--out", ".") == 0
    assert Path("index.html").is_file()
