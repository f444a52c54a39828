"""What the hypervisor takes of most trials is the machine's own noise, not a disturbance."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from statistics import median

from gate.decide.constants import OWN_STEAL, STEAL_STANDS_OUT
from gate.records.facts import Disturbance
from gate.records.run import Run, Trial


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


def excuse_run(run: Run) -> Run:
    share = compute_own_steal(run.trials)
    return replace(run, trials=excuse_steal(run.trials, share)) if share else run


def _excuse(trial: Trial) -> Trial:
    conditions = trial.conditions
    if Disturbance.STOLEN not in conditions.disturbances:
        return trial
    others = tuple(
        disturbance for disturbance in conditions.disturbances if disturbance is not Disturbance.STOLEN
    )
    return replace(trial, conditions=replace(conditions, disturbances=others))
