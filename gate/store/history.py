"""The history of runs: lines of JSON in a file, or in files of a directory, that many may append to.

A line that a killed writer tore ends where the next one begins, and is skipped with a message. In a directory
each run is a file, which suits a branch that several jobs push to.
"""

import fcntl
import hashlib
import json
import math
import os
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from gate.errors import FileError
from gate.files.codec import decode, describe_write_error, encode, write_atomic
from gate.files.invalid import MAX_INTEGER, is_text
from gate.records.bounds import Time
from gate.records.cases import Metric, collect_columns
from gate.sizes import MIB

_FORMAT = "compile-gate/history/"
SCHEMA = f"{_FORMAT}1"
SUFFIX = ".jsonl"
_ID_CHARS = 16
_DIGITS = 7  # of a figure: more than any measurement has
_MAX_LINE = 16 * MIB  # bytes: a thousand cases have a twentieth
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")  # that the names of files begin with
_UNDATED = "history"
_CREATED = re.compile(rb'"created":"([0-9]{4}-[0-9]{2}-[0-9]{2})')
_METRICS = {metric.value: metric for metric in Metric}
_SAME_MACHINE = attrgetter("machine", "host", "torch", "driver")
_FIX = "The line is left out. `trend --compact` removes it."  # never shown: only what is wrong is


# Centre alone, or centre, low and high: in the metric's unit, for an anchor's run changes (+ is worse).
Figures = tuple[float, ...]


class HistoryKind(StrEnum):
    CHECK = "check"
    BASELINE = "baseline"
    ANCHOR = "anchor"  # side by side with the release anchor: its figures are changes, not values


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryHead:
    id: str  # of the content: the same line twice is one run
    kind: HistoryKind
    created: Time
    machine: str  # what times are comparable on: the kind and model of the device, the threads
    host: str = ""  # of the hardware: differs between machines of one name
    commit: str = ""
    run_url: str = ""
    torch: str = ""
    driver: str = ""
    anchor: str = ""  # the commit that an anchor's run was compared with


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryLine:
    head: HistoryHead
    cases: Mapping[str, Mapping[Metric, Figures]] = field(default_factory=dict)


@dataclass(kw_only=True)
class HistoryReading:
    lines: int = 0
    damaged: list[str] = field(default_factory=list)  # "history.jsonl:12: what is wrong"
    foreign: list[str] = field(default_factory=list)  # lines of other versions of the format, as they are


def make_history_line(head: HistoryHead, cases: dict[str, dict[Metric, Figures]]) -> HistoryLine:
    short = {
        case_id: {metric: tuple(map(_shorten, figures)) for metric, figures in values.items()}
        for case_id, values in cases.items()
    }
    line = HistoryLine(head=replace(head, id=""), cases=short)
    digest = hashlib.sha256(_encode(line).encode()).hexdigest()[:_ID_CHARS]
    return replace(line, head=replace(head, id=digest))


def append_line(path: Path, line: HistoryLine) -> Path:
    """Append to a file, or add a file to a directory, and return the file.

    A path that is a directory, or does not end in ``.jsonl``, is a directory.

    Raises:
        MachineError: The disk is full or read-only.
    """
    text = _encode(line)
    if path.is_dir() or path.suffix != SUFFIX:
        day = line.head.created[:10] or "undated"
        file = path / f"{day}-{line.head.id}{SUFFIX}"
        write_atomic(file, text)
        return file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, text.encode())
    except OSError as error:
        raise describe_write_error(path, error) from error
    return path


def _append(path: Path, data: bytes) -> None:
    """Write all of it at the end, or nothing; where the last line was torn, on a new line."""
    while True:
        with path.open("ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                continue  # somebody compacted it meanwhile: this is the old file
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                data = data if file.read() == b"\n" else b"\n" + data
            try:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
            return


def read_history(path: Path, reading: HistoryReading, since: str = "") -> Iterator[HistoryLine]:
    """Read each usable line once, from the date ``since`` on; ``reading`` counts the rest.

    Raises:
        FileError: There is no such file or directory, or it cannot be read.
    """
    return (line for line, _ in _read_usable(list_files(path), reading, since))


def read_days(path: Path, head: HistoryHead, *, since: str) -> dict[str, dict[Metric, tuple[float, ...]]]:
    """Values of other days on the machine and stack of ``head``: the last of each day, by case and metric.

    Raises:
        FileError: There is no history, or it cannot be read.
    """
    days: dict[str, dict[str, Mapping[Metric, Figures]]] = {}
    for line in read_history(path, HistoryReading(), since):
        day, is_anchor = line.head.created[:10], line.head.kind is HistoryKind.ANCHOR
        if is_anchor or day == head.created[:10] or _SAME_MACHINE(line.head) != _SAME_MACHINE(head):
            continue
        for case_id, figures in line.cases.items():
            days.setdefault(case_id, {})[day] = figures
    return {
        case_id: collect_columns(
            {metric: values[0] for metric, values in figures.items()} for figures in by_day.values()
        )
        for case_id, by_day in days.items()
    }


def _read_usable(
    files: Collection[Path], reading: HistoryReading, since: str = ""
) -> Iterator[tuple[HistoryLine, str]]:
    seen: set[str] = set()
    for location, data in _read_lines(files):
        if (created := _CREATED.search(data)) and created[1].decode() < since:
            continue
        try:
            plain = _parse(data, location)
            if (schema := str(plain.get("schema"))) != SCHEMA and schema.startswith(_FORMAT):
                reading.foreign.append(data.decode())
            line = _decode(plain, location)
        except FileError as error:
            reading.damaged.append(error.what)
            continue
        if line.head.id in seen:
            continue
        seen.add(line.head.id)
        reading.lines += 1
        yield line, data.decode()


def _read_lines(files: Collection[Path]) -> Iterator[tuple[str, bytes]]:
    for file in sorted(files):
        try:
            with file.open("rb") as opened:
                begin = opened.read(len(BOM_UTF8))  # of an editor, or of a shell that copied the file
                opened.seek(len(BOM_UTF8) if begin == BOM_UTF8 else 0)
                yield from ((f"{file}:{number}", data) for number, data in enumerate(opened, start=1))
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            raise FileError(str(file), "", problem, "Make it readable, or move it away.") from error


def list_files(path: Path) -> tuple[Path, ...]:
    """List the files of a history.

    Raises:
        FileError: There is none.
    """
    paths = path.glob(f"*{SUFFIX}") if path.is_dir() else [path]
    files = tuple(file for file in paths if file.is_file())
    if not files:
        fix = "Name a history: what `--history` of check, ab --anchor and baseline refresh wrote to."
        raise FileError(str(path), "", "holds no history", fix)
    return files


def compact_history(path: Path) -> HistoryReading:
    """Sort all usable lines by time, those of a directory into a file a month.

    Raises:
        FileError: There is no history, or it cannot be read.
        MachineError: The disk is full or read-only; nothing was removed.
    """
    reading = HistoryReading()
    files = list_files(path)
    probed = HistoryReading()
    is_usable = any(True for _ in _read_usable(files, probed)) or probed.foreign
    if not is_usable and any(file.stat().st_size for file in files):
        fix = "Name a history: nothing was changed."
        raise FileError(str(path), "", "holds no run that can be read", fix)
    groups: dict[Path, list[Path]] = {}
    for file in files:
        month = _MONTH.match(file.name)
        target = path / f"{month[0] if month else _UNDATED}{SUFFIX}" if path.is_dir() else path
        groups.setdefault(target, []).append(file)
    for target, sources in groups.items():
        _compact(target, sources, reading)
    return reading


def _compact(target: Path, files: Sequence[Path], reading: HistoryReading) -> None:
    target.touch()
    with target.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        foreign_before = len(reading.foreign)
        lines = sorted(
            ((line.head.created, text) for line, text in _read_usable({*files, target}, reading)),
            key=itemgetter(0),
        )
        texts = (*(text for _, text in lines), *reading.foreign[foreign_before:])
        if texts or target in files:
            write_atomic(target, (f"{text.rstrip()}\n" for text in texts))
        else:
            target.unlink()  # nothing of its files can be read
        for file in {*files} - {target}:
            file.unlink()


def _encode(line: HistoryLine) -> str:
    head = {key: value for key, value in encode(line.head).items() if value}
    plain = {"schema": SCHEMA, **head, "cases": encode(line.cases)}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False) + "\n"


def _parse(data: bytes, location: str) -> dict[str, Any]:
    if len(data) > _MAX_LINE:
        raise FileError(location, "", "is larger than a line may be", _FIX)
    try:
        plain = json.loads(data.decode())  # by hand, like the figures: a year of lines is gigabytes
    except (ValueError, RecursionError):
        problem = "is no JSON" if data.endswith(b"\n") else "was not written to its end"
        raise FileError(location, "", problem, _FIX) from None
    if not isinstance(plain, dict):
        raise FileError(location, "", "is no object", _FIX)
    return plain


def _decode(plain: dict[str, Any], location: str) -> HistoryLine:
    if plain.pop("schema", None) != SCHEMA:
        raise FileError(location, "schema", f"is not {SCHEMA}", _FIX)
    cases = _read_cases(plain.pop("cases", None), location)
    head = {key: value for key, value in plain.items() if key in HistoryHead.__dataclass_fields__}
    return HistoryLine(head=decode(HistoryHead, head, location), cases=cases)


def _read_cases(plain: Any, location: str) -> dict[str, dict[Metric, Figures]]:  # noqa: ANN401 - whatever lies there
    """By hand: a year of figures is millions. Unknown metrics are left out."""
    cases: dict[str, dict[Metric, Figures]] = {}
    for case_id, values in plain.items() if isinstance(plain, dict) else ():
        if not is_text(case_id):
            raise FileError(location, "cases", "has a name that UTF-8 cannot hold", _FIX)
        cases[case_id] = figures = {}
        for name, numbers in values.items() if isinstance(values, dict) else ():
            is_list = isinstance(numbers, list) and len(numbers) in (1, 3)
            if not (is_list and all(map(_is_figure, numbers))):
                problem = "expected one finite number or three"
                raise FileError(location, f"cases.{case_id}.{name}", problem, _FIX)
            if metric := _METRICS.get(name):
                figures[metric] = tuple(numbers)
    return cases


def _is_figure(number: object) -> bool:
    if type(number) is float:
        return math.isfinite(number)
    return type(number) is int and abs(number) <= MAX_INTEGER


def _shorten(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
