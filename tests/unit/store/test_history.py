"""Appended history lines are read again, with other writers at work and after damage."""

import errno
import io
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError, GateError, MachineError
from gate.records.cases import Metric
from gate.store.history import (
    HistoryHead,
    HistoryKind,
    HistoryLine,
    HistoryReading,
    append_line,
    compact_history,
    make_history_line,
    read_days,
    read_history,
)

HEAD = HistoryHead(id="", kind=HistoryKind.CHECK, created="2026-03-01T10:00:00+00:00", machine="cpu: a")
ROOT = Path(__file__).parents[3]


def write(path: Path, *values: float) -> list[HistoryLine]:
    """Append a line for each value."""
    lines = [
        make_history_line(HEAD, {"a/x": {Metric.COMPILED_LATENCY: (value, value, value)}}) for value in values
    ]
    for line in lines:
        append_line(path, line)
    return lines


@pytest.mark.parametrize("name", ["history.jsonl", "history"])
def test_what_is_appended_is_read_again(tmp_path: Path, name: str) -> None:
    """A file, or a directory with a file for each run; the same line twice is one run."""
    path, reading = tmp_path / "new" / "deep" / name, HistoryReading()
    lines = write(path, 1.0, 2.0, 2.0)
    stored = list(read_history(path, reading))
    assert sorted(stored, key=lambda line: line.head.id) == sorted(
        set_of(lines), key=lambda line: line.head.id
    )
    assert reading.lines == 2
    assert reading.damaged == []
    assert path.is_dir() == (name == "history")


def set_of(lines: list[HistoryLine]) -> list[HistoryLine]:
    """The distinct lines."""
    return list({line.head.id: line for line in lines}.values())


def test_a_line_that_was_torn_is_reported_and_loses_no_other(tmp_path: Path) -> None:
    """After a writer was killed amid its line, the next line begins on its own."""
    path, reading = tmp_path / "history.jsonl", HistoryReading()
    write(path, 1.0)
    torn = path.read_bytes()[:-20]
    path.write_bytes(path.read_bytes() + torn)
    (line,) = write(path, 2.0)
    lines = list(read_history(path, reading))
    assert [entry.cases["a/x"][Metric.COMPILED_LATENCY][0] for entry in lines] == [1.0, 2.0]
    assert lines[1] == line
    assert [damage.partition(": ")[0] for damage in reading.damaged] == [f"{path}:2"]
    path.write_bytes(path.read_bytes()[:-5])
    assert "was not written to its end" in list_damage(path)[-1]


def test_a_mark_of_the_encoding_costs_no_line(tmp_path: Path) -> None:
    """An editor or a shell wrote a byte order mark before the first line."""
    path, reading = tmp_path / "history.jsonl", HistoryReading()
    (line,) = write(path, 1.0)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert (list(read_history(path, reading)), reading.damaged) == ([line], [])


def list_damage(path: Path) -> list[str]:
    """The messages about lines that are left out."""
    reading = HistoryReading()
    list(read_history(path, reading))
    return reading.damaged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "compile-gate/history/2"}, "schema"),
        ({"created": "yesterday"}, "created"),
        ({"kind": "party"}, "kind"),
        ({"machine": 1}, "machine"),
        ({"cases": {"a": {"drift": [1, 2]}}}, "cases.a.drift"),
        ({"cases": {"a": {"drift": ["1"]}}}, "cases.a.drift"),
        ({"cases": {"a": {"drift": [True]}}}, "cases.a.drift"),
        ({"cases": {"a": {"drift": [10**400]}}}, "cases.a.drift"),
        ({"cases": {"\ud800": {"drift": [1]}}}, "UTF-8"),
    ],
)
def test_a_line_that_is_wrong_is_reported_with_its_key(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    """Nothing of it is taken."""
    path = tmp_path / "history.jsonl"
    write(path, 1.0)
    plain = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(plain | change) + "\n", encoding="utf-8")
    (damage,) = list_damage(path)
    assert message in damage


@pytest.mark.parametrize(("size", "count"), [(16 * 1024 * 1024, 1), (16 * 1024 * 1024 + 1, 0)])
def test_a_line_may_have_sixteen_mebibytes(tmp_path: Path, size: int, count: int) -> None:
    """A larger one is no run's: it is left out before it is parsed."""
    path, reading = tmp_path / "history.jsonl", HistoryReading()
    write(path, 1.0)
    path.write_bytes(path.read_bytes().removesuffix(b"\n").ljust(size - 1) + b"\n")
    assert len(list(read_history(path, reading))) == count
    assert len(reading.damaged) == 1 - count


@pytest.mark.parametrize("figure", [math.nan, math.inf])
def test_a_figure_that_is_no_number_is_not_written(figure: float) -> None:
    """No reader would take its line."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        make_history_line(HEAD, {"a/x": {Metric.DRIFT: (figure,)}})


@given(data=st.binary(max_size=200))
def test_no_bytes_break_a_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """The line before any damage is read."""
    path = tmp_path_factory.mktemp("bytes") / "history.jsonl"
    (line,) = write(path, 1.0)
    with path.open("ab") as file:
        file.write(data)
    assert next(read_history(path, HistoryReading())) == line


def test_a_key_and_a_metric_of_another_release_are_left_out(tmp_path: Path) -> None:
    """The rest of their line counts, and a compaction keeps all of it."""
    path = tmp_path / "history.jsonl"
    write(path, 1.0)
    text = path.read_text(encoding="utf-8").replace(
        '"compiled_latency":', '"novelty":[1],"compiled_latency":'
    )
    text = text.replace('"cases":', '"outcome":"PASS","cases":')
    path.write_text(text, encoding="utf-8")
    (line,) = read_history(path, HistoryReading())
    assert list(line.cases["a/x"]) == [Metric.COMPILED_LATENCY]
    compact_history(path)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("is_directory", [False, True])
def test_what_is_no_history_is_not_emptied(tmp_path: Path, is_directory: bool) -> None:
    """A wrong path, or a pointer of Git LFS, keeps its text."""
    path = tmp_path / "notes.jsonl"
    path.write_text("my own notes\n", encoding="utf-8")
    with pytest.raises(FileError, match="holds no run that can be read"):
        compact_history(tmp_path if is_directory else path)
    assert [(file.name, file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()] == [
        ("notes.jsonl", "my own notes\n")
    ]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Four processes append 25 lines each, while one compacts the file again and again."""
    path = tmp_path / "history.jsonl"
    write(path, 0.5)
    code = (
        "import sys; from pathlib import Path; from tests.unit.store.test_history import write\n"
        "write(Path(sys.argv[1]), *[int(sys.argv[2]) * 100.0 + n for n in range(1, 26)])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(number)], env=environment, cwd=ROOT)
        for number in range(4)
    ]
    while any(writer.poll() is None for writer in writers):
        compact_history(path)
    assert [writer.returncode for writer in writers] == [0] * 4
    reading = HistoryReading()
    values = {line.cases["a/x"][Metric.COMPILED_LATENCY][0] for line in read_history(path, reading)}
    assert values == {0.5} | {number * 100.0 + n for number in range(4) for n in range(1, 26)}
    assert reading.damaged == []


def test_a_directory_is_compacted_into_a_file_a_month(tmp_path: Path) -> None:
    """In the order of time; repeated and damaged lines are gone, and more can be appended."""
    path = tmp_path / "history"
    write(path, 1.0, 2.0)
    append_line(path, make_history_line(replace(HEAD, created="2025-12-31T23:59:00+00:00"), {"a/x": {}}))
    (path / "torn.jsonl").write_text('{"schema"', encoding="utf-8")
    reading = compact_history(path)
    assert (reading.lines, len(reading.damaged)) == (3, 1)
    assert sorted(file.name for file in path.iterdir()) == ["2025-12.jsonl", "2026-03.jsonl"]
    write(path, 2.0, 3.0)
    append_line(path, make_history_line(replace(HEAD, created="2026-03-02T09:00:00+00:00"), {"a/x": {}}))
    reading = compact_history(path)
    assert reading.lines == 5
    days = [line.head.created[8:10] for line in read_history(path / "2026-03.jsonl", HistoryReading())]
    assert days == ["01", "01", "01", "02"]
    assert sorted(file.name for file in path.iterdir()) == ["2025-12.jsonl", "2026-03.jsonl"]


@pytest.mark.parametrize("name", ["history.jsonl", "history"])
def test_runs_are_compacted_in_the_order_of_their_times(tmp_path: Path, name: str) -> None:
    """Whoever wrote first; the files of a directory are read by their days before that."""
    path, days = tmp_path / name, ("07", "02", "31", "19", "11", "05", "23", "14")
    for day in days:
        append_line(path, make_history_line(replace(HEAD, created=f"2026-03-{day}T00:00:00+00:00"), {}))
    written = [line.head.created[8:10] for line in read_history(path, HistoryReading())]
    assert written == (sorted(days) if path.is_dir() else [*days])
    compact_history(path)
    assert [line.head.created[8:10] for line in read_history(path, HistoryReading())] == sorted(days)


def test_what_is_old_can_be_left_out(tmp_path: Path) -> None:
    """Its day alone decides: a damaged old line is not reported."""
    path = tmp_path / "history.jsonl"
    write(path, 1.0, 2.0)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"schema":"compile-gate/history/1","created":"2026-02-28T00:00:00+00:00","cases":1}\n')
    reading = HistoryReading()
    assert len(list(read_history(path, reading, "2026-03-01"))) == 2
    assert reading.damaged == []
    assert list(read_history(path, reading, "2026-03-02")) == []
    other = json.dumps({"note": "x" * 300, **json.loads(path.read_bytes().splitlines()[0])})
    path.write_text(other.replace(": ", ":") + "\n", encoding="utf-8")  # its keys are in another order
    assert [len(list(read_history(path, reading, day))) for day in ("2026-03-01", "2026-03-02")] == [1, 0]


def test_a_history_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """The error names the command that writes one."""
    with pytest.raises(FileError, match="holds no history"):
        list(read_history(tmp_path / "none.jsonl", HistoryReading()))
    with pytest.raises(FileError, match="holds no history"):
        compact_history(tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(GateError, match="cannot be written"):
        write(tmp_path / "file" / "history.jsonl", 1.0)


def test_what_a_newer_release_wrote_outlives_a_compaction(tmp_path: Path) -> None:
    """A line of a later format, and a metric of a later release: an older one may run the job."""
    path = tmp_path / "history.jsonl"
    write(path, 1.0)
    kept = path.read_text(encoding="utf-8").replace(
        '"compiled_latency":', '"novelty":[1],"compiled_latency":'
    )
    newer = '{"schema":"compile-gate/history/2","what":"nobody knows"}\n'
    path.write_text(newer + kept + "{torn\n", encoding="utf-8")
    reading = compact_history(path)
    assert path.read_text(encoding="utf-8") == kept + newer
    assert [damage.partition(" ")[0] for damage in reading.damaged] == [f"{path}:1:", f"{path}:3:"]


def test_what_a_newer_release_wrote_alone_is_a_history(tmp_path: Path) -> None:
    """A compaction keeps it, and refuses nothing."""
    path = tmp_path / "history.jsonl"
    newer = '{"schema":"compile-gate/history/2","what":"nobody knows"}\n'
    path.write_text(newer, encoding="utf-8")
    assert compact_history(path).lines == 0
    assert path.read_text(encoding="utf-8") == newer


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """A directory with a file's name is no part of the history."""
    path = tmp_path / "runs"
    write(path, 1.0)
    (path / "odd.jsonl").mkdir()
    assert len(list(read_history(path, HistoryReading()))) == 1
    (path / "link.jsonl").symlink_to("/proc/self/mem")
    with pytest.raises(FileError, match=r"link\.jsonl.*cannot be read"):
        list(read_history(path, HistoryReading()))


class Narrow(io.FileIO):
    """A file that takes three bytes at a time."""

    def write(self, data: Any, /) -> int:
        return super().write(bytes(data)[:3])


class Full(Narrow):
    """A file on a disk that has room for three bytes."""

    room = 3

    def write(self, data: Any, /) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "no room")
        self.room = 0
        return super().write(data)


def test_a_line_that_finds_no_room_leaves_the_history_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written of it is taken back."""
    path = tmp_path / "history.jsonl"
    write(path, 1.0)
    before = path.read_bytes()
    line = make_history_line(HEAD, {"a/x": {Metric.RECOMPILES: (1.0,)}})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda self, mode, buffering: Full(self, mode))  # noqa: ARG005
        with pytest.raises(MachineError, match="full"):
            append_line(path, line)
    assert path.read_bytes() == before


def test_a_line_that_is_written_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system may write less than it gets."""
    path, line = tmp_path / "history.jsonl", make_history_line(HEAD, {"a/x": {Metric.RECOMPILES: (1.0,)}})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda self, mode, buffering: Narrow(self, mode))  # noqa: ARG005
        append_line(path, line)
    assert list(read_history(path, HistoryReading())) == [line]


def test_a_machine_reads_what_it_measured_on_other_days(tmp_path: Path) -> None:
    """The last run of each day: none of today, of another machine or driver, or of the anchor."""
    path, today = tmp_path / "history.jsonl", replace(HEAD, created="2026-03-09T10:00:00+00:00")
    runs = [
        (today, 9.0),
        (replace(HEAD, created="2026-03-01T09:00:00+00:00"), 1.0),
        (HEAD, 2.0),
        (replace(HEAD, created="2026-03-02T09:00:00+00:00", kind=HistoryKind.BASELINE), 3.0),
        (replace(HEAD, created="2026-03-03T09:00:00+00:00", kind=HistoryKind.ANCHOR), 4.0),
        (replace(HEAD, created="2026-03-04T09:00:00+00:00", machine="cpu: b"), 5.0),
        (replace(HEAD, created="2026-03-05T09:00:00+00:00", driver="600"), 6.0),
        (replace(HEAD, created="2026-02-20T09:00:00+00:00"), 7.0),
    ]
    for head, value in runs:
        append_line(path, make_history_line(head, {"a/x": {Metric.COMPILED_LATENCY: (value, 0.5, 9.5)}}))
    assert read_days(path, today, since="2026-02-27") == {"a/x": {Metric.COMPILED_LATENCY: (2.0, 3.0)}}
