"""Whether a run continues another one, or another lane measures the same run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gate import fingerprint
from gate.errors import UsageError
from gate.lab.arms.arms import CodeState
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact
from gate.records.run import BaseArm, Extent, Provenance, Run, Trial
from gate.units import join_some

_FIX = "Run without --resume, or restore what was there when the run began."


def resume_run(fresh: Run, previous: Run, observe: Observer) -> Run:
    if not fresh.changes:
        observe(Noted(fact=Fact(code=Code.UNCOMMITTED_BEFORE)))
    return carry_over(fresh, previous)


def carry_over(fresh: Run, previous: Run) -> Run:
    """Take the trials of ``previous`` into ``fresh``, the same run about to be started again.

    What failed is tried again; its failures are kept. Parts of trials are not taken where whole ones are
    wanted.

    Raises:
        UsageError: It is not the same run; the first differences are named.
    """
    refuse_other_run(fresh, previous)
    return replace(
        fresh,
        provenance=replace(fresh.provenance, created=previous.provenance.created),
        trials=tuple(
            trial
            for trial in _list_sound(previous)
            if trial.extent is Extent.WHOLE or (fresh.base is None and trial.index > fresh.trials_planned)
        ),
        retried=(*previous.retried, *previous.failures),
        sources=previous.sources,
        places={**previous.places, **fresh.places},
        lanes=(*previous.lanes, *fresh.lanes),
        toolchain_s=previous.toolchain_s + fresh.toolchain_s,
        wall_s=previous.wall_s + fresh.wall_s,
    )


def refuse_other_run(fresh: Run, previous: Run) -> None:
    """Raises as :func:`carry_over`."""
    if differences := list_differences(fresh, previous):
        listed = join_some(differences, comma="; ")
        raise UsageError(f"the saved run cannot be continued: {listed}", _FIX)


def _list_sound(run: Run) -> tuple[Trial, ...]:
    failed = {(failure.arm, failure.case_id, failure.trial) for failure in run.failures}
    return tuple(trial for trial in run.trials if (trial.arm, trial.case_id, trial.index) not in failed)


def list_differences(fresh: Run, previous: Run) -> list[str]:
    of_base = _list_base_differences(fresh.base, previous.base) if fresh.base and previous.base else []
    sampling: list[str] = []
    for key, value in fresh.sampling.items():
        before = f"{previous.sampling.get(key, math.nan):g}"
        sampling += _describe_change(f"sampling.{key} ", before, f"{value:g}")
    return [
        *_describe_change("", _name_kind(previous), _name_kind(fresh)),
        *_list_case_differences(fresh.cases, previous.cases),
        *fingerprint.describe_difference(previous.environment, fresh.environment),
        *_describe_change("commit ", previous.provenance.commit[:10], fresh.provenance.commit[:10]),
        *(["what is not committed has changed"] if _is_edited(fresh.changes, previous.changes) else []),
        *sampling,
        *of_base,
    ]


def sort_lanes(
    runs: Mapping[int, Run], tree_changes: Mapping[int, str], states: Sequence[CodeState]
) -> tuple[int, dict[int, list[str]]]:
    """Choose, of the lanes with this host's code, the one that most are like; list what each differs in.

    ``tree_changes`` are those of each lane's working tree, ``states`` are this host's.
    """
    differences = {n: _list_code_differences(run, tree_changes[n], states) for n, run in runs.items()}
    sound = [number for number in runs if not differences[number]]
    alike: dict[int, list[int]] = {}  # by the first of them
    for number in sound:
        first = next((other for other in alike if not list_differences(runs[number], runs[other])), number)
        alike.setdefault(first, []).append(number)
    chosen, taken = max(alike, key=lambda first: len(alike[first]), default=next(iter(runs))), set[str]()
    for number in sound:
        (place,) = runs[number].places
        if number not in alike[chosen]:
            differences[number] = list_differences(runs[number], runs[chosen])
        if place in taken:
            differences[number].append(f"it is at {place}, where another lane is")
        elif not differences[number]:
            taken.add(place)
    return chosen, differences


def _list_code_differences(run: Run, tree_changes: str, states: Sequence[CodeState]) -> list[str]:
    head, base = states[0], states[-1]
    # Of a working tree as head; what a lane does not know of it counts as different.
    run = replace(run, changes=tree_changes or "unknown") if head.is_tree else run
    ours = run.base and replace(
        run.base, provenance=Provenance(commit=base.commit), changes="" if base.is_tree else base.changes
    )
    here = replace(run, provenance=Provenance(commit=head.commit), changes=head.changes, base=ours)
    return [f"not this host's code: {difference}" for difference in list_differences(run, here)]


def _describe_change(subject: str, then: str, now: str) -> list[str]:
    return [f"{subject}{then or 'none'} -> {now or 'none'}"] if then != now else []


def _name_kind(run: Run) -> str:
    """Only a run of pairs alone has no trials to compare with what is stored."""
    kind = "trials (`check`)" if run.trials_planned else "pairs (`ab`)"
    return f"{kind}, counts only" if run.counts_only else kind


def _is_edited(now: str, then: str) -> bool:
    return bool(now and then) and now != then


def _list_base_differences(fresh: BaseArm, previous: BaseArm) -> list[str]:
    changed = fingerprint.describe_difference(previous.environment, fresh.environment)
    is_committed = bool(fresh.provenance.commit) and not fresh.provenance.dirty
    if _is_edited(fresh.changes, previous.changes):
        uncommitted = ["what the base has in no commit has changed"]
    else:  # another directory, or another state of it, where no commit identifies the base
        uncommitted = [] if is_committed else _describe_change("base ", previous.label, fresh.label)
    return [
        *(f"base: {difference}" for difference in changed),
        *_describe_change("base commit ", previous.provenance.commit[:10], fresh.provenance.commit[:10]),
        *uncommitted,
        *(["other interpreters"] if fresh.pythons and previous.pythons not in ((), fresh.pythons) else []),
    ]


def _list_case_differences(fresh: tuple[Case, ...], previous: tuple[Case, ...]) -> list[str]:
    now = {case.id: case.program for case in fresh}
    then = {case.id: case.program for case in previous}
    return sorted(
        [
            *(f"{case_id} was not part of it" for case_id in now.keys() - then.keys()),
            *(f"{case_id} is no longer selected" for case_id in then.keys() - now.keys()),
            *(
                f"{case_id} has another definition"
                for case_id in now.keys() & then.keys()
                if now[case_id] != then[case_id]
            ),
        ]
    )
