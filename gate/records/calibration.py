"""What calibrating a machine found: how its metrics vary there, and how often the gate would err.

Records of ``out/calibration.json``, like those of :mod:`gate.records`: frozen, torch-free, fractions
everywhere. *Noise* is a standard deviation of natural logarithms where a metric is a ratio scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records import CaseFailure, Environment, Fact, Metric, Provenance, Threshold


class Flaw(StrEnum):
    """Why a case is called unstable."""

    FAILED = "failed"  # a trial of it did not come back
    UNREPEATABLE = "unrepeatable"  # a metric without noise differs between trials of one program
    TOO_NOISY = "too_noisy"  # even a change far beyond the threshold could go unseen
    TWO_MODES = "two_modes"  # its trials fall into two groups that are a relevant change apart
    BIASED_PAIRS = "biased_pairs"  # side by side with itself it is not the same


@dataclass(frozen=True, kw_only=True, slots=True)
class Modes:
    """How well two groups explain some values; see :mod:`gate.calibrate.noise`."""

    share: float  # of the variance, explained by the best division into two groups
    apart: float  # how much larger the upper group's centre is, as a fraction of the lower's
    are_two: bool  # more than one group, by more than chance explains


@dataclass(frozen=True, kw_only=True, slots=True)
class PairNoise:
    """How pairs of one program with itself vary."""

    pairs: int
    noise: float  # standard deviation of a pair's log ratio
    bias: float  # mean log ratio, + is head worse; 0 but for chance
    detectable: float  # smallest change that the pairs of the budget would settle, a fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricNoise:
    """How one metric of one case varies on this machine."""

    case_id: str
    metric: Metric
    trials: int
    centre: float  # in the metric's unit
    within: float  # noise of one block within a trial; 0 where a trial has one sample
    between: float  # noise between trials; 0 where there is one trial only
    # Smallest change that the screen notices, were the threshold nothing at all; None: too few trials.
    floor: float | None
    detectable: float | None  # the same with the threshold in force
    threshold: Threshold
    modes: Modes | None = None  # of the trials' values; None with too few of them
    split_trials: int = 0  # trials whose own blocks fall into two groups
    side_by_side: PairNoise | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Instability:
    """A case, a metric of it, and why its verdicts are not to be trusted here."""

    case_id: str
    metric: Metric
    flaw: Flaw
    fact: Fact


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdCost:
    """What another relative threshold of a metric would cost, averaged over the cases."""

    metric: Metric
    relative: float
    suspected: float  # probability that the screen suspects an unchanged case
    unjudged: float  # share of the cases too noisy to be judged at all
    below_floor: int  # cases in which a change of this size would go unnoticed
    in_force: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How often something happened, with its exact 95 % interval (Clopper and Pearson)."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The hits among all."""
        return self.hits / self.of


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """Simulated pull requests, drawn from the recorded trials and judged by the real decision.

    Without a planted slowdown, ``regressed`` and ``inconclusive`` are verdicts with that outcome: the
    first are false alarms. With one, they are what the slowed case's compiled latency was found to be.
    """

    planted: float  # slowdown of one case's compiled latency, a fraction; 0: none
    regressed: Rate
    inconclusive: Rate
    trials: float  # mean trials of a pull request
    pairs: float = 0.0  # mean pairs of a pull request


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How much a check spends, as the configuration says, and how much is simulated."""

    baseline_trials: int
    trials: int
    max_trials: int
    requests: int  # simulated pull requests of each kind
    seed: int = 0
    budget_s: float | None = None  # of trials, in seconds of a run; None: without a limit
    pair_budget_s: float | None = None  # of pairs, beyond what the trials take


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """What a machine's trials of one unchanged program say about the gate."""

    environment: Environment
    provenance: Provenance
    case_ids: tuple[str, ...]
    trials: int  # of all cases
    pairs: int
    effort: Effort
    noise: tuple[MetricNoise, ...]
    unstable: tuple[Instability, ...]
    costs: tuple[ThresholdCost, ...]
    replays: tuple[Replay, ...]  # empty with too few trials
    notes: tuple[Fact, ...] = ()  # what a reader must know
    disturbed: tuple[str, ...] = ()  # cases whose noise is the machine's: nothing is said of it
    failures: tuple[CaseFailure, ...] = ()
    wall_s: float = 0.0
