"""What is known of each case: one value per metric and trial, and the stored values to compare it with."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, median_high, median_low

from gate.decide.stats import LogArms
from gate.fingerprint import describe_upgrade, has_same_codegen, has_same_host, has_same_stack
from gate.metrics import LEADING, SPECS, Family, MetricSpec, Scope
from gate.records.cases import Case, Metric, Threshold, collect_columns, group_cases
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, UNFORKED_CODES, Fact, name_words
from gate.records.run import (
    CANDIDATE_ARM,
    GRADIENTS,
    PARTLY_FORKED,
    Baseline,
    CaseFailure,
    Environment,
    Extent,
    Pairing,
    Run,
    Trial,
)
from gate.records.verdict import Reason

# A super-block is ECCE or CEEC: two neighbouring pairs, over which a steady drift cancels.
PAIRS_IN_SUPER_BLOCK = 2


def compute_values(trial: Trial) -> Mapping[Metric, float]:
    """One value a metric, in the metric's unit.

    Latencies, times, memory and counters are the median of their samples, drift is the mean over seeds.
    ``warm_speedup`` and ``break_even_calls`` are derived where their parts are there.
    """
    values = {
        metric: fmean(samples) if SPECS[metric].family is Family.LOG2 else median(samples)
        for metric, samples in trial.samples.items()
        if samples
    }
    eager = trial.samples.get(Metric.EAGER_LATENCY, ())
    compiled = trial.samples.get(Metric.COMPILED_LATENCY, ())
    speedup = compute_speedup(eager, compiled)
    if speedup is not None:
        values[Metric.WARM_SPEEDUP] = speedup
    break_even = find_break_even(values)
    if break_even is not None:
        values[Metric.BREAK_EVEN_CALLS] = break_even
    return values


def collect_values(trials: Iterable[Trial]) -> Mapping[Metric, tuple[float, ...]]:
    return collect_columns(map(compute_values, trials))


def collect_medians(tables: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median of each name over the tables that have any; a name that a table lacks counts as 0."""
    filled = [table for table in tables if table]
    names = {name: None for table in filled for name in table}
    return {name: median([table.get(name, 0.0) for table in filled]) for name in names}


def compute_speedup(eager_s: Sequence[float], compiled_s: Sequence[float]) -> float | None:
    """Eager over compiled latency: exp(median over super-blocks of the mean log ratio of their pairs).

    Sample ``i`` of both is a pair. ``None`` where no pair has positive times.
    """
    ratios = [
        eager / compiled
        for eager, compiled in zip(eager_s, compiled_s, strict=False)
        if eager > 0 and compiled > 0
    ]
    # A mean of logarithms is a root of a product, which spares the logarithms.
    blocks = [math.sqrt(first * second) for first, second in zip(ratios[::2], ratios[1::2], strict=False)]
    if len(ratios) % PAIRS_IN_SUPER_BLOCK:
        blocks.append(ratios[-1])
    # Of the two in the middle the mean of the logarithms, likewise.
    return math.sqrt(median_low(blocks) * median_high(blocks)) if blocks else None


def find_break_even(values: Mapping[Metric, float]) -> float | None:
    """Calls after which the cold compile has paid; ``None`` where it never does, or is unknown."""
    parts = SPECS[Metric.BREAK_EVEN_CALLS].parts
    if any(part not in values for part in parts):
        return None
    return compute_break_even(*(values[part] for part in parts))


def compute_break_even(compile_s: float, before_s: float, after_s: float) -> float | None:
    """Calls after which ``compile_s`` seconds have paid; ``None`` where a call saves nothing."""
    calls = max(compile_s, 0.0) / (before_s - after_s) if before_s > after_s else math.inf
    return calls if math.isfinite(calls) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One metric of one case that both sides have: its values, one per trial, and its threshold."""

    case: Case
    metric: Metric
    before: Sequence[float]
    after: Sequence[float]
    threshold: Threshold
    logs: LogArms | None = None  # of noisy metrics, where every value is positive
    upgrade: tuple[str, ...] = ()  # what differs of the host of ``before`` besides its stack
    remarks: tuple[Fact, ...] = ()  # on both values

    @property
    def spec(self) -> MetricSpec:
        return SPECS[self.metric]


def find_worst(trials: Iterable[Trial], metric: Metric) -> Fact | None:
    """The output that drifted most, of the trials that measured it; ``None`` where unknown."""
    measured = (trial for trial in trials if trial.samples.get(metric))
    trial = max(measured, key=lambda trial: max(trial.samples[metric]))
    worst = trial.worst.get(metric)
    if worst is None or not worst.output:
        return None
    warnings = (fact for fact in trial.warnings if fact.code in MISMATCH_CODES)
    alone = Fact(code=Code.DRIFT_OF, numbers={"steps": worst.steps}, names=name_words(output=worst.output))
    return next((fact for fact in warnings if fact.name("output") == worst.output), alone)


# The keys of gate.yml that make a definition.
_PLAIN = ("factory", "node", "task", "dtype", "size", "mode", "dynamic", "fullgraph", "backend", "kind")
_NESTED = ("arguments", "options", "settings")


def index_base_cases(run: Run) -> Mapping[str, Case]:
    return {case.id: case for case in run.base.cases} if run.base else {}


def compare_definitions(before: Case, after: Case) -> dict[str, tuple[str, str]]:
    """What differs, by key, before and after; empty if only the source of a reference model does."""
    changes = compare_items(
        *({key: _write(getattr(case, key)) for key in _PLAIN} for case in (before, after))
    )
    for key in _NESTED:
        old, new = getattr(before, key), getattr(after, key)
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                changes[f"{key}.{name}"] = (_write(old.get(name)), _write(new.get(name)))
    return changes


def compare_items(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What both sides record, and record differently."""
    return {key: (old, after[key]) for key, old in before.items() if key in after and after[key] != old}


def compare_all(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What differs; what one side lacks is ``default`` there."""
    names = dict.fromkeys((*before, *after))
    sides = {name: (before.get(name, "default"), after.get(name, "default")) for name in names}
    return {name: values for name, values in sides.items() if values[0] != values[1]}


def _write(value: object) -> str:
    return "none" if value is None or value == "" else str(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A baseline of a case, and in which ways it is comparable with the run."""

    baseline: Baseline
    same_host: bool
    same_stack: bool
    same_codegen: bool
    same_definition: bool
    upgrade: tuple[str, ...] = ()  # what differs, where it is this hardware and stack, and another host
    same_drift: bool = True  # whether drift was measured as it is now

    def is_alike(self, metric: Metric) -> bool:
        """Whether the metric meant the same when these values were measured."""
        return self.same_definition and (self.same_drift or SPECS[metric].family is not Family.LOG2)

    def has_scope(self, metric: Metric) -> bool:
        """Whether values of a metric may be compared, given the same definition."""
        spec = SPECS[metric]
        if spec.scope is Scope.HOST:
            return self.same_host
        return self.same_stack and (self.same_codegen or not spec.same_codegen)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """All that is known of one planned case."""

    case: Case
    trials: tuple[Trial, ...]
    failures: tuple[CaseFailure, ...]
    values: Mapping[Metric, tuple[float, ...]]  # of the candidate, one per trial
    stored: tuple[Stored, ...]  # the most comparable first
    questions: Mapping[Metric, Question] = field(default_factory=dict)  # of the metrics that both sides have
    absence: Reason = Reason.NO_BASELINE  # why nothing is stored, where nothing is
    planned: int = 0  # trials at least, of those that run alone
    base_case: Case | None = None  # as the run's base defines it
    place: str = ""  # where all its trials ran, where that is known
    card: str = ""  # UUID of the card that it ran on, where that is known
    other_stack: bool = False  # than what is stored, which is the base's, in pairs: equal work proves nothing

    @property
    def fullest(self) -> Trial | None:
        """The last trial that records all of what was compiled: some measure only a part."""
        whole = [trial for trial in self.trials if trial.extent is Extent.WHOLE]
        compiled = [trial for trial in whole if trial.phases_s]
        return next((group[-1] for group in (compiled, whole, self.trials) if group), None)

    @property
    def host_baseline(self) -> Baseline | None:
        """The newest baseline of this host, whatever its definition: its canaries still count."""
        return next((stored.baseline for stored in self.stored if stored.same_host), None)

    @property
    def code_baseline(self) -> Baseline | None:
        """The best baseline whose generated code and workload can be compared with the candidate's."""
        return next(
            (stored.baseline for stored in self.stored if stored.same_definition and stored.same_codegen),
            None,
        )

    def find_baseline(self, metric: Metric) -> Baseline | None:
        """Of this host if there is one, else of this stack, the newest first."""
        fitting = (
            stored.baseline for stored in self.stored if stored.has_scope(metric) and stored.is_alike(metric)
        )
        return next((stored for stored in fitting if stored.trials.get(metric)), None)

    def find_upgraded(self, metric: Metric) -> Stored | None:
        """The newest of another host with the same hardware and stack, of a time that decides by itself."""
        fitting = (
            stored
            for stored in self.stored
            if stored.upgrade and stored.same_definition and metric in LEADING
        )
        return next((stored for stored in fitting if stored.baseline.trials.get(metric)), None)

    def explain_lack(self, metric: Metric) -> Reason:
        fitting = [stored for stored in self.stored if stored.has_scope(metric)]
        if not fitting:
            return Reason.OTHER_ENVIRONMENT if self.stored else self.absence
        if any(stored.is_alike(metric) for stored in fitting):
            return Reason.NOT_MEASURED
        is_current = any(stored.same_definition for stored in fitting)
        return Reason.MEASURED_OTHERWISE if is_current else Reason.STALE_DEFINITION

    def is_unknown_here(self, metric: Metric) -> bool:
        """Whether this host has baselines of the case, but none of the metric."""
        baselines = [stored.baseline for stored in self.stored if stored.same_host and stored.same_definition]
        return bool(baselines) and not any(baseline.trials.get(metric) for baseline in baselines)

    def list_metrics(self) -> tuple[Metric, ...]:
        """What the case or a baseline of it has, in the order of SPECS."""
        stored = {metric for match in self.stored for metric in match.baseline.trials}
        return tuple(metric for metric in SPECS if metric in self.values or metric in stored)


def gather_evidence(run: Run, baselines: Iterable[Baseline]) -> tuple[Evidence, ...]:
    """One piece of evidence per planned case, in the plan's order.

    Trials of pairs count only for cases that have none that ran alone, as baselines did.
    """
    heads = group_cases(trial for trial in run.trials if trial.arm == CANDIDATE_ARM)
    failures = group_cases(failure for failure in run.failures if failure.arm == CANDIDATE_ARM)
    stored, bases = group_cases(baselines), index_base_cases(run)
    gathered = []
    for case in run.cases:
        case_trials = heads.get(case.id, [])
        trials = [trial for trial in case_trials if trial.pairing is Pairing.ALONE] or case_trials
        place = find_place(trials)
        gathered.append(
            Evidence(
                case=case,
                place=place,
                card=find_card(run, place),
                trials=tuple(trials),
                failures=tuple(failures.get(case.id, ())),
                values=collect_values(trials),
                stored=_rank_stored(case, find_environment(run, trials), trials, stored.get(case.id, ())),
                planned=run.trials_planned,
                base_case=bases.get(case.id),
            )
        )
    return tuple(gathered)


def find_place(trials: Iterable[Trial]) -> str:
    """Where all these trials ran; "" where they ran at several places, or it is unknown."""
    places = {trial.place for trial in trials}
    return places.pop() if len(places) == 1 else ""


def find_card(run: Run, place: str) -> str:
    """The UUID of the card at a place of a run; where no place is known, that of the whole run."""
    return run.places[place].device if place in run.places else run.environment.device_uuid


def find_environment(run: Run, trials: Collection[Trial]) -> Environment:
    """Of all these trials of one case; where only some were forked, no other environment is the same."""
    fresh = sum(any(fact.code in UNFORKED_CODES for fact in trial.warnings) for trial in trials)
    workers = ("" if fresh == len(trials) else PARTLY_FORKED) if fresh else run.environment.workers
    return replace(run.environment, workers=workers, device_uuid=find_card(run, find_place(trials)))


def list_short(run: Run) -> tuple[Evidence, ...]:
    """The planned cases with fewer trials than planned, though none failed."""
    gathered = gather_evidence(run, ())
    return tuple(
        evidence for evidence in gathered if not evidence.failures and len(evidence.trials) < evidence.planned
    )


def _rank_stored(
    case: Case, environment: Environment, trials: Collection[Trial], baselines: Iterable[Baseline]
) -> tuple[Stored, ...]:
    stored = []
    drift = max((trial.drift_definition for trial in trials), default=1)
    gradients = {trial.workload.get(GRADIENTS, "") for trial in trials if trial.workload}
    for baseline in sorted(baselines, key=lambda match: match.provenance.created, reverse=True):
        same_host = has_same_host(baseline.environment, environment)
        same_stack = same_host or has_same_stack(baseline.environment, environment)
        match = Stored(
            baseline=baseline,
            same_host=same_host,
            same_stack=same_stack,
            same_codegen=same_host or (same_stack and has_same_codegen(baseline.environment, environment)),
            same_definition=baseline.definition == case.definition
            and gradients <= {baseline.workload.get(GRADIENTS, "")},
            upgrade=describe_upgrade(baseline.environment, environment),
            same_drift=baseline.drift_definition == drift,
        )
        stored.append(match)
    stored.sort(key=lambda match: (not match.same_host, not match.same_codegen, not match.same_stack))
    return tuple(stored)
