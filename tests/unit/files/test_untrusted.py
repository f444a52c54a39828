import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError
from gate.files import untrusted as hostile
from gate.files.disk import load_bytes
from gate.files.invalid import quote_value
from gate.files.untrusted import check_size, decode_text, measure_shape, parse_json


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b'{"a": 1', "ends in the middle (line 1): it was cut short"),
        (b'{"a":\n', "ends in the middle (line 2): it was cut short"),
        (b'{"a": "tex', "ends in the middle (line 1): it was cut short"),
        (b"[1, 2", "ends in the middle (line 1): it was cut short"),
        (b'{"a": 1} x', "is not JSON: line 1, column 10: Extra data"),
        (b"{'a': 1}", "is not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
        (b'[{"b": {"a": 1, "a": 1}}]', "has the key 'a' twice"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b'["\xed\xa0\x80"]', "is not UTF-8 text (byte 2)"),
        (b"[" * 33 + b"]" * 33, "is nested deeper than 32 levels"),
        (b"[" * 1_000_000, "is nested deeper than 32 levels"),
        (b'{"a":' * 100_000, "is nested deeper than 32 levels"),
    ],
)  # fmt: skip
def test_hostile_json_is_refused(data: bytes, problem: str) -> None:
    """Every kind of damage or malice has its own message."""
    with pytest.raises(FileError) as caught:
        parse_json(data, "run.json")
    assert problem == caught.value.problem
    assert len(str(caught.value).splitlines()) == 2


def test_an_integer_with_a_million_digits_is_refused_at_once() -> None:
    """Its conversion would take seconds; the advice of Python is none to its reader."""
    with pytest.raises(FileError) as caught:
        parse_json(b"[" + b"9" * 1_000_000 + b"]", "run.json")
    assert caught.value.problem.startswith("Exceeds the limit")
    assert "sys." not in caught.value.problem


def test_json_beyond_the_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts bytes, before anything is parsed; 128 MiB, a GiB of rows."""
    assert (hostile.MAX_JSON_BYTES, hostile.MAX_ROWS_BYTES) == (2**27, 2**30)
    monkeypatch.setattr(hostile, "MAX_JSON_BYTES", 4)
    assert parse_json(b"[12]", "x") == [12]
    with pytest.raises(FileError, match="is larger than 4 bytes"):
        parse_json(b"[123]", "x")


def test_thirty_two_levels_are_read() -> None:
    """One more is refused."""
    assert parse_json(b"[" * 32 + b"]" * 32, "x")


def test_a_file_that_is_too_large_has_the_fix_of_its_kind() -> None:
    """One that people write has another than one that only the gate writes."""
    check_size(4, 4, "x")
    fixes = []
    for fix in ("", "Split it."):
        with pytest.raises(FileError) as caught:
            check_size(5, 4, "x", fix)
        fixes.append(caught.value.fix)
    assert fixes == ["compile-gate writes no such file: check its origin.", "Split it."]


def test_a_byte_order_mark_is_no_harm() -> None:
    """Some editors write one."""
    assert parse_json(b"\xef\xbb\xbf[1]", "x") == [1]


@given(data=st.binary(max_size=60) | st.text('[]{}",:\\ 1aeN-+.', max_size=40).map(str.encode))
@settings(max_examples=400)
def test_no_bytes_raise_anything_but_a_file_error(data: bytes) -> None:
    """The parser never lets a foreign exception out."""
    lines = 2
    try:
        parse_json(data, "x")
    except FileError as error:
        lines = len(str(error).splitlines())
    assert lines == 2


@pytest.mark.parametrize(
    ("data", "depth"),
    [
        (b"1", 0),
        (b'[{"a": []}]', 3),
        (b'["[[[["]', 1),
        (rb'["a\"[[[", [1]]', 2),
        (rb'["\\", [[1]]]', 3),
        (rb'["\\\"[[", 1]', 1),
        (b"[][][]", 1),
    ],
)
def test_depth_counts_brackets_outside_of_strings(data: bytes, depth: int) -> None:
    """Escaped quotes and backslashes do not mislead it."""
    assert depth == max(shape.depth for shape in measure_shape(data))


@given(data=st.text('[]{}",\\a', max_size=80).map(str.encode), chunk=st.integers(1, 9))
def test_the_shape_is_the_same_in_chunks_of_any_size(data: bytes, chunk: int) -> None:
    """A string or a nesting that goes on in the next chunk is not lost."""
    whole = [*measure_shape(data)][-1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "_CHUNK_BYTES", chunk)
        assert [*measure_shape(data)][-1:] == whole


def test_more_values_than_a_file_of_its_size_has_are_refused() -> None:
    """Megabytes of empty lists would take a hundred times as much; a small file may have any.

    Of 33,100 bytes 10,000 + 1,034 may be lists, of 266,669 bytes 100,000 + 33,333 values.
    """
    assert parse_json(b"[" + b"[]," * 11_032 + b"[]]", "x")
    assert parse_json(b"[" + b"1," * 133_333 + b"1]", "x")
    for data in (b"[" + b"[]," * 11_033 + b"[]]", b"[" + b"1," * 133_334 + b"1]"):
        with pytest.raises(FileError, match="holds more values than any file of ours of its size"):
            parse_json(data, "x")


def test_commas_in_strings_are_no_values() -> None:
    """A long text is one value."""
    assert [*measure_shape(b'["' + b",[" * 10 + b'", 1]')][-1].values == 1
    assert parse_json(json.dumps(["," * 1_000_000]).encode(), "x")


def test_what_is_deep_or_dense_is_found_before_the_whole_is_read() -> None:
    """The first of a hundred megabytes of brackets suffice."""
    shapes = measure_shape(b"[" * 20_000_000)
    assert next(shapes).depth > hostile.MAX_DEPTH


def test_reading_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    """A pipe would block for ever and a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileError, match="is not a regular file"):
            load_bytes(path, 10)


def test_reading_refuses_what_is_not_there(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(FileError, match=r"gone\.json: does not exist"):
        load_bytes(tmp_path / "gone.json", 10)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="cannot be read: Not a directory"):
        load_bytes(tmp_path / "file" / "x", 10)
    with pytest.raises(FileError, match="cannot be read"):
        load_bytes(tmp_path / "nul\0", 10)


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    """One byte more than the limit is refused."""
    (tmp_path / "x").write_bytes(b"12345")
    assert load_bytes(tmp_path / "x", 5) == b"12345"
    with pytest.raises(FileError, match="is larger than 4 bytes"):
        load_bytes(tmp_path / "x", 4)


def test_foreign_values_are_shown_short_and_on_one_line() -> None:
    """A message of two lines stays one."""
    assert quote_value("a\nb") == "'a\\nb'"
    assert quote_value(None) == "null"
    assert quote_value({}) == "an empty mapping"
    assert quote_value({"a": 1}) == "a mapping"
    assert quote_value([1, 2]) == "a list of 2"
    assert quote_value(10**5000) == quote_value(2**63) == quote_value(-(2**63)) == "a huge integer"
    assert quote_value(2**63 - 1) == "9223372036854775807"
    assert quote_value("x" * 58) == f"'{'x' * 58}'"
    assert quote_value("x" * 59) == f"'{'x' * 59}..."
    assert len(quote_value("x" * 1000)) == 63


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("baselines/any/x.json", "baselines/**"), ("old/run.json", "run.json"), ("ci/gate.yml", "gate.yml")],
)
def test_a_pointer_of_git_lfs_is_named_with_its_fix(name: str, pattern: str) -> None:
    """A clone or a commit may hold only the pointer."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
    with pytest.raises(FileError, match=f"{name}: is a pointer of Git LFS") as caught:
        decode_text(pointer, name)
    assert f"add `{pattern} -filter -diff -merge text` to .gitattributes" in caught.value.fix
