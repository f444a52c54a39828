"""What trials are worth: those of an unfit host are set aside or believed less, the others make a baseline.

Pairs of an unfit host stay, with a note: both sides are disturbed alike. Every baseline is made here: stored,
replayed, and the base's of pairs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.definitions import compare_items
from gate.decide.evidence.gather import Evidence, make_case_environment
from gate.decide.evidence.pairs import list_pairs
from gate.decide.evidence.steal import compute_own_steal, excuse_run
from gate.decide.evidence.values import collect_medians, collect_values
from gate.fingerprint import PACKAGE
from gate.metrics import SPECS, Scope
from gate.records.cases import Case, Metric, collect_columns, group_cases
from gate.records.codes import Code
from gate.records.facts import CORES, Disturbance, Fact
from gate.records.run import (
    CANDIDATE_ARM,
    EXPECTED_THROTTLING,
    Baseline,
    CodeIdentity,
    Conditions,
    Environment,
    Extent,
    Pairing,
    Provenance,
    Run,
    Trial,
)
from gate.records.verdict import Comparison, Reason, Status

Values = tuple[float, ...]

_DIGITS = 6  # a rounding of 5e-7: three orders below the smallest threshold
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


def set_aside_disturbed(run: Run, fewest: int = 1) -> Run:
    """Drop what depends on the host from disturbed trials of cases with ``fewest`` others or more."""
    run = excuse_run(run)
    screened = list_screened(run)
    calm = Counter(trial.case_id for trial in screened if not is_disturbed(trial))
    aside = {id(trial) for trial in screened if is_disturbed(trial) and calm[trial.case_id] >= fewest}
    trials = (_keep_stack_metrics(trial) if id(trial) in aside else trial for trial in run.trials)
    return replace(run, trials=tuple(trials)) if aside else run


def list_hopeless(run: Run, fewest: int) -> tuple[str, ...]:
    """The cases with disturbed trials and fewer than ``fewest`` others."""
    trials = group_cases(list_screened(excuse_run(run)))
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
    trials = group_cases(list_screened(run))
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


def note_disturbed(run: Run) -> tuple[Fact, ...]:
    excused, own_share = excuse_run(run), compute_own_steal(run.trials)
    notes = [Fact(code=Code.OWN_STEAL, numbers={"share": own_share})] if excused != run else []
    run = excused
    tried = ((Code.TRIALS_DISTURBED, list_screened(run)), (Code.PAIRS_DISTURBED, _list_paired(run)))
    for code, trials in tried:
        disturbed = [trial.conditions for trial in trials if is_disturbed(trial)]
        by = sum_up_disturbances(code, disturbed, run.environment.cores)
        counted = note_count(code, len(disturbed), len(trials))
        notes += [replace(by, numbers={**fact.numbers, **by.numbers}) for fact in counted]
    return tuple(notes)


def blame_disturbance(run: Run, comparisons: Iterable[Comparison]) -> tuple[Fact, ...]:
    """To quiet the machine comes first where every trial was disturbed and nothing is red."""
    run = excuse_run(run)  # nobody can quiet the machine's own noise
    tried = [*list_screened(run), *_list_paired(run)]
    statuses = {row.status for row in comparisons if row.decides}
    is_open = Status.INCONCLUSIVE in statuses and Status.REGRESSED not in statuses
    if not is_open or not tried or not all(map(is_disturbed, tried)):
        return ()
    conditions = [trial.conditions for trial in tried]
    return (sum_up_disturbances(Code.QUIET_FIRST, conditions, run.environment.cores),)


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


def list_screened(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial.arm == CANDIDATE_ARM and trial.pairing is Pairing.ALONE]


def _list_paired(run: Run) -> list[Trial]:
    return [pair.head for pairs in list_pairs(run).values() for pair in pairs]


def is_disturbed(trial: Trial) -> bool:
    return bool(trial.conditions.disturbances)


def drop_host_metrics(values: Mapping[Metric, Values]) -> dict[Metric, Values]:
    return {metric: samples for metric, samples in values.items() if SPECS[metric].scope is not Scope.HOST}


def _keep_stack_metrics(trial: Trial) -> Trial:
    # A disturbed moment shows nothing about the calm ones. CPU time stays.
    return replace(trial, samples=drop_host_metrics(trial.samples), conditions=Conditions())


def make_baselines(run: Run, provenance: Provenance) -> tuple[Baseline, ...]:
    """Of every case with whole trials that ran alone, and no failure.

    A refresh asks for more: see :func:`gate.store.baselines.check_refresh`. Disturbed trials leave out what
    depends on the host, unless fewer than MIN_BASELINE_TRIALS others are left. What can repeat exactly is
    kept as it is, all else rounded to 6 significant digits.
    """
    whole = replace(run, trials=tuple(trial for trial in run.trials if trial.extent is Extent.WHOLE))
    run = set_aside_disturbed(whole, MIN_BASELINE_TRIALS)
    failed = {failure.case_id for failure in run.failures}
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    return tuple(
        _round_baseline(
            make_baseline(
                case,
                trials[case.id],
                environment=replace(make_case_environment(run, trials[case.id]), packages={}),
                provenance=provenance,
            )
        )
        for case in run.cases
        if case.id in trials and case.id not in failed
    )


def make_baseline(
    case: Case, trials: Sequence[Trial], *, environment: Environment, provenance: Provenance
) -> Baseline:
    """Not rounded, of at least one trial. What was compiled is unknown where trials disagree."""
    compiled = [trial for trial in trials if trial.phases_s] or trials
    fullest = max(compiled, key=lambda trial: (len(trial.samples), len(trial.graph_breaks)))
    kernels_s = collect_medians(trial.kernels_s for trial in trials)
    return Baseline(
        case_id=case.id,
        definition=case.definition,
        environment=environment,
        provenance=provenance,
        trials=collect_values(trials),
        disturbed=sum(map(is_disturbed, trials)),
        identity=_choose_common_identity(compiled),
        workload=_keep_common([trial.workload for trial in compiled if trial.workload]),
        graph_breaks=fullest.graph_breaks,
        recompile_reasons=fullest.recompile_reasons,
        caches=fullest.caches,
        canaries_s=dict(sorted(collect_columns(trial.conditions.canaries_s for trial in trials).items())),
        phases_s=collect_medians(trial.phases_s for trial in trials),
        kernels_s=dict(sorted(kernels_s.items(), key=lambda item: -item[1])),
        parts_s=collect_medians(trial.parts_s for trial in trials),
        drift_definition=max(trial.drift_definition for trial in trials),
        packages=fullest.packages,
        functions=next((trial.functions for trial in reversed(trials) if trial.functions), {}),
        options=fullest.options,
    )


def _keep_common(workloads: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    pairs = sorted(workloads[0].items()) if workloads else ()
    return {key: value for key, value in pairs if all(workload.get(key) == value for workload in workloads)}


def _choose_common_identity(trials: Iterable[Trial]) -> CodeIdentity:
    """The identity that all trials which know theirs share; where they differ, none.

    Tuning is drawn anew in each trial.
    """
    identities = [trial.identity for trial in trials if trial.identity.digest]
    codes = [replace(identity, tuned="") for identity in identities]
    if not codes or codes.count(codes[0]) < len(codes):
        return CodeIdentity(digest="")
    return identities[0] if identities.count(identities[0]) == len(identities) else codes[0]


def _round_baseline(exact: Baseline) -> Baseline:
    return replace(
        exact,
        graph_breaks=tuple(replace(graph_break, stack=()) for graph_break in exact.graph_breaks),
        # Rounded, values of what repeats would differ though they are equal.
        trials={
            metric: tuple(values if SPECS[metric].repeats else map(_round_digits, values))
            for metric, values in sorted(exact.trials.items())
        },
        canaries_s={name: tuple(map(_round_digits, values)) for name, values in exact.canaries_s.items()},
        phases_s={name: _round_digits(seconds) for name, seconds in sorted(exact.phases_s.items())},
        kernels_s={name: _round_digits(seconds) for name, seconds in exact.kernels_s.items()},
        parts_s={name: _round_digits(seconds) for name, seconds in exact.parts_s.items()},
    )


def _round_digits(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
