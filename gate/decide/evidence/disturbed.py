"""Trials that were measured while the host was not fit: set aside, or believed less.

The lab says which they are, by what it saw of the host and never by what the trial measured. Pairs are
left alone, and noted: both arms of one are disturbed alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gate.decide.evidence.pairs import list_pairs
from gate.decide.evidence.stored import Evidence
from gate.metrics import SPECS, Scope
from gate.records import (
    CANDIDATE_ARM,
    CORES,
    EXPECTED_THROTTLING,
    Code,
    Comparison,
    Conditions,
    Disturbance,
    Fact,
    Pairing,
    Reason,
    Run,
    Status,
    Trial,
)
from gate.records.cases import group_cases

# How much of each there was in a trial, and which of several trials had the worst of it.
_MEASURES: Mapping[Disturbance, tuple[Callable[[Conditions], float], Callable[[Iterable[float]], float]]] = {
    Disturbance.CROWDED: (lambda one: one.foreign_cores, max),
    Disturbance.STOLEN: (lambda one: one.stolen, max),
    Disturbance.HELD_BACK: (lambda one: one.held_back, max),
    Disturbance.HEATED: (lambda one: one.heat_events, max),
    Disturbance.SWAPPED: (lambda one: one.swapped_bytes, max),
    Disturbance.SHORT_OF_MEMORY: (lambda one: one.free_bytes, min),
    Disturbance.THROTTLED: (lambda one: len(one.throttled), max),
    Disturbance.SHARED: (lambda one: one.foreign_processes, max),
    Disturbance.HELD_MEMORY: (lambda one: one.foreign_memory, max),
}


def set_aside_disturbed(run: Run, fewest: int = 1) -> Run:
    """Take what depends on the host from disturbed trials where at least ``fewest`` of a case are not.

    What does not, like counters and drift, stays.
    """
    if all(not is_disturbed(trial) for trial in run.trials):
        return run
    calm = _count_calm(run)
    return replace(
        run,
        trials=tuple(
            _keep_stack_metrics(trial)
            if _is_screened(trial) and is_disturbed(trial) and calm[trial.case_id] >= fewest
            else trial
            for trial in run.trials
        ),
    )


def list_hopeless(run: Run, fewest: int) -> tuple[str, ...]:
    """List the cases with disturbed trials and fewer than ``fewest`` others: their noise is the machine's."""
    calm = _count_calm(run)
    disturbed = dict.fromkeys(trial.case_id for trial in list_screened(run) if is_disturbed(trial))
    return tuple(case_id for case_id in disturbed if calm[case_id] < fewest)


def note_kept_disturbed(run: Run, fewest: int) -> tuple[Fact, ...]:
    """A note on the cases whose disturbed trials had to be recorded, for want of so many undisturbed ones."""
    kept = list_hopeless(run, fewest)
    return (Fact(code=Code.DISTURBED_KEPT, numbers={"fewest": fewest}, cases=kept),) if kept else ()


def doubt_stored(
    comparisons: Iterable[Comparison], run: Run, evidence: Iterable[Evidence]
) -> tuple[Comparison, ...]:
    """Turn a regression of a host metric into INCONCLUSIVE where only disturbed trials saw it.

    So, too, one against another card's times, unless pairs show it: cards of one model differ by 8 % on
    average and by 22 % at most (arXiv 2208.11035).
    """
    disturbed, cases = _list_disturbances(run), {one.case.id: one for one in evidence}
    rows = []
    for one in comparisons:
        why = None
        if one.status is Status.REGRESSED and SPECS[one.metric].scope is Scope.HOST and not one.pairs:
            why = disturbed.get(one.case_id) or _find_other_card(one, cases[one.case_id])
        if why:
            row = replace(one, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, found=one.reason)
            rows.append(replace(row, remarks=(*one.remarks, why)))
        else:
            rows.append(one)
    return tuple(rows)


def note_disturbed(run: Run) -> tuple[Fact, ...]:
    """Notes on what was measured on an unfit host, and what disturbed it: trials alone, and pairs."""
    alone, paired = list_screened(run), _list_paired(run)
    return (
        *_note_trials(alone, Code.TRIALS_DISTURBED, run.environment.cores),
        *_note_trials(paired, Code.PAIRS_DISTURBED, run.environment.cores),
    )


def blame_disturbance(run: Run, comparisons: Iterable[Comparison]) -> tuple[Fact, ...]:
    """What to do first where something is open and every trial was disturbed: more of them would be, too.

    What is red all the same is to be fixed first.
    """
    tried = [*list_screened(run), *_list_paired(run)]
    found = {one.status for one in comparisons if one.decides}
    is_open = Status.INCONCLUSIVE in found and Status.REGRESSED not in found
    if not is_open or not tried or not all(map(is_disturbed, tried)):
        return ()
    conditions = [trial.conditions for trial in tried]
    return (sum_up_disturbances(Code.QUIET_FIRST, conditions, run.environment.cores),)


def note_count(code: Code, disturbed: int, measured: int) -> tuple[Fact, ...]:
    """A note on so many disturbed ones of all trials or pairs."""
    numbers = {"disturbed": disturbed, "measured": measured}
    return (Fact(code=code, numbers=numbers),) if disturbed else ()


def sum_up_disturbances(code: Code, conditions: Sequence[Conditions], cores: int) -> Fact:
    """A fact with all that disturbed trials: the worst that was seen of each."""
    numbers: dict[str, float] = {}
    for disturbance, (measure, worst) in _MEASURES.items():
        if seen := [measure(one) for one in conditions if disturbance in one.disturbances]:
            numbers[disturbance.value] = worst(seen)
    if Disturbance.CROWDED in numbers:
        numbers[CORES] = cores
    reasons = {reason for one in conditions for reason in one.throttled} - EXPECTED_THROTTLING
    names = {"reasons": tuple(sorted(reasons))} if Disturbance.THROTTLED in numbers else {}
    if crowd := max(conditions, key=lambda one: one.foreign_cores).crowd if conditions else ():
        names["crowd"] = crowd
    return Fact(code=code, numbers=numbers, names=names)


def _note_trials(trials: Sequence[Trial], code: Code, cores: int) -> tuple[Fact, ...]:
    disturbed = [trial.conditions for trial in trials if is_disturbed(trial)]
    by = sum_up_disturbances(code, disturbed, cores)
    return tuple(
        replace(by, numbers={**fact.numbers, **by.numbers})
        for fact in note_count(code, len(disturbed), len(trials))
    )


def list_screened(run: Run) -> list[Trial]:
    """The trials of head that ran alone."""
    return [trial for trial in run.trials if _is_screened(trial)]


def _list_paired(run: Run) -> list[Trial]:
    return [pair.head for pairs in list_pairs(run).values() for pair in pairs]


def _list_disturbances(run: Run) -> Mapping[str, Fact]:
    return {
        case_id: sum_up_disturbances(
            Code.DISTURBED_BY, [one.conditions for one in trials], run.environment.cores
        )
        for case_id, trials in group_cases(list_screened(run)).items()
        if all(map(is_disturbed, trials))
    }


def _find_other_card(comparison: Comparison, one: Evidence) -> Fact | None:
    baseline = one.find_baseline(comparison.metric)
    recorded = baseline.environment.device_uuid if baseline else ""
    is_other = recorded and one.card and recorded != one.card
    return Fact(code=Code.OTHER_CARD) if is_other and comparison.reason is not Reason.LIMIT_EXCEEDED else None


def _count_calm(run: Run) -> Counter[str]:
    return Counter(trial.case_id for trial in list_screened(run) if not is_disturbed(trial))


def _is_screened(trial: Trial) -> bool:
    return trial.arm == CANDIDATE_ARM and trial.pairing is Pairing.ALONE


def is_disturbed(trial: Trial) -> bool:
    """Whether the host was not fit meanwhile."""
    return bool(trial.conditions.disturbances)


def _keep_stack_metrics(trial: Trial) -> Trial:
    kept = {
        metric: values for metric, values in trial.samples.items() if SPECS[metric].scope is not Scope.HOST
    }
    # What a disturbed moment says of the machine says nothing of the calm ones. CPU time stays.
    return replace(trial, samples=kept, conditions=Conditions())
