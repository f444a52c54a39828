"""Disturbed trials: of an unfit host, they are set aside or believed less.

Pairs of an unfit host stay, with a note: both sides are disturbed alike. What the hypervisor takes of most
trials is the machine's own noise, not a disturbance.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gate.decide.constants import OWN_STEAL, STEAL_STANDS_OUT
from gate.decide.evidence.definitions import compare_items
from gate.decide.evidence.gather import Evidence
from gate.decide.evidence.pairs import Pair, list_pairs
from gate.fingerprint import PACKAGE
from gate.metrics import SPECS, Scope
from gate.records.cases import Metric, group_cases
from gate.records.codes import Code
from gate.records.facts import CORES, Disturbance, Fact
from gate.records.run import CANDIDATE_ARM, EXPECTED_THROTTLING, Baseline, Conditions, Pairing, Run, Trial
from gate.records.verdict import Comparison, Reason, Status

# How much of each there was in a trial, and how the worst of several trials is found.
_MEASURES: Mapping[Disturbance, tuple[Callable[[Conditions], float], Callable[[Iterable[float]], float]]] = {
    Disturbance.CROWDED: (lambda conditions: conditions.foreign_cores, max),
    Disturbance.STOLEN: (lambda conditions: conditions.stolen, max),
    Disturbance.HELD_BACK: (lambda conditions: conditions.held_back, max),
    Disturbance.HEATED: (lambda conditions: conditions.heat_events, max),
    Disturbance.SWAPPED: (lambda conditions: conditions.swapped_bytes, max),
    Disturbance.SHORT_OF_MEMORY: (lambda conditions: conditions.free_bytes, min),
    Disturbance.THROTTLED: (lambda conditions: len(conditions.throttled), max),
    Disturbance.SHARED: (lambda conditions: conditions.foreign_processes, max),
    Disturbance.HELD_MEMORY: (lambda conditions: conditions.foreign_memory, max),
}


def compute_own_steal(trials: Collection[Trial]) -> float:
    """The share of time that the hypervisor takes of most trials; 0.0 where it disturbs fewer."""
    return compute_usual_steal([share for trial in trials if (share := get_steal(trial))], len(trials))


def get_steal(trial: Trial) -> float:
    """0.0 where it did not disturb the trial."""
    return trial.conditions.stolen if Disturbance.STOLEN in trial.conditions.disturbances else 0.0


def compute_usual_steal(shares: Collection[float], trials: int) -> float:
    """As :func:`compute_own_steal`, from the shares of the disturbed ones."""
    if trials == 1 or 2 * len(shares) <= trials:  # one trial has no neighbours
        return 0.0
    usual = median(shares)
    return usual if usual <= OWN_STEAL else 0.0


def excuse_steal(trials: Iterable[Trial], own_share: float) -> tuple[Trial, ...]:
    """Trials that lost about the machine's own share are not disturbed."""
    limit = STEAL_STANDS_OUT * own_share
    return tuple(_excuse(trial) if trial.conditions.stolen <= limit else trial for trial in trials)


def _excuse(trial: Trial) -> Trial:
    conditions = trial.conditions
    if Disturbance.STOLEN not in conditions.disturbances:
        return trial
    others = tuple(
        disturbance for disturbance in conditions.disturbances if disturbance is not Disturbance.STOLEN
    )
    return replace(trial, conditions=replace(conditions, disturbances=others))


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadTrials:
    """Of a run, without the machine's own noise, which nobody can quiet."""

    alone: tuple[Trial, ...]
    pairs: tuple[Pair, ...]
    own_steal: float  # a share of the time
    cores: int  # of the host


def collect_head(run: Run) -> HeadTrials:
    trials = excuse_run(run).trials
    return HeadTrials(
        alone=tuple(list_screened(trials)),
        pairs=tuple(pair for case_pairs in list_pairs(trials).values() for pair in case_pairs),
        own_steal=compute_own_steal(run.trials),
        cores=run.environment.cores,
    )


def excuse_run(run: Run) -> Run:
    share = compute_own_steal(run.trials)
    return replace(run, trials=excuse_steal(run.trials, share)) if share else run


def set_aside_disturbed(run: Run, fewest: int = 1) -> Run:
    """Drop what depends on the host from disturbed trials of cases with ``fewest`` others or more."""
    run = excuse_run(run)
    screened = list_screened(run.trials)
    calm = Counter(trial.case_id for trial in screened if not is_disturbed(trial))
    aside = {id(trial) for trial in screened if is_disturbed(trial) and calm[trial.case_id] >= fewest}
    trials = (_keep_stack_metrics(trial) if id(trial) in aside else trial for trial in run.trials)
    return replace(run, trials=tuple(trials)) if aside else run


def _keep_stack_metrics(trial: Trial) -> Trial:
    # A disturbed moment shows nothing about the calm ones. CPU time stays.
    return replace(trial, samples=drop_host_metrics(trial.samples), conditions=Conditions())


def drop_host_metrics(values: Mapping[Metric, tuple[float, ...]]) -> dict[Metric, tuple[float, ...]]:
    return {metric: samples for metric, samples in values.items() if SPECS[metric].scope is not Scope.HOST}


def list_hopeless(run: Run, fewest: int) -> tuple[str, ...]:
    """The cases with disturbed trials and fewer than ``fewest`` others."""
    trials = group_cases(list_screened(excuse_run(run).trials))
    disturbed = {case_id: sum(map(is_disturbed, case_trials)) for case_id, case_trials in trials.items()}
    return tuple(name for name, count in disturbed.items() if count and len(trials[name]) - count < fewest)


def note_kept_disturbed(run: Run, fewest: int) -> tuple[Fact, ...]:
    kept = list_hopeless(run, fewest)
    return (Fact(code=Code.DISTURBED_KEPT, numbers={"fewest": fewest}, cases=kept),) if kept else ()


def doubt_stored(
    comparisons: Iterable[Comparison], run: Run, evidence: Iterable[Evidence]
) -> tuple[Comparison, ...]:
    """Leave regressions from stored values open where something else may explain them.

    That is a disturbed host, another version of a package, or another card: cards of one model differ by 8 %
    on average and by 22 % at most (arXiv 2208.11035).
    """
    trials = group_cases(list_screened(run.trials))
    cases = {evidence_of.case.id: evidence_of for evidence_of in evidence}
    rows = []
    for row in comparisons:
        case_trials, why = trials.get(row.case_id, ()), None
        if row.status is Status.REGRESSED and not row.pairs:
            is_of_host, evidence_of = SPECS[row.metric].scope is Scope.HOST, cases[row.case_id]
            baseline = evidence_of.find_baseline(row.metric)
            if is_of_host and case_trials and all(map(is_disturbed, case_trials)):
                conditions = [trial.conditions for trial in case_trials]
                why = sum_up_disturbances(Code.DISTURBED_BY, conditions, run.environment.cores)
            elif baseline and row.reason is not Reason.LIMIT_EXCEEDED:
                cards = baseline.environment.device_uuid, evidence_of.card
                lines = describe_packages(baseline, evidence_of)
                if is_of_host and all(cards) and cards[0] != cards[1]:
                    why = Fact(code=Code.OTHER_CARD)
                elif lines:
                    why = Fact(code=Code.OTHER_PACKAGES, names={"differences": lines})
        if why:
            remarks = (*row.remarks, why)
            doubted = replace(row, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, remarks=remarks)
            rows.append(replace(doubted, found=row.reason))
        else:
            rows.append(row)
    return tuple(rows)


def describe_packages(baseline: Baseline, evidence: Evidence) -> tuple[str, ...]:
    changes = compare_items(baseline.packages, evidence.fullest.packages if evidence.fullest else {})
    return tuple(f"{PACKAGE} {name} {old} -> {new}" for name, (old, new) in changes.items())


def note_disturbed(head: HeadTrials) -> tuple[Fact, ...]:
    notes = [Fact(code=Code.OWN_STEAL, numbers={"share": head.own_steal})] if head.own_steal else []
    paired = [pair.head for pair in head.pairs]
    for code, trials in ((Code.TRIALS_DISTURBED, head.alone), (Code.PAIRS_DISTURBED, paired)):
        disturbed = [trial.conditions for trial in trials if is_disturbed(trial)]
        by = sum_up_disturbances(code, disturbed, head.cores)
        counted = note_count(code, len(disturbed), len(trials))
        notes += [replace(by, numbers={**fact.numbers, **by.numbers}) for fact in counted]
    return tuple(notes)


def blame_disturbance(head: HeadTrials, comparisons: Iterable[Comparison]) -> tuple[Fact, ...]:
    """To quiet the machine comes first where every trial was disturbed and nothing is red."""
    tried = [*head.alone, *(pair.head for pair in head.pairs)]
    statuses = {row.status for row in comparisons if row.decides}
    is_open = Status.INCONCLUSIVE in statuses and Status.REGRESSED not in statuses
    if not is_open or not tried or not all(map(is_disturbed, tried)):
        return ()
    conditions = [trial.conditions for trial in tried]
    return (sum_up_disturbances(Code.QUIET_FIRST, conditions, head.cores),)


def note_count(code: Code, disturbed: int, measured: int) -> tuple[Fact, ...]:
    numbers = {"disturbed": disturbed, "measured": measured}
    return (Fact(code=code, numbers=numbers),) if disturbed else ()


def sum_up_disturbances(code: Code, conditions: Sequence[Conditions], cores: int) -> Fact:
    """The worst that was seen of each."""
    numbers: dict[str, float] = {}
    for disturbance, (measure, worst) in _MEASURES.items():
        if seen := [measure(during) for during in conditions if disturbance in during.disturbances]:
            numbers[disturbance.value] = worst(seen)
    if Disturbance.CROWDED in numbers:
        numbers[CORES] = cores
    reasons = {reason for during in conditions for reason in during.throttled} - EXPECTED_THROTTLING
    names = {"reasons": tuple(sorted(reasons))} if Disturbance.THROTTLED in numbers else {}
    busiest = max(conditions, key=lambda during: during.foreign_cores, default=Conditions())
    if busiest.crowd:
        names["crowd"] = busiest.crowd
    return Fact(code=code, numbers=numbers, names=names)


def list_screened(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.arm == CANDIDATE_ARM and trial.pairing is Pairing.ALONE]


def is_disturbed(trial: Trial) -> bool:
    return bool(trial.conditions.disturbances)
