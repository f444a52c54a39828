"""Files with a line for each item of their long lists, and a run with lines that were appended since.

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


# What a line, or a piece of one, belongs to, beside the key of a list that it is an item of.
HEAD = ""  # the record without such items; where one was, an empty line
GROWTH = "growth"


def split_lines(lines: Iterable[bytes], keys: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    """Split a file into parts, each with the number of its line; ``keys`` are those of lists with rows.

    A last line that was appended and does not end is left out: its writer was killed.
    """
    openings = {f'"{key}": ['.encode(): key for key in keys}
    part, is_over = HEAD, False
    for number, line in enumerate(lines, start=1):
        rest = line
        opening, bracket, _ = line.partition(b"{") if part == HEAD else (b"", b"", b"")
        if bracket and opening in openings:
            part, rest = openings[opening], line[len(opening) :]
            yield HEAD, number, opening
        elif is_over and line.startswith(b"{"):
            part = GROWTH
        is_over = part == HEAD and line == b"}\n"
        if part == HEAD or (part == GROWTH and line.endswith(b"\n")):
            yield part, number, line
        elif part != GROWTH:
            row = rest.removesuffix(b"\n").removesuffix(b",")
            is_last = row.endswith(b"}]")
            row = row[:-1] if is_last else row
            yield part, number, row
            yield HEAD, number, rest[len(row) :] if is_last else b"\n"
            part = HEAD if is_last else part
