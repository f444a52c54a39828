"""What must come back, how it is divided over machines, and how the parts are joined again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gate.errors import UsageError
from gate.fingerprint import describe_difference, has_same_host
from gate.records import Case, Pairing, Run, Trial

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
        UsageError: No runs; other environments, commits, sampling, trials or definitions; a case measured
            twice.
    """
    if not runs:
        raise UsageError("there is no run to merge", "Name the run.json of each shard.")
    fix = "Merge only shards of one commit, measured on machines of one kind."
    for name, run in _name_others(runs):
        _check_alike(runs[0], run, name, fix)
        _check_commit(runs[0], run, name, fix)
        _check_trials(runs[0], run, name)
    _check_overlap(runs)
    cases = _join_cases([planned, *(run.cases for run in runs)])
    return _join_runs(runs, cases, _concatenate(runs, lambda run: run.trials))


def pool_runs(runs: Sequence[Run]) -> Run:
    """Join runs of one unchanged program on one machine, so that more is known of its noise.

    They may hold the same cases: trials and pairs are numbered anew. The base is the first one's, with
    the cases of all. Commits may differ: that nothing changed is what the caller says.

    Raises:
        UsageError: No runs; other environments, sampling or definitions.
    """
    if not runs:
        raise UsageError("there is no run to pool", "Name one run.json or more.")
    for name, run in _name_others(runs):
        _check_alike(runs[0], run, name, "Pool only runs of one machine, with one compile-gate.")
    pooled = _join_runs(runs, _join_cases([run.cases for run in runs]), tuple(_number_anew(runs)))
    bases = [run.base for run in runs if run.base]
    if not bases:
        return pooled
    return replace(pooled, base=replace(bases[0], cases=_join_cases([base.cases for base in bases])))


def _number_anew(runs: Sequence[Run]) -> Iterator[Trial]:
    """Go on, for each case, where the run before stopped; pairs are counted apart from lone trials."""
    offsets: Counter[tuple[str, bool]] = Counter()
    for run in runs:
        ends = offsets.copy()
        for trial in run.trials:
            key = (trial.case_id, trial.pairing is Pairing.ALONE)
            index = offsets[key] + trial.index
            ends[key] = max(ends[key], index)
            yield replace(trial, index=index)
        offsets = ends


def _join_runs(runs: Sequence[Run], cases: tuple[Case, ...], trials: tuple[Trial, ...]) -> Run:
    return replace(
        runs[0],
        cases=cases,
        trials=trials,
        failures=_concatenate(runs, lambda run: run.failures),
        selection=",".join(dict.fromkeys(run.selection for run in runs if run.selection)),
        trials_planned=max(run.trials_planned for run in runs),
        toolchain_s=sum(run.toolchain_s for run in runs),
        wall_s=sum(run.wall_s for run in runs),
        finished=all(run.finished for run in runs),
    )


def _concatenate(runs: Sequence[Run], pick: Callable[[Run], tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(item for run in runs for item in pick(run))


def _name_others(runs: Sequence[Run]) -> Iterator[tuple[str, Run]]:
    return ((f"run {number} of {len(runs)}", run) for number, run in enumerate(runs[1:], start=2))


def _check_commit(first: Run, run: Run, name: str, fix: str) -> None:
    if run.provenance.commit != first.provenance.commit:
        pair = f"{run.provenance.commit or 'none'}, not {first.provenance.commit or 'none'}"
        raise UsageError(f"{name} is of the commit {pair}", fix)


def _check_trials(first: Run, run: Run, name: str) -> None:
    """Refuse another number of planned trials: one shard's cases would seem to lack some, or be excused."""
    if run.trials_planned != first.trials_planned:
        what = f"{name} planned {run.trials_planned} trials of each case, not {first.trials_planned}"
        raise UsageError(what, "Measure all shards with the same --trials.")


def _check_alike(first: Run, run: Run, name: str, fix: str) -> None:
    if not has_same_host(first.environment, run.environment):
        differences = describe_difference(first.environment, run.environment)
        raise UsageError(f"{name} has another environment: {_name_some(differences)}", fix)
    if run.sampling != first.sampling:
        other = sorted(f"{key} {value:g}" for key, value in run.sampling.items() - first.sampling.items())
        raise UsageError(f"{name} sampled otherwise: {_name_some(other) or 'not recorded'}", fix)


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
            raise UsageError(what, "Measure them all with one gate.yml and one compile-gate.")
    return tuple(joined.values())


def _name_some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest
