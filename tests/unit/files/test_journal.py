"""A run that is saved while it grows: what is read after a kill, a full disk, a second writer, damage."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gate.errors import FileError, UsageError
from gate.files import codec
from gate.files.codec import RUN, NewerFileError, RunJournal, decode_file, encode_file, load_run, save_run
from gate.records import Case, FailureKind, Metric, Provenance, Run, Trial
from tests.hosts import CPU_HOST
from tests.make import make_failure

CASES = (Case(id="mlp/inference", model="mlp", factory="a.b:c"), Case(id="b", model="b", factory="a.b:c"))
FAILURE = make_failure("b", "too long", kind=FailureKind.HANG)
EMPTY = Run(cases=CASES, environment=CPU_HOST, provenance=Provenance(gate_version="9.9.9"))


def make_trial(index: int) -> Trial:
    """A trial of the first case."""
    return Trial(case_id=CASES[0].id, index=index, samples={Metric.COMPILED_LATENCY: (0.1, 1 / (1 + index))})


def grow(count: int) -> list[Run]:
    """An empty run, and what becomes of it trial by trial."""
    trials = tuple(map(make_trial, range(count)))
    return [replace(EMPTY, trials=trials[:end], wall_s=float(end)) for end in range(count + 1)]


def save_all(path: Path, runs: list[Run]) -> RunJournal:
    """Save runs one after the other by one journal."""
    journal = RunJournal(path=path)
    for run in runs:
        journal.save(run)
    return journal


def test_a_growing_run_is_appended_to_and_reads_as_saved(tmp_path: Path) -> None:
    """Each trial, failure, source and the seconds so far are one line more; nothing before is rewritten."""
    path = tmp_path / "run.json"
    runs = grow(3)
    runs.append(replace(runs[-1], failures=(FAILURE,), sources={"k": "code"}, wall_s=9.5))
    journal = RunJournal(path=path)
    for lines, run in enumerate(runs):
        before = path.read_bytes() if lines else b""
        journal.save(run)
        assert path.read_bytes().startswith(before)
        assert len(path.read_bytes()[len(encode_file(RUN, EMPTY)) :].splitlines()) == lines
        assert load_run(path) == run


def test_a_finished_run_is_one_object_again(tmp_path: Path) -> None:
    """Programs that read run.json find plain JSON, with a line for each trial."""
    path, run = tmp_path / "run.json", replace(grow(3)[-1], finished=True)
    save_all(path, [*grow(3), run])
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert [trial["index"] for trial in plain["trials"]] == [0, 1, 2]
    assert sum('"index"' in line for line in path.read_text(encoding="utf-8").splitlines()) == 3
    assert load_run(path) == run


@pytest.mark.parametrize(
    "change",
    [
        {"trials": (make_trial(7),)},
        {"trials": ()},
        {"failures": ()},
        {"toolchain_s": 3.0},
        {"sources": {"k": "other"}},
    ],
    ids=["other trials", "fewer trials", "fewer failures", "another key", "another source"],
)
def test_what_did_not_only_grow_is_written_whole(tmp_path: Path, change: dict[str, object]) -> None:
    """A line could not tell it."""
    path = tmp_path / "run.json"
    before = replace(grow(1)[1], failures=(FAILURE,), sources={"k": "code"})
    after = replace(before, **change)  # type: ignore[arg-type] # each is of its key's type
    save_all(path, [before, after])
    assert path.read_text(encoding="utf-8") == encode_file(RUN, after)


def test_a_journal_cut_anywhere_reads_as_what_is_whole(tmp_path: Path) -> None:
    """A kill in the middle of a line loses that trial and no other."""
    path = tmp_path / "run.json"
    runs = grow(3)
    ends = []
    journal = RunJournal(path=path)
    for run in runs:
        journal.save(run)
        ends.append(path.stat().st_size)
    data = path.read_bytes()
    for length in range(ends[0], len(data) + 1, 3):
        whole = max(number for number, end in enumerate(ends) if end <= length)
        assert decode_file(RUN, data[:length], "run.json") == runs[whole]


def test_a_killed_writer_leaves_what_it_saved(tmp_path: Path) -> None:
    """SIGKILL at any moment: the file loads, and holds trials in their order."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.unit.files.test_journal import grow, save_all\n"
        "print(flush=True); save_all(Path(sys.argv[1]), grow(3000))\n"
    )
    for _ in range(2):
        path = tmp_path / "run.json"
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
            while not path.exists() or path.stat().st_size < 20_000:
                assert process.poll() is None
            process.send_signal(signal.SIGKILL)
        trials = load_run(path).trials
        assert [trial.index for trial in trials] == list(range(len(trials)))
        assert len(trials) > 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{garbled}", "is not JSON"),
        ("", "is empty"),
        ("\0\0\0", "is not JSON"),
        ("[1]", "expected a mapping"),
        ('{"trials": [{"case_id": "b"}]}', "trials[0]: the key 'index' is missing"),
        ('{"cases": []}', "cases: unknown key"),
    ],
)
def test_a_garbled_line_is_refused_with_its_place(tmp_path: Path, line: str, problem: str) -> None:
    """What was not torn by a kill was damaged or made up: nothing of it is guessed at."""
    path = tmp_path / "run.json"
    save_all(path, grow(2))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], f"{line}\n", lines[-1]]), encoding="utf-8")
    with pytest.raises(FileError) as raised:
        load_run(path)
    assert raised.value.what.startswith(f"{path}:{len(lines)}: ")
    assert problem in raised.value.what


def test_a_repeated_line_is_refused(tmp_path: Path) -> None:
    """The same trial twice would look like little noise."""
    path = tmp_path / "run.json"
    save_all(path, grow(2))
    data = path.read_bytes()
    path.write_bytes(data + data.splitlines(keepends=True)[-1])
    with pytest.raises(FileError, match=r"trials\[2\]: repeats a trial"):
        load_run(path)


def test_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short line becomes a record of a kilobyte: as many as a hostile file can hold would fill memory."""
    path = tmp_path / "run.json"
    save_run(EMPTY, path)
    with path.open("ab") as file:
        file.write(b"{}\n" * 100)
    monkeypatch.setattr(codec, "MAX_LINES", 100)
    with pytest.raises(FileError, match="has more than 100 lines"):
        load_run(path)


def test_a_row_that_does_not_fit_is_told_by_its_key(tmp_path: Path) -> None:
    """As in a file that is one line."""
    path = tmp_path / "run.json"
    text = encode_file(RUN, grow(3)[-1])
    path.write_text(text.replace('"index": 2', '"index": -2'), encoding="utf-8")
    with pytest.raises(FileError, match=r"run.json: trials\[2\].index: "):
        load_run(path)


def test_a_file_that_an_editor_laid_out_anew_is_read(tmp_path: Path) -> None:
    """Whatever stands on which line."""
    path, run = tmp_path / "run.json", grow(2)[-1]
    for indent in (None, 0, 1, 4):
        path.write_text(json.dumps(json.loads(encode_file(RUN, run)), indent=indent), encoding="utf-8")
        assert load_run(path) == run


def test_a_newer_minor_version_may_have_more_keys_in_its_lines(tmp_path: Path) -> None:
    """What this version does not know of a trial is dropped; what it cannot do without is told as newer."""
    path = tmp_path / "run.json"
    save_all(path, grow(3))
    text = (
        path.read_text(encoding="utf-8")
        .replace("run/1", "run/1.7", 1)
        .replace('"index"', '"new": 1, "index"')
    )
    path.write_text(text, encoding="utf-8")
    assert load_run(path) == grow(3)[-1]
    path.write_text(text.replace('"index"', '"number"'), encoding="utf-8")
    with pytest.raises(NewerFileError, match=r"run/1\.7"):
        load_run(path)


def test_a_second_writer_is_replaced_and_never_mixed(tmp_path: Path) -> None:
    """Two processes with one out directory: the file is always one of their runs, the last that saved."""
    path = tmp_path / "run.json"
    own, other = grow(4), [replace(run, selection="other") for run in grow(4)]
    journals = RunJournal(path=path), RunJournal(path=path)
    for runs in zip(own, other, strict=True):
        for journal, run in zip(journals, runs, strict=True):
            journal.save(run)
            assert load_run(path) == run
    path.unlink()
    journals[0].save(own[-1])
    assert load_run(path) == own[-1]


def test_a_full_disk_leaves_what_was_saved(tmp_path: Path) -> None:
    """The error is the user's to mend; the file is as it was, and takes the next trial once there is room."""
    path = tmp_path / "run.json"
    runs = grow(4)
    journal = save_all(path, runs[:2])
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(UsageError, match="cannot be written: File too large"):
            journal.save(runs[2])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    journal.save(runs[3])
    assert load_run(path) == runs[3]
    assert path.read_bytes().startswith(before)
