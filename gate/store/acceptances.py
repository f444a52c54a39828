"""Accepted changes: ``baselines/accepted.yml``, and the entries of what is accepted of one commit."""

import math
import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import ClassVar

from gate.errors import FileError, UsageError
from gate.files.codec import decode, encode, write_atomic
from gate.files.disk import is_present, load_bytes
from gate.files.entry import VERSION, Allowance, list_contradictions
from gate.files.invalid import InvalidValue
from gate.files.schema import get_example, list_invalid
from gate.files.untrusted import decode_text
from gate.files.yaml_in import MAX_YAML_BYTES, decode_yaml, load_yaml
from gate.files.yaml_out import write_scalar
from gate.metrics import SPECS, Family
from gate.records.bounds import MOST_ALLOWED, MOST_DAYS, Amount, compute_last_day, read_amount, write_percent
from gate.records.cases import Acceptance, Metric

_HEADER = f"""\
# Accepted changes. After its expiry date an entry no longer counts.
version: {VERSION}
accepted:
"""
# Left out of an entry: accepted.yml belongs to the gate of its directory, and a commit's file to that commit.
_UNSAID = {"gate": "", "environment": "*", "metric": None}


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceEntry:
    case: str
    metric: Metric
    allowance: Allowance
    reason: str
    author: str = ""
    expires: str
    environment: str = "*"

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        del left_out
        yield from _check_allowance(self.metric, self.allowance)


def _check_allowance(metric: Metric, written: float | str) -> Iterator[InvalidValue]:
    spec, is_percent, amount = SPECS[metric], isinstance(written, str), read_amount(written)
    if not spec.is_ratio and is_percent:
        problem = f"{written} does not fit {metric}, which is not compared by ratio"
        yield _refuse_allowance(problem, f"Write a plain number: the unit is {spec.unit}.")
    elif spec.family is Family.EXACT and not amount.is_integer():
        problem = f"{metric} is a count: it cannot get worse by {amount:g}"
        yield _refuse_allowance(problem, f"Write a whole number, {math.ceil(amount)} or more.")
    if not amount:
        example = {Family.EXACT: "1", Family.LOG2: "0.5"}.get(spec.family, "8%")
        problem = f"{written if is_percent else 0} accepts no change at all"
        yield _refuse_allowance(problem, f"Write how much worse it may be, for example {example}.")
    if spec.is_ratio and is_percent and amount > MOST_ALLOWED:
        problem = f"{written} is more than {MOST_ALLOWED:.0%}"
        yield _refuse_allowance(problem, "Record new baselines, or put the case into quarantine in gate.yml.")
    if spec.is_ratio and not is_percent and amount >= 1:
        problem = f"{amount:g} would allow {amount:.0%}"
        yield _refuse_allowance(problem, f"Write {amount:g}% or {amount / 100:g}.")


def _refuse_allowance(problem: str, fix: str) -> InvalidValue:
    return InvalidValue(key=".allowance", problem=problem, fix=fix)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedFile:
    SCHEMA: ClassVar[str] = "accepted"

    version: int
    accepted: tuple[AcceptanceEntry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitEntry:
    """Without a metric: the case had no baseline to compare with."""

    reason: str
    author: str
    expires: str
    gate: str
    environment: str
    case: str
    metric: Metric | None = None
    allowance: Allowance = 0.0


def load_acceptances(path: Path) -> tuple[Acceptance, ...]:
    """Expired ones included.

    Raises:
        FileError: The file cannot be used.
    """
    if not is_present(path):
        return ()
    file, _ = load_yaml(AcceptedFile, path)
    return tuple(map(make_acceptance, file.accepted))


def make_acceptance(entry: AcceptanceEntry | CommitEntry, commit: str = "") -> Acceptance:
    allowance = read_amount(entry.allowance)
    return Acceptance(**{**encode(entry), "metric": entry.metric, "allowance": allowance}, commit=commit)


def parse_allowance(text: str, metric: Metric) -> float:
    """Parse ``8%`` or ``0.08``; for counters and drift a plain number in the metric's unit.

    Raises:
        UsageError: It is no such number, must have been meant as percent, or leaves nothing to fail.
    """
    is_fraction = SPECS[metric].is_ratio
    fix = "Write it as 8%." if is_fraction else f"Write a plain number: the unit is {SPECS[metric].unit}."
    try:
        written = Amount().read(float(text.strip()))
    except ValueError:
        written = Amount().read(text.strip())
    if written is None:
        raise UsageError(f"--allow: expected {Amount().describe()}, got {text!r}", fix)
    for invalid in _check_allowance(metric, written):
        raise UsageError(f"--allow: {invalid.problem}", invalid.fix)
    return read_amount(written)


def save_acceptance(path: Path, acceptance: Acceptance, today: str = "") -> bool:
    """Add an acceptance to ``accepted.yml``; it replaces one of the same case and metric.

    A new one is appended as text; else the file is written anew. Returns whether comments, or a style of
    writing, were lost. ``today`` is an ISO date, by default that in UTC.

    Raises:
        UsageError: The reason is missing or the expiry is no day, past or too far.
        FileError: The file that is there cannot be used.
        MachineError: The disk is full or read-only.
    """
    _check_acceptance(acceptance, today or datetime.now(UTC).date().isoformat())
    old = load_acceptances(path)
    before = decode_text(load_bytes(path, MAX_YAML_BYTES), str(path)) if is_present(path) else ""
    # Of another case or metric there may be several: each counts.
    others = [kept for kept in old if (kept.case, kept.metric) != (acceptance.case, acceptance.metric)]
    expected = (*others, acceptance)
    appended = _append_text(path, before, expected) if old else ""
    write_atomic(path, appended or _render_file(expected))
    return not appended and bool(before) and before.split() != _render_file(old).split()


def _render_file(acceptances: Iterable[Acceptance]) -> str:
    return _HEADER + "".join(map(render_entry, acceptances))


def _check_acceptance(acceptance: Acceptance, today: str) -> None:
    last = compute_last_day(date.fromisoformat(today)).isoformat()
    if acceptance.expires[4:5] == "-" and acceptance.expires > last:  # else it is no day at all
        what = f"--expires: {acceptance.expires} is more than {MOST_DAYS} days from now"
        raise UsageError(what, f"Choose a day up to {last}; for good, record new baselines.")
    plain = {"version": VERSION, "accepted": [_encode(acceptance)]}
    invalid = list_invalid(AcceptedFile.SCHEMA, plain) or list_contradictions(decode(AcceptedFile, plain, ""))
    for item in invalid:
        key = item.key.rpartition(".")[2]
        option = "--" + key.removesuffix("ance")  # --allow stands for the key allowance
        example = shlex.quote(get_example(AcceptedFile.SCHEMA, f"accepted.{key}"))
        raise UsageError(f"{option}: {item.problem}", f"Write, for example, `{option} {example}`.")
    if not acceptance.reason.strip(" ."):  # as in the command that a report suggests
        raise UsageError("--reason: '...' is no reason", "Say why it may get worse, or name an issue.")
    if acceptance.expires < today:
        raise UsageError(f"--expires: {acceptance.expires} is past", f"Choose a day from {today} on.")


def _append_text(path: Path, before: str, expected: tuple[Acceptance, ...]) -> str:
    """``""`` where the result does not read back, as after a flow list or where an entry is replaced."""
    text = before.rstrip() + "\n" + render_entry(expected[-1])
    try:
        file, _ = decode_yaml(AcceptedFile, text.encode(), str(path))
    except FileError:
        return ""
    return text if tuple(map(make_acceptance, file.accepted)) == expected else ""


def render_entry(acceptance: Acceptance) -> str:
    lines = [f"{key}: {write_scalar(value)}\n" for key, value in _encode(acceptance).items()]
    return "  - " + "    ".join(lines)


def _encode(acceptance: Acceptance) -> dict[str, object]:
    plain: dict[str, object] = {
        key: value
        for key, value in encode(acceptance).items()
        if key != "commit" and (key not in _UNSAID or _UNSAID[key] != value)
    }
    if acceptance.metric is None:
        del plain["allowance"]
    elif SPECS[acceptance.metric].is_ratio:
        plain["allowance"] = write_percent(acceptance.allowance) or acceptance.allowance
    return plain
