"""The shape of gate.yml, whose keys ``gate/schemas/config.json`` describes and bounds."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gate.decide.conclude.exit_codes import FailOn
from gate.devices import DEFAULT_DEVICE
from gate.files.entry import Share
from gate.files.invalid import InvalidValue
from gate.metrics import SPECS, Family, Role
from gate.project.model_entries import RegistryFile
from gate.records.cases import Metric, Quarantine
from gate.records.protocol import Sampling

DEFAULT_TRIALS = 1  # a suspect gets more
DEFAULT_MAX_TRIALS = 3  # what settles most, in the default budget
_PARTS = ("relative", "absolute")
_BOUNDS = ("at_most", "at_least")  # by whether more is better


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdEntry:
    relative: Share | None = None
    absolute: float | None = None

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        del left_out
        if not _list_parts(self):
            yield _refuse_nothing()


@dataclass(frozen=True, kw_only=True, slots=True)
class OverrideEntry:
    """A part that is left out is as for other cases. Of several that fit, the last counts."""

    case: str
    metric: Metric
    reason: str
    relative: Share | None = None
    absolute: float | None = None

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        del left_out
        if not _list_parts(self):
            yield _refuse_nothing()
        yield from _check_parts(self.metric, _list_parts(self))


def _list_parts(entry: ThresholdEntry | OverrideEntry) -> dict[str, float]:
    return {part: value for part in _PARTS if (value := getattr(entry, part)) is not None}


def _refuse_nothing() -> InvalidValue:
    fix = "Write one part or both: `relative: 8%`, and `absolute` in the metric's unit."
    problem = "names neither `relative` nor `absolute`, and so changes nothing"
    return InvalidValue(key="", problem=problem, fix=fix)


def _check_parts(metric: Metric, parts: Mapping[str, float], key: str = "") -> Iterator[InvalidValue]:
    family = SPECS[metric].family
    if parts and family is Family.EXACT:
        yield _refuse_counter(metric, key)
    if parts.get("relative") and family is Family.LOG2:
        problem = f"{metric} has no relative part: its changes are differences of log2 units"
        fix = f"Write `absolute` alone; the default is {SPECS[metric].threshold.absolute:g}."
        yield InvalidValue(key=f"{key}.relative", problem=problem, fix=fix)


def _refuse_counter(metric: Metric, key: str) -> InvalidValue:
    if SPECS[metric].role is Role.EXPLAINS:
        problem = f"{metric} has no threshold: it only explains what other metrics show, and never decides"
        return InvalidValue(key=key, problem=problem, fix="Remove it.")
    problem = f"{metric} has no threshold: any change of this counter counts"
    fix = "Remove it; accept a known change with `compile-gate baseline accept`, or use `quarantine`."
    return InvalidValue(key=key, problem=problem, fix=fix)


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitEntry:
    """An absolute limit, whatever is stored. Of several that fit, the last counts."""

    metric: Metric
    case: str = "*"
    at_most: float | None = None
    at_least: float | None = None

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        del left_out
        given = [part for part in _BOUNDS if getattr(self, part) is not None]
        metric, right = self.metric, _BOUNDS[SPECS[self.metric].higher_is_better]
        fix = f"Write `{right}` alone, in the metric's unit ({SPECS[metric].unit})."
        if not given:
            problem = "names neither `at_most` nor `at_least`, and so limits nothing"
            yield InvalidValue(key="", problem=problem, fix=fix)
        for part in given:
            if part != right:
                direction = "more" if right == "at_least" else "less"
                problem = f"{metric} is better with {direction}: `{part}` would refuse what is good"
                yield InvalidValue(key=f".{part}", problem=problem, fix=fix)


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFile(RegistryFile):
    SCHEMA: ClassVar[str] = "config"

    device: str = DEFAULT_DEVICE
    threads: int = 2
    counts_only: bool = False
    select: str | None = None
    fail_on: FailOn | None = None
    status: str = "compile-gate/report"
    baselines: str = "baselines"
    out: str = "out"
    history: str | None = None
    reference_models: bool = True
    registry: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    trials: int = DEFAULT_TRIALS
    max_trials: int = DEFAULT_MAX_TRIALS
    refresh_trials: int = 5
    budget_s: float = 330.0
    pair_budget_s: float = 600.0
    trial_timeout_s: float = 300.0
    lock_timeout_s: float = 60.0
    error_budget: Share = 0.01
    thresholds: Mapping[Metric, ThresholdEntry] = field(default_factory=dict)
    overrides: tuple[OverrideEntry, ...] = ()
    limits: tuple[LimitEntry, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        limited = list(Metric) if "limits" in left_out else [entry.metric for entry in self.limits]
        for index, quarantine in enumerate(self.quarantine):
            # What never decides needs no quarantine; what has a limit decides.
            if quarantine.metric is not None and not can_decide(quarantine.metric, limited):
                key, problem = f".quarantine[{index}].metric", f"{quarantine.metric} never decides"
                fix = "There is nothing to keep from deciding: remove the entry."
                yield InvalidValue(key=key, problem=problem, fix=fix)
        for metric, entry in self.thresholds.items():
            yield from _check_parts(metric, _list_parts(entry), f".thresholds.{metric}")
        if self.trials > self.max_trials and "max_trials" not in left_out:
            problem = f"every case gets {self.trials} trials, and max_trials is only {self.max_trials}"
            fix = f"Write `max_trials: {self.trials}` or more, or fewer trials."
            is_default = self.max_trials == DEFAULT_MAX_TRIALS
            yield InvalidValue(key=".trials" if is_default else ".max_trials", problem=problem, fix=fix)


def can_decide(metric: Metric, limited: Collection[Metric]) -> bool:
    return SPECS[metric].role is Role.DECIDES or metric in limited
