"""What is known of each planned case: its trials, their values, and what is stored to compare them with."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.evidence.values import collect_values
from gate.decide.stats import LogArms
from gate.fingerprint import describe_upgrade, has_same_codegen, has_same_host, has_same_stack
from gate.metrics import LEADING, SPECS, Family, MetricSpec, Scope
from gate.records.cases import Case, Metric, Threshold, group_cases
from gate.records.facts import UNFORKED_CODES, Fact
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    baseline: Baseline
    same_host: bool
    same_stack: bool
    same_codegen: bool
    same_definition: bool
    upgrade: tuple[str, ...] = ()  # what differs, where it is this hardware and stack, and another host
    same_drift: bool = True  # whether drift was measured as it is now

    def is_alike(self, metric: Metric) -> bool:
        return self.same_definition and (self.same_drift or SPECS[metric].family is not Family.LOG2)

    def has_scope(self, metric: Metric) -> bool:
        """Of the same definition."""
        spec = SPECS[metric]
        if spec.scope is Scope.HOST:
            return self.same_host
        return self.same_stack and (self.same_codegen or not spec.same_codegen)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
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
        """The last that records all of what was compiled."""
        whole = [trial for trial in self.trials if trial.extent is Extent.WHOLE]
        compiled = [trial for trial in whole if trial.phases_s]
        return next((group[-1] for group in (compiled, whole, self.trials) if group), None)

    @property
    def host_baseline(self) -> Baseline | None:
        """The newest of this host, whatever its definition: its canaries still count."""
        return next((stored.baseline for stored in self.stored if stored.same_host), None)

    @property
    def code_baseline(self) -> Baseline | None:
        """The best whose generated code and workload can be compared."""
        return next(
            (stored.baseline for stored in self.stored if stored.same_definition and stored.same_codegen),
            None,
        )

    def find_baseline(self, metric: Metric) -> Baseline | None:
        """Of this host if there is one, else of this stack, the newest first."""
        for stored in self.stored:
            if stored.baseline.trials.get(metric) and stored.has_scope(metric) and stored.is_alike(metric):
                return stored.baseline
        return None

    def find_upgraded(self, metric: Metric) -> Stored | None:
        """The newest of another host with the same hardware and stack, for what decides by itself."""
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
        """This host has baselines of the case, but none of the metric."""
        baselines = [stored.baseline for stored in self.stored if stored.same_host and stored.same_definition]
        return bool(baselines) and not any(baseline.trials.get(metric) for baseline in baselines)

    def list_metrics(self) -> tuple[Metric, ...]:
        stored = {metric for match in self.stored for metric in match.baseline.trials}
        return tuple(metric for metric in SPECS if metric in self.values or metric in stored)


def gather_evidence(run: Run, baselines: Iterable[Baseline]) -> tuple[Evidence, ...]:
    """In the plan's order. Trials of pairs count only for cases without trials that ran alone."""
    heads = group_cases(trial for trial in run.trials if trial.arm == CANDIDATE_ARM)
    failures = group_cases(failure for failure in run.failures if failure.arm == CANDIDATE_ARM)
    stored, bases = group_cases(baselines), run.base_cases
    gathered = []
    for case in run.cases:
        case_trials = heads.get(case.id, [])
        trials = [trial for trial in case_trials if trial.pairing is Pairing.ALONE] or case_trials
        place = _name_common_place(trials)
        environment = make_case_environment(run, trials)
        gathered.append(
            Evidence(
                case=case,
                place=place,
                card=_get_card(run, place),
                trials=tuple(trials),
                failures=tuple(failures.get(case.id, ())),
                stored=_rank_stored(case, environment, trials, stored.get(case.id, ())),
                values=collect_values(trials),
                planned=run.trials_planned,
                base_case=bases.get(case.id),
            )
        )
    return tuple(gathered)


def _name_common_place(trials: Iterable[Trial]) -> str:
    """Empty where they ran at several places, or it is unknown."""
    places = {trial.place for trial in trials}
    return places.pop() if len(places) == 1 else ""


def _get_card(run: Run, place: str) -> str:
    return run.places[place].device if place in run.places else run.environment.device_uuid


def make_case_environment(run: Run, trials: Collection[Trial]) -> Environment:
    """Where only some trials were forked, no other environment is the same."""
    fresh = sum(any(fact.code in UNFORKED_CODES for fact in trial.warnings) for trial in trials)
    workers = ("" if fresh == len(trials) else PARTLY_FORKED) if fresh else run.environment.workers
    return replace(run.environment, workers=workers, device_uuid=_get_card(run, _name_common_place(trials)))


def list_short(run: Run) -> tuple[Evidence, ...]:
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
        match = Stored(
            baseline=baseline,
            same_host=has_same_host(baseline.environment, environment),
            same_stack=has_same_stack(baseline.environment, environment),
            same_codegen=has_same_codegen(baseline.environment, environment),
            same_definition=baseline.definition == case.definition
            and gradients <= {baseline.workload.get(GRADIENTS, "")},
            upgrade=describe_upgrade(baseline.environment, environment),
            same_drift=baseline.drift_definition == drift,
        )
        stored.append(match)
    stored.sort(key=lambda match: (not match.same_host, not match.same_codegen, not match.same_stack))
    return tuple(stored)
