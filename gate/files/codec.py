"""The files we write and read again: run, verdict, baseline and others, each with its schema version.

A file is its record as JSON with one more key: ``"schema": "compile-gate/run/1"``. One of a newer version is
refused with the version to install, and anything else as foreign. Long lists have a line for each item, so
that a large file is decoded item by item. A file that was edited or damaged can hold values that no
measurement gives, or parts that contradict each other: judged all the same, a peak memory of -1 would be an
improvement. So what must hold beyond the type of each key is checked where a file is read.
This module is also where the rest of the gate finds the codec's parts.
"""

import dataclasses
import gc
import io
import json
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from gate.errors import FileError, join_errors
from gate.files.disk import describe_write_error, load_lines, write_atomic
from gate.files.schema import list_invalid
from gate.files.structure import decode, get_hints
from gate.files.untrusted import (
    MAX_JSON_BYTES,
    MAX_LINES,
    MAX_ROWS_BYTES,
    ORIGIN_FIX,
    check_size,
    format_value,
    parse_json,
)
from gate.metrics import SPECS
from gate.records.cases import Metric
from gate.records.run import Baseline, CaseFailure, Pairing, Run, Trial
from gate.records.shown import Shown
from gate.records.studies import Bisection, Calibration
from gate.records.verdict import Verdict


def encode(record: object) -> Any:  # noqa: ANN401 -- plain JSON values have no narrower type
    """Encode a record into dicts, lists, strings and numbers; the inverse of decoding."""
    return json.loads(json.dumps(record, default=_list_fields))


def dump(record: object) -> str:
    """Encode a record, or a part of one, as one line of JSON.

    Raises:
        ValueError: It holds NaN or infinity, which its maker should have refused.
    """
    return json.dumps(record, default=_list_fields, allow_nan=False)


def _list_fields(record: object) -> dict[str, object]:
    if not dataclasses.is_dataclass(record):
        raise TypeError(f"cannot encode {type(record).__name__}")
    return {name: getattr(record, name) for name in _list_field_names(cast("Hashable", type(record)))}


@cache
def _list_field_names(record_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(record_type))


R = TypeVar("R", Run, Verdict, Shown, Baseline, Calibration, Bisection)
T = TypeVar("T")
RecordCheck = Callable[[Any, str], None]  # of a record and the name of its file; raises FileError

_SCHEMA = re.compile(r"compile-gate/([a-z]{1,20})/([1-9][0-9]{0,5})")
_RELEASE = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileKind(Generic[R]):
    """One kind of versioned file. A release that changes its schema raises ``version``."""

    name: str
    record: type[R]
    version: int = 1
    check: RecordCheck | None = None  # of what must hold beyond the types of the keys
    rows: tuple[str, ...] = ()  # lists that have a line for each item, which is decoded by itself

    @property
    def schema(self) -> str:
        """The identity that the file carries, e.g. ``compile-gate/run/1``."""
        return f"compile-gate/{self.name}/{self.version}"

    def load(self, path: Path) -> R:
        """Load a file of this kind.

        Raises:
            FileError: It is missing or cannot be used.
        """
        limit = MAX_ROWS_BYTES if self.rows else MAX_JSON_BYTES
        return self.decode(load_lines(path, limit), str(path))

    def save(self, record: R, path: Path) -> None:
        """Write a file of this kind atomically.

        Raises:
            MachineError, UsageError: See :func:`gate.files.disk.write_atomic`.
        """
        write_atomic(path, self._encode(record))

    def encode(self, record: R) -> str:
        """Encode a record as the text of its file: JSON, one line a top-level key and row, no NaN.

        Raises:
            ValueError: The record holds NaN or infinity, which its maker should have refused.
        """
        return "".join(self._encode(record))

    def decode(self, data: bytes | Iterable[bytes], source: str) -> R:
        """Decode the bytes, or the lines, of a file of this kind.

        Raises:
            FileError: Hostile, foreign or newer content, or one that does not fit the record or itself.
        """
        with pause_collector():
            record = self._decode(io.BytesIO(data) if isinstance(data, bytes) else data, source)
        if self.check:
            self.check(record, source)
        return record

    def _encode(self, record: R) -> Iterator[str]:
        """Encode part by part: the whole text of a large run need not be held."""
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
        for key, number, line in split_rows(lines, self.rows):
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
                    fault = error  # told below, unless the head says that a newer version wrote the file
        record = _decode_content(self, parse_json(bytes(head), source), source)
        if fault:
            raise fault
        return _add_items(record, rows)


HEAD = ""  # what a line belongs to that is no item of a list with rows


def split_rows(lines: Iterable[bytes], keys: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    """Split a file into the items of lists with rows, each with the list's key, and the rest: its head.

    Each piece comes with the number of its line; where an item was, the head has an empty line. A file in
    another layout, as an editor may leave it, is all head.
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


class NewerFileError(FileError):
    """A newer compile-gate wrote the file, and this one cannot read it."""


_EDITED = "It was edited: judge the run again with `compare`."
_FIX = "compile-gate writes no such file: check its origin, or measure again."


def check_run(run: Run, source: str) -> None:
    """Refuse a run whose parts contradict its plan: reconciliation rests on these keys.

    Raises:
        FileError: With the file, the key and what is wrong.
    """
    planned = {case.id for case in run.cases}
    if len(planned) < len(run.cases):
        raise FileError(source, "cases", "plans a case twice", _FIX)
    seen: set[tuple[str, int, str, bool]] = set()
    for index, trial in enumerate(run.trials):
        key = (trial.case_id, trial.index, trial.arm, trial.pairing is Pairing.ALONE)
        if key in seen:
            raise FileError(source, f"trials[{index}]", "repeats a trial that came before", _FIX)
        seen.add(key)
        _check_values(trial.samples, source, f"trials[{index}].samples")
        _check_values(trial.undisturbed_s, source, f"trials[{index}].undisturbed_s")
    named: dict[str, Sequence[Trial | CaseFailure]]
    named = {"trials": run.trials, "failures": run.failures, "retried": run.retried}
    for name, records in named.items():
        for index, record in enumerate(records):
            if record.case_id not in planned:
                problem = f"the case {format_value(record.case_id)} is not planned"
                raise FileError(source, f"{name}[{index}].case_id", problem, _FIX)


def check_baseline(baseline: Baseline, source: str) -> None:
    """Refuse a baseline with a metric that has no value, or one that no measurement gives.

    Raises:
        FileError: With the file, the key and what is wrong.
    """
    for metric, values in baseline.trials.items():
        if not values:
            raise FileError(source, f"trials.{metric}", "holds no value", "Remove the key or record again.")
    _check_values(baseline.trials, source, "trials")


def check_verdict(verdict: Verdict | Shown, source: str) -> None:
    """Refuse a verdict that was cut, of another outcome than its rows call for, or with impossible values.

    Raises:
        FileError: With the file, the key and what is wrong.
    """
    from gate.decide.conclude.outcome import decide_outcome  # noqa: PLC0415 - workers write files and decide nothing

    _check_counts(verdict, source)
    expected = decide_outcome(verdict.comparisons, finished=verdict.tally.finished)
    if verdict.outcome is not expected:
        problem = f"is {verdict.outcome}, but what was compared makes it {expected}"
        raise FileError(source, "outcome", problem, _EDITED)
    for index, one in enumerate(verdict.comparisons):
        for side in ("baseline", "candidate"):
            estimate = getattr(one, side)
            # A median of counts may lie between two of them, so it need not be whole.
            if estimate and not SPECS[one.metric].domain.spans(estimate.centre):
                problem = _describe(one.metric, estimate.centre)
                raise FileError(source, f"comparisons[{index}].{side}.centre", problem, _FIX)


def _check_counts(verdict: Verdict | Shown, source: str) -> None:
    """Refuse a verdict that lacks what it was written with: a row that is cut out fails nothing."""
    counted = (
        ("cases", verdict.cases, verdict.tally.cases),
        ("comparisons", verdict.comparisons, verdict.tally.comparisons),
    )
    for key, found, count in counted:
        if count is not None and count != len(found):
            raise FileError(source, key, f"holds {len(found)}, and was written with {count}", _EDITED)


def _check_values(samples: Mapping[Metric, Sequence[float]], source: str, key: str) -> None:
    for metric, values in samples.items():
        for index in _list_impossible(metric, values):
            problem = _describe(metric, values[index])
            raise FileError(source, f"{key}.{metric}[{index}]", problem, _FIX)


def _list_impossible(metric: Metric, values: Sequence[float]) -> Iterator[int]:
    domain = SPECS[metric].domain
    # Thousands of samples a trial: their extremes tell of all but whether each is whole.
    if values and not domain.whole and domain.spans(min(values)) and domain.spans(max(values)):
        return iter(())
    return (index for index, value in enumerate(values) if not domain.holds(value))


def _describe(metric: Metric, value: float) -> str:
    return f"{metric} is {SPECS[metric].domain.describe()}, not {value:g}"


RUN = FileKind(name="run", record=Run, check=check_run, rows=("trials",))
VERDICT = FileKind(
    name="verdict", record=Verdict, check=check_verdict, rows=("cases", "comparisons", "evidence")
)
SHOWN = FileKind(name="shown", record=Shown, check=check_verdict, rows=("comparisons",))
BASELINE = FileKind(name="baseline", record=Baseline, check=check_baseline)
CALIBRATION = FileKind(name="calibration", record=Calibration)
BISECTION = FileKind(name="bisection", record=Bisection)
encode_verdict = VERDICT.encode  # a format of reports


@contextmanager
def pause_collector() -> Iterator[None]:
    """Look for no cycles within: parsing makes a million objects and none, and it took a quarter longer."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _add_items(record: T, rows: Mapping[str, Sequence[object]]) -> T:
    """Add the items of lists that have a line each to what the head holds of them."""
    filled: Any = record
    more = {key: (*getattr(filled, key), *found) for key, found in rows.items()}
    return cast("T", replace(filled, **more))


def _decode_content(kind: FileKind[R], plain: object, source: str) -> R:
    if not isinstance(plain, dict) or "schema" not in plain:
        raise FileError(source, "", f"is not a compile-gate {kind.name} file", f"Name a {kind.name} file.")
    schema = plain.pop("schema")
    match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if match is None or match[1] != kind.name:
        problem = f"expected {kind.schema!r}, got {format_value(schema)}"
        raise FileError(source, "schema", problem, f"Name a compile-gate {kind.name} file.")
    if int(match[2]) > kind.version:
        problem = f"is {schema!r}, newer than this compile-gate reads ({kind.schema!r})"
        raise NewerFileError(source, "schema", problem, f"Install {_name_release(plain)}.")
    try:
        return decode(kind.record, plain, source)
    except FileError as error:
        # A file of rows is too large to be gone through item by item.
        invalid = [] if kind.rows else list_invalid(kind.name, {"schema": schema, **plain})
        others = [FileError(source, item.key, item.problem, item.fix) for item in invalid]
        raise join_errors(others or [error]) from None


def _name_release(plain: Mapping[str, object]) -> str:
    provenance = plain.get("provenance")
    written_by = provenance.get("gate_version") if isinstance(provenance, dict) else None
    if isinstance(written_by, str) and _RELEASE.fullmatch(written_by):
        return f"compile-gate {written_by} or newer: that wrote the file"
    return "the newest compile-gate"
