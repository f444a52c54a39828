"""The plan of a run: its shards, and what a target spares."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gate.decide.evidence.compiles import find_unchanged_code
from gate.devices import TARGET_KIND
from gate.errors import UsageError
from gate.records.cases import Case
from gate.records.run import Run, Shard


def sum_expected_s(cases: Iterable[Case], trials: int) -> float:
    return sum(case.expected_s for case in cases) * trials


def shard_cases(cases: tuple[Case, ...], shards: int) -> tuple[tuple[Case, ...], ...]:
    """Divide cases into at most ``shards`` parts of about equal expected time; none is empty.

    The longest case goes first, each to the part with the least so far; the order in a part is that of
    ``cases``.

    Raises:
        UsageError: ``shards`` is not positive.
    """
    if shards < 1:
        raise UsageError(f"cannot divide into {shards} shards", "Ask for 1 shard or more.")
    parts: list[list[Case]] = [[] for _ in range(min(shards, len(cases)))]
    loads = [0.0] * len(parts)
    for case in sorted(cases, key=lambda case: (-case.expected_s, case.id)):
        # By number of cases where the loads are equal, so that no part stays empty.
        target = min(range(len(parts)), key=lambda index: (loads[index], len(parts[index])))
        parts[target].append(case)
        loads[target] += case.expected_s
    order = {case.id: index for index, case in enumerate(cases)}
    return tuple(tuple(sorted(part, key=lambda case: order[case.id])) for part in parts)


def pick_shard(cases: tuple[Case, ...], number: int, of: int) -> tuple[tuple[Case, ...], Shard]:
    """Pick the ``number``-th of ``of`` parts, counted from 1.

    Raises:
        UsageError: There is no such part, or there are fewer cases than parts.
    """
    parts = shard_cases(cases, of)
    if len(parts) < of:
        raise UsageError(f"{of} shards of {len(parts)} cases", f"Divide into {len(parts)} at most.")
    if not 1 <= number <= of:
        raise UsageError(f"there is no shard {number} of {of}", f"Name one from 1 to {of}.")
    return parts[number - 1], Shard(number=number, of=of, cases=len(cases))


def render_github_matrix(cases: tuple[Case, ...], trials: int, shards: int) -> str:
    """Render a ``strategy.matrix`` for GitHub: one line of JSON.

    Raises:
        UsageError: ``shards`` is not positive.
    """
    parts = shard_cases(cases, shards)
    include = [
        {
            "shard": number,
            "shards": len(parts),
            "select": ",".join(case.id for case in part),
            "cases": len(part),
            "expected_s": round(sum_expected_s(part, trials), 1),
        }
        for number, part in enumerate(parts, start=1)
    ]
    return json.dumps({"include": include})


def drop_unchanged_code(cases: Iterable[Case], run: Run) -> tuple[Case, ...]:
    """Drop the cases whose code ``ab --target`` found to be that of the base, and that are still defined so.

    Raises:
        UsageError: The run is of a device, or compares nothing with a base, or did not end.
    """
    if run.environment.device_kind != TARGET_KIND or run.base is None:
        message = "the run compares no target with a base"
        raise UsageError(message, "Make one: compile-gate ab BASE --target cuda:sm_90.")
    if not run.finished:
        raise UsageError("the run did not end", "Continue it with --resume.")
    same = find_unchanged_code(run)
    programs = {case.id: case.program for case in run.cases if case.id in same}
    return tuple(case for case in cases if programs.get(case.id) != case.program)
