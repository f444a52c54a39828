"""Files with a line for each item of a long list: other formatting, damage, a newer gate."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gate.errors import FileError
from gate.files import codec
from gate.files.codec import BASELINE, RUN, NewerFileError
from gate.records.cases import Case, Metric
from gate.records.run import Provenance, Trial
from tests.make import make_baseline, make_run

CASE = Case(id="mlp/inference", model="mlp", factory="a.b:c")
TRIALS = tuple(
    Trial(case_id=CASE.id, index=index, samples={Metric.COMPILED_LATENCY: (0.1, 1 / (1 + index))})
    for index in range(3)
)
RUN_OF_3 = make_run(*TRIALS, cases=(CASE,), provenance=Provenance(gate_version="9.9.9"))


def test_a_run_is_one_object_with_a_line_for_each_trial(tmp_path: Path) -> None:
    """Programs that read run.json find plain JSON."""
    path = tmp_path / "run.json"
    RUN.save(RUN_OF_3, path)
    text = path.read_text(encoding="utf-8")
    assert [trial["index"] for trial in json.loads(text)["trials"]] == [0, 1, 2]
    assert sum('"index"' in line for line in text.splitlines()) == 3
    assert RUN.load(path) == RUN_OF_3


def test_a_run_without_trials_is_read(tmp_path: Path) -> None:
    """An empty list has no line of its own."""
    path, empty = tmp_path / "run.json", replace(RUN_OF_3, trials=())
    RUN.save(empty, path)
    assert RUN.load(path) == empty


@pytest.mark.parametrize(
    ("line", "problem"),
    [("{garbled},", "is not JSON"), ("[1],", "expected a mapping"), ("\0\0\0", "is not JSON")],
)
def test_a_garbled_line_is_refused_with_its_place(tmp_path: Path, line: str, problem: str) -> None:
    """Nothing of it is guessed."""
    path = tmp_path / "run.json"
    RUN.save(RUN_OF_3, path)
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next(number for number, row in enumerate(lines) if '"index": 1' in row)
    path.write_text("\n".join([*lines[:number], line, *lines[number + 1 :]]), encoding="utf-8")
    with pytest.raises(FileError, match=problem) as raised:
        RUN.load(path)
    assert raised.value.what.startswith((f"{path}:{number + 1}: ", f"{path}: trials[1]: "))


def test_a_trial_twice_is_refused(tmp_path: Path) -> None:
    """It would look like little noise."""
    path = tmp_path / "run.json"
    RUN.save(replace(RUN_OF_3, trials=(*TRIALS, TRIALS[-1])), path)
    with pytest.raises(FileError, match=r"trials\[3\]: repeats a trial"):
        RUN.load(path)


@pytest.mark.parametrize("length", [40, 2000, -40, -3])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, length: int) -> None:
    """Wherever it ends."""
    path = tmp_path / "run.json"
    path.write_bytes(RUN.encode(RUN_OF_3).encode()[:length])
    with pytest.raises(FileError):
        RUN.load(path)


def test_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short line becomes a record of a kilobyte: a hostile file's lines would fill memory."""
    path = tmp_path / "run.json"
    RUN.save(RUN_OF_3, path)
    monkeypatch.setattr(codec, "MAX_LINES", len(path.read_bytes().splitlines()))
    assert RUN.load(path) == RUN_OF_3
    monkeypatch.setattr(codec, "MAX_LINES", 8)
    with pytest.raises(FileError, match="has more than 8 lines"):
        RUN.load(path)


def test_a_file_of_rows_may_be_larger_than_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are parsed one by one; any other file is parsed at once."""
    RUN.save(RUN_OF_3, tmp_path / "run.json")
    BASELINE.save(make_baseline(CASE.id, {Metric.DRIFT: (0.5,)}), tmp_path / "baseline.json")
    monkeypatch.setattr(codec, "MAX_ROWS_BYTES", 100)
    assert BASELINE.load(tmp_path / "baseline.json").case_id == CASE.id
    with pytest.raises(FileError, match="is larger than 100 bytes"):
        RUN.load(tmp_path / "run.json")


def test_what_is_no_row_of_a_file_is_parsed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it may be no larger than other files, however many lines it has."""
    RUN.save(RUN_OF_3, tmp_path / "run.json")
    monkeypatch.setattr(codec, "MAX_JSON_BYTES", 100)
    with pytest.raises(FileError, match="is larger than 100 bytes"):
        RUN.load(tmp_path / "run.json")


def test_a_row_that_does_not_fit_is_reported_by_its_key(tmp_path: Path) -> None:
    """As in a file that is one line."""
    path = tmp_path / "run.json"
    text = RUN.encode(RUN_OF_3)
    path.write_text(text.replace('"index": 2', '"index": -2'), encoding="utf-8")
    with pytest.raises(FileError, match=r"run.json: trials\[2\].index: "):
        RUN.load(path)


def test_a_file_that_an_editor_formatted_anew_is_read(tmp_path: Path) -> None:
    """With any line breaks."""
    path = tmp_path / "run.json"
    for indent in (None, 0, 1, 4):
        path.write_text(json.dumps(json.loads(RUN.encode(RUN_OF_3)), indent=indent), encoding="utf-8")
        assert RUN.load(path) == RUN_OF_3


def test_a_newer_version_is_reported_before_what_does_not_fit_in_its_lines(tmp_path: Path) -> None:
    """The reader learns which version to install."""
    path = tmp_path / "run.json"
    text = RUN.encode(RUN_OF_3).replace("run/1", "run/2", 1).replace('"index"', '"number"')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NewerFileError, match=r"(?s)run/2.*9\.9\.9"):
        RUN.load(path)
