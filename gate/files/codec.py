"""The files we write and read again: run, verdict, baseline and others, each with its schema version.

A file is its record as JSON with ``"schema": "compile-gate/run/1"``. Long lists have a line for each item, so
that a large file is decoded item by item. The rest of the gate finds the codec's parts here, too.
"""

import dataclasses
import io
import json
import re
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from gate.collector import pause_collector
from gate.errors import FileError, join_errors
from gate.files.disk import describe_write_error, load_lines, write_atomic
from gate.files.invalid import quote_value
from gate.files.record_checks import check_baseline, check_run, check_verdict
from gate.files.schema import list_invalid
from gate.files.structure import decode, get_hints
from gate.files.untrusted import MAX_JSON_BYTES, MAX_LINES, MAX_ROWS_BYTES, ORIGIN_FIX, check_size, parse_json
from gate.records.run import Baseline, Run
from gate.records.shown import Shown
from gate.records.studies import Bisection, Calibration
from gate.records.verdict import Verdict

R = TypeVar("R", Run, Verdict, Shown, Baseline, Calibration, Bisection)
T = TypeVar("T")
RecordCheck = Callable[[Any, str], None]  # of a record and the name of its file; raises FileError
_SCHEMA = re.compile(r"compile-gate/([a-z]{1,20})/([1-9][0-9]{0,5})")
_RELEASE = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?")
HEAD = ""  # what a line belongs to that is no item of a list with rows


def encode(record: object) -> Any:  # noqa: ANN401 -- plain JSON values have no narrower type
    return json.loads(json.dumps(record, default=_list_fields))


def dump(record: object) -> str:
    """Encode as one line of JSON.

    Raises:
        ValueError: It holds NaN or infinity.
    """
    return _ENCODER.encode(record)


def _list_fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in _list_field_names(cast("Hashable", type(record)))}


_ENCODER = json.JSONEncoder(default=_list_fields, allow_nan=False, check_circular=False)


@cache
def _list_field_names(record_type: Any) -> tuple[str, ...]:  # noqa: ANN401 -- a record's type
    if not dataclasses.is_dataclass(record_type):
        raise TypeError(f"cannot encode {record_type.__name__}")
    return tuple(field.name for field in dataclasses.fields(record_type))


@dataclass(frozen=True, kw_only=True, slots=True)
class FileKind(Generic[R]):
    name: str
    record: type[R]
    version: int = 1
    check: RecordCheck | None = None  # of what must hold beyond the types of the keys
    rows: tuple[str, ...] = ()  # lists that have a line for each item, which is decoded by itself

    @property
    def schema(self) -> str:
        """``compile-gate/run/1``."""
        return f"compile-gate/{self.name}/{self.version}"

    def load(self, path: Path) -> R:
        """Load a file.

        Raises:
            FileError: The file is missing or cannot be used.
        """
        limit = MAX_ROWS_BYTES if self.rows else MAX_JSON_BYTES
        return self.decode(load_lines(path, limit), str(path))

    def save(self, record: R, path: Path) -> None:
        """Atomically; raises as :func:`gate.files.disk.write_atomic`."""
        write_atomic(path, self._encode(record))

    def encode(self, record: R) -> str:
        """JSON, one line a top-level key and row.

        Raises:
            ValueError: The record holds NaN or infinity.
        """
        return "".join(self._encode(record))

    def decode(self, data: bytes | Iterable[bytes], source: str) -> R:
        """Decode the bytes, or the lines, of a file.

        Raises:
            FileError: Hostile, foreign or newer content, or one that does not fit the record or itself.
        """
        with pause_collector():
            record = self._decode(io.BytesIO(data) if isinstance(data, bytes) else data, source)
        if self.check:
            self.check(record, source)
        return record

    def _encode(self, record: R) -> Iterator[str]:
        """Part by part: the whole text of a large run need not be held."""
        yield f'{{\n"schema": {json.dumps(self.schema)}'
        for name in _list_field_names(cast("Hashable", self.record)):
            value = getattr(record, name)
            yield f",\n{json.dumps(name)}: "
            if name in self.rows:
                yield "["
                for number, row in enumerate(value):
                    yield (",\n" if number else "") + dump(row)
                yield "]"
            else:
                yield dump(value)
        yield "\n}\n"

    def _decode(self, lines: Iterable[bytes], source: str) -> R:
        hints = get_hints(cast("Hashable", self.record))
        row_types = {key: typing.get_args(hints[key])[0] for key in self.rows}
        rows: dict[str, list[Any]] = {key: [] for key in self.rows}
        head = bytearray()
        fault: FileError | None = None
        for key, number, line in split_rows(lines, self.rows) if self.rows else _join_lines(lines):
            if number > MAX_LINES:
                raise FileError(source, "", f"has more than {MAX_LINES:,} lines", ORIGIN_FIX)
            if key == HEAD:
                head += line
                check_size(len(head), MAX_JSON_BYTES, source)
            elif fault is None:
                try:
                    for row in cast("list[object]", parse_json(b"[%b]" % line, f"{source}:{number}")):
                        rows[key].append(decode(row_types[key], row, source, f"{key}[{len(rows[key])}]"))
                except FileError as error:
                    fault = error  # raised below, unless a newer version wrote the file
        record = _decode_content(self, parse_json(bytes(head), source), source)
        if fault:
            raise fault
        return _add_items(record, rows) if rows else record


def split_rows(lines: Iterable[bytes], keys: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    """Split a file into items, each with its list's key, and the rest, its head; with line numbers.

    Where an item was, the head has an empty line. A file in another layout, of an editor, is all head.
    """
    openings = {f'"{key}": ['.encode(): key for key in keys}
    key = HEAD
    for number, line in enumerate(lines, start=1):
        rest = line
        opening, bracket, _ = line.partition(b"{")
        if key == HEAD and bracket and opening in openings:
            key, rest = openings[opening], line[len(opening) :]
            yield HEAD, number, opening
        if key == HEAD:
            yield HEAD, number, line
            continue
        row = rest.removesuffix(b"\n").removesuffix(b",")
        is_last = row.endswith(b"}]")
        row = row[:-1] if is_last else row
        yield key, number, row
        yield HEAD, number, rest[len(row) :] if is_last else b"\n"
        key = HEAD if is_last else key


def _join_lines(lines: Iterable[bytes]) -> Iterator[tuple[str, int, bytes]]:
    """As :func:`split_rows`, of a file without rows."""
    whole = list(lines)
    yield HEAD, len(whole), b"".join(whole)


class NewerFileError(FileError):
    """A newer compile-gate wrote the file."""


RUN = FileKind(name="run", record=Run, check=check_run, rows=("trials",))


VERDICT = FileKind(
    name="verdict", record=Verdict, check=check_verdict, rows=("cases", "comparisons", "evidence")
)


SHOWN = FileKind(name="shown", record=Shown, check=check_verdict, rows=("comparisons",))


BASELINE = FileKind(name="baseline", record=Baseline, check=check_baseline)


CALIBRATION = FileKind(name="calibration", record=Calibration)
BISECTION = FileKind(name="bisection", record=Bisection)


encode_verdict = VERDICT.encode  # a format of reports


def _add_items(record: T, rows: Mapping[str, Sequence[object]]) -> T:
    filled: Any = record
    more = {key: (*getattr(filled, key), *items) for key, items in rows.items()}
    return cast("T", replace(filled, **more))


def _decode_content(kind: FileKind[R], plain: object, source: str) -> R:
    if not isinstance(plain, dict) or "schema" not in plain:
        raise FileError(source, "", f"is not a compile-gate {kind.name} file", f"Name a {kind.name} file.")
    schema = plain.pop("schema")
    match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if match is None or match[1] != kind.name:
        problem = f"expected {kind.schema!r}, got {quote_value(schema)}"
        raise FileError(source, "schema", problem, f"Name a compile-gate {kind.name} file.")
    if int(match[2]) > kind.version:
        problem = f"is {schema!r}, newer than this compile-gate reads ({kind.schema!r})"
        raise NewerFileError(source, "schema", problem, f"Install {_name_release(plain)}.")
    try:
        return decode(kind.record, plain, source)
    except FileError as error:
        # A file of rows is too large to be gone through item by item.
        invalid = [] if kind.rows else list_invalid(kind.name, {"schema": schema, **plain})
        errors = [FileError(source, item.key, item.problem, item.fix) for item in invalid]
        raise join_errors(errors or [error]) from None


def _name_release(plain: Mapping[str, object]) -> str:
    provenance = plain.get("provenance")
    written_by = provenance.get("gate_version") if isinstance(provenance, dict) else None
    if isinstance(written_by, str) and _RELEASE.fullmatch(written_by):
        return f"compile-gate {written_by} or newer: that wrote the file"
    return "the newest compile-gate"
