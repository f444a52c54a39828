"""Every baseline is made here: stored, replayed, and the base's of pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.disturbed import is_disturbed, set_aside_disturbed
from gate.decide.evidence.gather import Stored, make_case_environment
from gate.decide.evidence.values import collect_medians, collect_values
from gate.metrics import SPECS
from gate.records.cases import Case, collect_columns, group_cases
from gate.records.run import (
    BaseArm,
    Baseline,
    CodeIdentity,
    Environment,
    Extent,
    Pairing,
    Provenance,
    Run,
    Trial,
)

_DIGITS = 6  # a rounding of 5e-7: three orders below the smallest threshold


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


def store_base(
    base: BaseArm | None, base_case: Case | None, trials: Sequence[Trial], definition: str
) -> tuple[Stored, ...]:
    if base is None or base_case is None or not trials:
        return ()
    stored = Stored(
        baseline=make_baseline(base_case, trials, environment=base.environment, provenance=base.provenance),
        same_host=True,
        same_stack=True,
        same_codegen=True,
        same_definition=base_case.definition == definition,
    )
    return (stored,)


def make_baseline(
    case: Case, trials: Sequence[Trial], *, environment: Environment, provenance: Provenance
) -> Baseline:
    """Not rounded, of at least one trial. What was compiled is unknown where trials disagree."""
    compiled = [trial for trial in trials if trial.phases_s] or trials
    fullest = max(compiled, key=lambda trial: len(trial.samples))
    # What flickers is in some trials only.
    broken = max(compiled, key=lambda trial: (len(trial.graph_breaks), len(trial.samples)))
    recompiled = max(compiled, key=lambda trial: (len(trial.recompile_reasons), len(trial.samples)))
    workload = _keep_common([trial.workload for trial in compiled if trial.workload])
    identity = _choose_common_identity(compiled)
    canaries_s = collect_columns(trial.conditions.canaries_s for trial in trials)
    kernels_s = collect_medians(trial.kernels_s for trial in trials)
    return Baseline(
        case_id=case.id,
        definition=case.definition,
        environment=environment,
        provenance=provenance,
        trials=collect_values(trials),
        phases_s=collect_medians(trial.phases_s for trial in trials),
        parts_s=collect_medians(trial.parts_s for trial in trials),
        disturbed=sum(map(is_disturbed, trials)),
        identity=identity,
        workload=workload,
        graph_breaks=broken.graph_breaks,
        recompile_reasons=recompiled.recompile_reasons,
        caches=fullest.caches,
        canaries_s=dict(sorted(canaries_s.items())),
        kernels_s=dict(sorted(kernels_s.items(), key=lambda item: -item[1])),
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
