"""What must come back, how it is divided over machines, and how the parts are joined again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gate.errors import UsageError
from gate.fingerprint import describe_difference, has_same_host
from gate.records import Case, Run

T = TypeVar("T")

_NAMED = 3  # differences or cases named in an error; the rest is counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The cases to measure, the trials of each, and the expected seconds of it all on one machine."""

    cases: tuple[Case, ...]
    trials: int
    expected_s: float


def make_plan(cases: tuple[Case, ...], trials: int) -> Plan:
    """Plan ``trials`` of each case, in their order."""
    return Plan(cases=cases, trials=trials, expected_s=_sum_expected(cases) * trials)


def _sum_expected(cases: Iterable[Case]) -> float:
    return sum(case.expected_s for case in cases)


def shard_cases(cases: tuple[Case, ...], shards: int) -> tuple[tuple[Case, ...], ...]:
    """Divide cases into at most ``shards`` parts of about equal expected time; none is empty.

    The longest case goes first, each to the part with the least so far. The parts depend on the
    set of cases only, and within a part the order is that of ``cases``.

    Raises:
        UsageError: ``shards`` is not positive.
    """
    if shards < 1:
        raise UsageError(f"cannot divide into {shards} shards", "Ask for 1 shard or more.")
    parts: list[list[Case]] = [[] for _ in range(min(shards, len(cases)))]
    loads = [0.0] * len(parts)
    for case in sorted(cases, key=lambda case: (-case.expected_s, case.id)):
        # By number of cases where the loads are equal, so that no part stays empty.
        target = min(range(len(parts)), key=lambda index: (loads[index], len(parts[index]), index))
        parts[target].append(case)
        loads[target] += case.expected_s
    order = {case.id: index for index, case in enumerate(cases)}
    return tuple(tuple(sorted(part, key=lambda case: order[case.id])) for part in parts)


def render_github_matrix(plan: Plan, shards: int) -> str:
    """Render the shards as a ``strategy.matrix`` for GitHub: one line of JSON.

    Raises:
        UsageError: ``shards`` is not positive.
    """
    parts = shard_cases(plan.cases, shards)
    include = [
        {
            "shard": number,
            "shards": len(parts),
            "select": ",".join(case.id for case in part),
            "cases": len(part),
            "expected_s": round(_sum_expected(part) * plan.trials, 1),
        }
        for number, part in enumerate(parts, start=1)
    ]
    return json.dumps({"include": include})


def merge_runs(runs: Sequence[Run], planned: tuple[Case, ...] = ()) -> Run:
    """Join the runs of shards into one.

    The plan is ``planned`` and what the runs planned: a case whose shard did not come back stays in
    it without trials and is INCOMPLETE later. Provenance and environment are the first run's. Wall
    and toolchain seconds add up: machine time, not elapsed time.

    Raises:
        UsageError: No runs; other environments, commits, sampling or definitions; a case measured twice.
    """
    if not runs:
        raise UsageError("there is no run to merge", "Name the run.json of each shard.")
    first = runs[0]
    for number, run in enumerate(runs[1:], start=2):
        _check_mergeable(first, run, f"run {number} of {len(runs)}")
    _check_overlap(runs)
    return replace(
        first,
        cases=_join_cases([planned, *(run.cases for run in runs)]),
        trials=_concatenate(runs, lambda run: run.trials),
        failures=_concatenate(runs, lambda run: run.failures),
        selection=",".join(dict.fromkeys(run.selection for run in runs if run.selection)),
        trials_planned=max(run.trials_planned for run in runs),
        toolchain_s=sum(run.toolchain_s for run in runs),
        wall_s=sum(run.wall_s for run in runs),
        finished=all(run.finished for run in runs),
    )


def _concatenate(runs: Sequence[Run], pick: Callable[[Run], tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(item for run in runs for item in pick(run))


def _check_mergeable(first: Run, run: Run, name: str) -> None:
    mend = "Merge only shards of one commit, measured on machines of one kind."
    if not has_same_host(first.environment, run.environment):
        differences = describe_difference(first.environment, run.environment)
        raise UsageError(f"{name} has another environment: {_name_some(differences)}", mend)
    if run.provenance.commit != first.provenance.commit:
        pair = f"{run.provenance.commit or 'none'}, not {first.provenance.commit or 'none'}"
        raise UsageError(f"{name} is of the commit {pair}", mend)
    if run.sampling != first.sampling:
        other = sorted(f"{key} {value:g}" for key, value in run.sampling.items() - first.sampling.items())
        raise UsageError(f"{name} sampled otherwise: {_name_some(other) or 'not recorded'}", mend)


def _check_overlap(runs: Sequence[Run]) -> None:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for run in runs:
        measured = {trial.case_id for trial in run.trials} | {failure.case_id for failure in run.failures}
        twice |= dict.fromkeys(sorted(measured & seen))
        seen |= measured
    if twice:
        what = f"measured in more than one run: {_name_some(tuple(twice))}"
        raise UsageError(what, "Name each shard once, and shards that share no case.")


def _join_cases(plans: Sequence[tuple[Case, ...]]) -> tuple[Case, ...]:
    joined: dict[str, Case] = {}
    for case in (case for plan in plans for case in plan):
        other = joined.setdefault(case.id, case)
        if other.definition != case.definition:
            what = f"the runs define the case {case.id!r} differently"
            raise UsageError(what, "Measure all shards with one gate.yml and one compile-gate.")
    return tuple(joined.values())


def _name_some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest
