"""The one place where trials become a baseline: a stored one, a replayed one, and the base's of pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.disturbed import set_aside_disturbed
from gate.decide.evidence.values import collect_medians, collect_values, find_card, find_place
from gate.metrics import SPECS
from gate.records import Baseline, Case, CodeIdentity, Environment, Extent, Pairing, Provenance, Run, Trial
from gate.records.cases import collect_columns, group_cases

_DIGITS = 6  # a rounding of 5e-7: three orders below the smallest threshold


def make_baselines(run: Run, provenance: Provenance) -> tuple[Baseline, ...]:
    """Make a baseline of every case of a run that has trials of its own, however few, and no failure.

    Those of pairs do not count: half are of the other arm, all were measured beside one. Nor do those
    that measured a part of their case: the values of a baseline would be of different trials.

    A refresh asks for more: see :func:`gate.store.baselines.check_refresh`. Disturbed trials leave out what
    depends on the host, as where they are judged, unless fewer than MIN_BASELINE_TRIALS others are left. What
    can repeat exactly is kept as it is, all else rounded to 6 significant digits.
    """
    whole = replace(run, trials=tuple(one for one in run.trials if one.extent is Extent.WHOLE))
    run = set_aside_disturbed(whole, MIN_BASELINE_TRIALS)
    failed = {failure.case_id for failure in run.failures}
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    return tuple(
        _round_baseline(
            make_baseline(
                case,
                trials[case.id],
                environment=replace(run.environment, device_uuid=find_card(run, find_place(trials[case.id]))),
                provenance=provenance,
            )
        )
        for case in run.cases
        if case.id in trials and case.id not in failed
    )


def make_baseline(
    case: Case, trials: Sequence[Trial], *, environment: Environment, provenance: Provenance
) -> Baseline:
    """Make a baseline of at least one trial of a case as it is defined where they come from, exact.

    What was compiled comes from the trials that compiled; where they disagree it is unknown.
    """
    compiled = [trial for trial in trials if trial.phases_s] or trials
    fullest = max(compiled, key=lambda trial: len(trial.samples))
    kernels_s = collect_medians(trial.kernels_s for trial in trials)
    workloads = [trial.workload for trial in compiled if trial.workload]
    return Baseline(
        case_id=case.id,
        definition=case.definition,
        environment=environment,
        provenance=provenance,
        trials=collect_values(trials),
        disturbed=sum(bool(trial.conditions.disturbances) for trial in trials),
        identity=_find_common_identity(compiled),
        workload={
            key: value
            for key, value in sorted(workloads[0].items() if workloads else ())
            if all(one.get(key) == value for one in workloads)
        },
        graph_breaks=tuple(replace(one, stack=()) for one in fullest.graph_breaks),
        recompile_reasons=fullest.recompile_reasons,
        caches=fullest.caches,
        canaries_s=dict(sorted(collect_columns(trial.conditions.canaries_s for trial in trials).items())),
        phases_s=collect_medians(trial.phases_s for trial in trials),
        kernels_s=dict(sorted(kernels_s.items(), key=lambda item: -item[1])),
        parts_s=collect_medians(trial.parts_s for trial in trials),
    )


def _find_common_identity(trials: Iterable[Trial]) -> CodeIdentity:
    """Find the identity that all trials which know theirs share; what differs between them has none.

    Tuning is drawn anew in each trial: it may differ where the code is the same.
    """
    known = [trial.identity for trial in trials if trial.identity.digest]
    codes = [replace(identity, tuned="") for identity in known]
    if not codes or codes.count(codes[0]) < len(codes):
        return CodeIdentity(digest="")
    return known[0] if known.count(known[0]) == len(known) else codes[0]


def _round_baseline(exact: Baseline) -> Baseline:
    return replace(
        exact,
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
