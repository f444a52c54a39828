"""What ``calibrate`` finds of a machine and ``bisect`` of a metric, and the kinds of planted faults.

Records of JSON files. *Noise* is a standard deviation of natural logarithms where a metric is a ratio
scale; shares are fractions.
"""

from dataclasses import dataclass
from enum import StrEnum

from gate.records.bounds import Natural, NotNegative
from gate.records.cases import Metric, Threshold
from gate.records.facts import Fact
from gate.records.run import CaseFailure, Environment, Provenance


class Flaw(StrEnum):
    FAILED = "failed"  # a trial of it did not come back
    UNREPEATABLE = "unrepeatable"  # a metric without noise differs between trials of one program
    TOO_NOISY = "too_noisy"  # even a change far beyond the threshold could go unseen
    BIASED_PAIRS = "biased_pairs"  # side by side with itself it is not the same


@dataclass(frozen=True, kw_only=True, slots=True)
class PairNoise:
    """How pairs of one program with itself vary."""

    pairs: int
    noise: float  # standard deviation of a pair's log ratio
    bias: float  # mean log ratio, + is head worse; 0 but for chance


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricNoise:
    """How one metric of one case varies on this machine."""

    case_id: str
    metric: Metric
    trials: int
    centre: float  # in the metric's unit
    within: float  # noise of one block within a trial; 0 where a trial has one sample
    between: float  # noise between trials; 0 where there is one trial only
    detectable: float | None  # smallest change that the screen notices; None: too few trials
    threshold: Threshold
    side_by_side: PairNoise | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Instability:
    """A case, a metric of it, and why its verdicts are not to be trusted here."""

    case_id: str
    metric: Metric
    flaw: Flaw
    fact: Fact


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How often something happened, with its exact 95 % interval (Clopper and Pearson)."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
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
    replays: tuple[Replay, ...]  # empty with too few trials
    notes: tuple[Fact, ...] = ()  # what a reader must know
    disturbed: tuple[str, ...] = ()  # cases whose noise is the machine's: it is not reported
    failures: tuple[CaseFailure, ...] = ()
    wall_s: float = 0.0


class FaultKind(StrEnum):
    """Planted into the head, and into compiled code alone, except the last three or where noted."""

    NOTHING = "nothing"  # the same program behind the same wrapping
    SLOWDOWN = "slowdown"  # every compiled call takes longer
    EAGER_FASTER = "eager_faster"  # every eager call of the base takes longer than the head's
    COLD_COMPILE = "cold_compile"  # more work while tracing
    MEMORY = "memory"  # a buffer that lives as long as the forward
    GRAPH_BREAK = "graph_break"
    RECOMPILE = "recompile"  # a guard that fails at every call
    LOW_PRECISION = "low_precision"  # outputs rounded to the next coarser type
    WRONG_EPS = "wrong_eps"  # outputs normalized with another epsilon
    LOST_CACHE = "lost_cache"  # a constant in the graph that is another in every process
    NOT_A_NUMBER = "not_a_number"
    CRASH = "crash"  # os.abort() in the first call
    HANG = "hang"  # the first call never returns
    VANISHED = "vanished"  # the head has no such factory any more


class Mark(StrEnum):
    """As ``git bisect`` names it."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"  # could not be judged, or not be measured


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectionStep:
    """One commit or interpreter that was compared with the good one."""

    point: str  # a whole commit id, or an interpreter's path
    mark: Mark
    pairs: Natural
    wall_s: NotNegative
    change: float | None = None  # of the metric as judged, + is worse; None where there is none


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """A search between two ends for the first point at which one metric of one case is worse, or it fails.

    ``change`` is that of the bad end: each step is judged to be at its level, or at the good end's. Where the
    case fails there, there is no ``metric``.
    """

    case_id: str
    metric: Metric | None = None
    good: str
    bad: str
    change: float = 0.0
    steps: tuple[BisectionStep, ...] = ()
