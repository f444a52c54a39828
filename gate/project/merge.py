"""Runs of shards, or of one unchanged program, joined into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from gate.errors import UsageError
from gate.fingerprint import describe_difference, has_same_host
from gate.records.cases import Case
from gate.records.run import BaseArm, Pairing, Run, Trial
from gate.units import join_some

_Named = tuple[str, Run]  # a run, and its file as somebody named it


def merge_runs(runs: Sequence[Run], names: Sequence[str], planned: tuple[Case, ...] = ()) -> Run:
    """Join the runs of shards into one; errors call the runs by their ``names``.

    A case of ``planned`` whose shard did not come back stays without trials, and is INCOMPLETE later.
    Provenance and environment are the first run's. Seconds add up: machine time.

    Raises:
        UsageError: Other environments, commits, bases, sampling, trials or definitions; a case measured
            twice; shards of other plans, or one that is missing where the plan is unknown.
    """
    first, *others = named = list(zip(names, runs, strict=True))
    for other in others:
        _check_alike(first, other, "Merge only shards that were measured on machines of one kind.")
        _check_common(first, other)
    _check_overlap(named)
    _check_shards(named, is_planned=bool(planned))
    cases = _join_cases([("gate.yml", planned), *((name, run.cases) for name, run in named)])
    _check_number(runs, len(cases))
    return _join_runs(named, cases, tuple(trial for run in runs for trial in run.trials))


def list_missing_shards(runs: Sequence[Run]) -> list[int]:
    shards = [run.shard for run in runs if run.shard]
    present = {shard.number for shard in shards}
    return [number for number in range(1, shards[0].of + 1) if number not in present] if shards else []


def pool_runs(runs: Sequence[Run], names: Sequence[str]) -> Run:
    """Join runs of one unchanged program on one machine, so that more is known of its noise.

    They may hold the same cases: trials and pairs are numbered anew. Commits may differ.

    Raises:
        UsageError: Other environments, sampling or definitions; a trial that two of them hold.
    """
    first, *others = named = list(zip(names, runs, strict=True))
    for other in others:
        _check_alike(first, other, "Pool only runs of one machine, with one compile-gate.")
    _check_copies(named)
    cases = _join_cases([(name, run.cases) for name, run in named])
    return _join_runs(named, cases, tuple(_number_anew(runs)))


def _number_anew(runs: Sequence[Run]) -> Iterator[Trial]:
    """Each case goes on where the run before stopped; pairs are counted apart from lone trials."""
    offsets: Counter[tuple[str, bool]] = Counter()
    for run in runs:
        ends = offsets.copy()
        for trial in run.trials:
            key = (trial.case_id, trial.pairing is Pairing.ALONE)
            index = offsets[key] + trial.index
            ends[key] = max(ends[key], index)
            yield replace(trial, index=index)
        offsets = ends


def _join_runs(named: Sequence[_Named], cases: tuple[Case, ...], trials: tuple[Trial, ...]) -> Run:
    runs = [run for _, run in named]
    selection = ",".join(dict.fromkeys(run.selection for run in runs if run.selection))
    joined = reduce(_join_two, runs)
    return replace(
        joined, cases=cases, base=_join_bases(named), shard=None, trials=trials, selection=selection
    )


def _join_two(first: Run, second: Run) -> Run:
    return replace(
        first,
        failures=(*first.failures, *second.failures),
        retried=(*first.retried, *second.retried),
        trials_planned=max(first.trials_planned, second.trials_planned),
        toolchain_s=first.toolchain_s + second.toolchain_s,
        wall_s=first.wall_s + second.wall_s,
        finished=first.finished and second.finished,
        sources={**first.sources, **second.sources},
        places={**first.places, **second.places},
        lanes=(*first.lanes, *second.lanes),
    )


def _join_bases(named: Sequence[_Named]) -> BaseArm | None:
    bases = [(f"the base of {name}", run.base) for name, run in named if run.base]
    if not bases:
        return None
    return replace(bases[0][1], cases=_join_cases([(name, base.cases) for name, base in bases]))


def _name_base(run: Run) -> str:
    return run.base.provenance.commit or "in no commit" if run.base else "none"


# What the runs of shards have in common; with another base a regression against one would be judged against
# the other, and with another number of trials a shard's cases would seem to lack some, or be excused.
_COMMON: Sequence[tuple[str, Callable[[Run], str], str]] = (
    ("commit", lambda run: run.provenance.commit or "none", "Merge only shards of one commit."),
    ("base", _name_base, "Measure all shards with the same --base."),
    ("number of trials", lambda run: str(run.trials_planned), "Measure all shards with the same --trials."),
)


def _check_common(first: _Named, other: _Named) -> None:
    (first_name, first_run), (name, run) = first, other
    for what, read, fix in _COMMON:
        if (value := read(run)) != (first_value := read(first_run)):
            raise UsageError(f"the {what} of {name} is {value}, and that of {first_name} {first_value}", fix)


def _check_alike(first: _Named, other: _Named, fix: str) -> None:
    (first_name, first_run), (name, run) = first, other
    if not has_same_host(first_run.environment, run.environment):
        differences = join_some(describe_difference(first_run.environment, run.environment))
        raise UsageError(f"{name} has another environment than {first_name}: {differences}", fix)
    if run.sampling != first_run.sampling:
        values = sorted(
            f"{key} {value:g}" for key, value in run.sampling.items() - first_run.sampling.items()
        )
        listed = join_some(values) or "not recorded"
        raise UsageError(f"{name} sampled differently than {first_name}: {listed}", fix)


def _check_overlap(named: Sequence[_Named]) -> None:
    seen: dict[str, str] = {}
    for name, run in named:
        measured = {trial.case_id for trial in run.trials} | {failure.case_id for failure in run.failures}
        if twice := sorted(measured & seen.keys()):
            holder = seen[twice[0]]
            what = f"{name} holds what {holder} holds as well: {join_some(twice)}"
            what = what if name != holder else f"{name} is named twice"
            raise UsageError(what, "Name each shard once, and shards that share no case.")
        seen |= dict.fromkeys(measured, name)


def _check_copies(named: Sequence[_Named]) -> None:
    """A trial that is there twice would look like little noise."""
    seen: dict[tuple[object, ...], str] = {}
    for name, run in named:
        trials = [
            (trial.case_id, trial.arm, trial.started, *trial.samples.items())
            for trial in run.trials
            if trial.started
        ]
        if copied := next((trial_key for trial_key in trials if trial_key in seen), None):
            what = f"{name} holds a trial of {copied[0]} that {seen[copied]} holds as well"
            raise UsageError(what, "Name each run once, and no earlier save of it.")
        seen |= dict.fromkeys(trials, name)


def _check_shards(named: Sequence[_Named], *, is_planned: bool) -> None:
    """Nothing else shows which cases a missing shard had."""
    marked = [(name, run, run.shard) for name, run in named if run.shard]
    if not marked:
        return
    first_name, first_run, first = marked[0]
    for name, run, shard in marked:
        if (shard.of, shard.cases, run.selection) != (first.of, first.cases, first_run.selection):
            sets = [
                f"{part} of {part.cases} cases by {part_run.selection!r}"
                for part, part_run in ((shard, run), (first, first_run))
            ]
            raise UsageError(f"{name} is {sets[0]}, and {first_name} {sets[1]}", "Merge shards of one plan.")
    missing = list_missing_shards([run for _, run, _ in marked])
    if missing and not is_planned:
        listed = join_some([str(number) for number in missing])
        fix = f"Name its run.json too, or let its cases be MISSING: --select {first_run.selection!r}."
        are = "shard {} of {} is missing" if len(missing) == 1 else "shards {} of {} are missing"
        raise UsageError(are.format(listed, first.of), fix)
    held = len({case.id for _, run, _ in marked for case in run.cases})
    if not missing and held != first.cases:
        fix = "Measure them all with one gate.yml and one compile-gate."
        raise UsageError(f"all shards together hold {held} cases, and {first.cases} were divided", fix)


def _check_number(runs: Sequence[Run], held: int) -> None:
    """Cases of a missing shard must be MISSING, not absent."""
    shard = next((run.shard for run in runs if run.shard), None)
    if shard and held < shard.cases:
        what = f"--select names {held} of the {shard.cases} cases that were divided, and a shard is missing"
        raise UsageError(what, f"Name them all: --select {runs[0].selection!r}.")


def _join_cases(plans: Sequence[tuple[str, tuple[Case, ...]]]) -> tuple[Case, ...]:
    joined: dict[str, tuple[str, Case]] = {}
    for name, case in ((name, case) for name, cases in plans for case in cases):
        first_name, first = joined.setdefault(case.id, (name, case))
        if first.program != case.program:
            what = f"{name} defines the case {case.id!r} differently than {first_name}"
            raise UsageError(what, "Measure them all with one gate.yml and one compile-gate.")
    return tuple(case for _, case in joined.values())
