"""A run that is saved while it grows: a line for each trial, and lines that were appended since.

::

    {
    "schema": "compile-gate/run/1",
    "cases": [...],
    "trials": [{...},
    {...}],
    "finished": false
    }
    {"trials": [{...}], "failures": [], "sources": {}, "wall_s": 81.2}

A file in another layout, as an editor may leave it, is one part: its head.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, auto

from gate.records import CaseFailure, Run, Trial
from gate.records.bounds import NotNegative


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """What came to a run since it was saved before."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    wall_s: NotNegative = 0.0  # of the whole run


_GROWING = {one.name for one in fields(Growth)}
_KEPT = tuple(one.name for one in fields(Run) if one.name not in _GROWING)


def find_growth(before: Run, after: Run) -> Growth | None:
    """Find what came to a run; ``None`` where anything else of it changed."""
    is_same = (
        all(getattr(before, name) is getattr(after, name) for name in _KEPT)
        and len(before.trials) <= len(after.trials)
        and all(map(operator.is_, before.trials, after.trials))
        and before.failures == after.failures[: len(before.failures)]
        and before.sources.items() <= after.sources.items()
    )
    if not is_same:
        return None
    return Growth(
        trials=after.trials[len(before.trials) :],
        failures=after.failures[len(before.failures) :],
        sources={key: text for key, text in after.sources.items() if key not in before.sources},
        wall_s=after.wall_s,
    )


def add_growths(run: Run, growths: Iterable[Growth]) -> Run:
    """Add what was appended to a run."""
    trials, failures, sources, wall_s = [*run.trials], [*run.failures], dict(run.sources), run.wall_s
    for one in growths:
        trials += one.trials
        failures += one.failures
        sources |= one.sources
        wall_s = one.wall_s
    return replace(run, trials=tuple(trials), failures=tuple(failures), sources=sources, wall_s=wall_s)


class Part(Enum):
    """What a line, or a piece of one, belongs to."""

    HEAD = auto()  # the record without its rows; where one was, an empty line
    ROW = auto()
    GROWTH = auto()


def split_lines(lines: Iterable[bytes], key: str) -> Iterator[tuple[Part, int, bytes]]:
    """Split a file into parts, each with the number of its line; ``key`` is that of the list with rows.

    A last line that was appended and does not end is left out: its writer was killed.
    """
    part, opening, is_over = Part.HEAD, f'"{key}": ['.encode(), False
    for number, line in enumerate(lines, start=1):
        rest = line
        if part is Part.HEAD and line.startswith(opening + b"{"):
            part, rest = Part.ROW, line[len(opening) :]
            yield Part.HEAD, number, opening
        elif is_over and line.startswith(b"{"):
            part = Part.GROWTH
        is_over = part is Part.HEAD and line == b"}\n"
        if part is Part.ROW:
            row = rest.removesuffix(b"\n").removesuffix(b",")
            is_last = row.endswith(b"}]")
            row = row[:-1] if is_last else row
            yield Part.ROW, number, row
            yield Part.HEAD, number, rest[len(row) :] if is_last else b"\n"
            part = Part.HEAD if is_last else part
        elif part is Part.HEAD or line.endswith(b"\n"):
            yield part, number, line
