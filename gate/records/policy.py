"""Everything that decides besides the data: thresholds, acceptances, quarantines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.records.metric import Metric, Threshold
from gate.records.pattern import fits_pattern


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """A known change that somebody took responsibility for, until a date."""

    case: str  # as in ``fits_pattern``
    metric: Metric
    allowance: float  # fraction (log2 units for drift, count for counters)
    reason: str
    author: str
    expires: str  # ISO date; the day itself still counts
    gate: str = ""  # of an approval: whose regression it is; a standing one is of whoever reads the file
    environment: str = "*"  # id or glob: where it counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """Somebody takes it that these cases had no baseline to compare with, until a date."""

    cases: tuple[str, ...]  # ids
    reason: str
    author: str
    expires: str  # ISO date; the day itself still counts
    gate: str = ""  # as of an acceptance
    environment: str = "*"


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """What somebody who may write took responsibility for, for one commit and no other."""

    commit: str
    accepted: tuple[Acceptance, ...] = ()
    first_baselines: tuple[Waiver, ...] = ()

    @property
    def entries(self) -> tuple[Acceptance | Waiver, ...]:
        """All that was accepted."""
        return (*self.accepted, *self.first_baselines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """A case, or one metric of it, that is measured and shown and does not decide, until a date."""

    case: str  # as in ``fits_pattern``
    metric: Metric | None  # None: the whole case, its failures included
    owner: str
    reason: str
    expires: str  # ISO date; the day itself still counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """Other parts of a threshold for some cases and one metric, with the reason they exist."""

    case: str  # as in ``fits_pattern``
    metric: Metric
    reason: str
    relative: float | None = None  # None: as for the other cases
    absolute: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """A value that a metric may not pass, whatever is stored. ``value`` is in the metric's unit."""

    case: str  # as in ``fits_pattern``
    metric: Metric
    value: float
    is_least: bool  # else it is the most


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Everything that decides besides the data."""

    thresholds: Mapping[Metric, Threshold]
    overrides: tuple[Override, ...] = ()
    limits: tuple[Limit, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()  # standing ones: worse than the baseline, whoever made it so
    approvals: tuple[Approval, ...] = ()  # one for each commit that is judged: a merge queue judges several
    gate: str = ""  # which judges, as approvals name it; empty where that is not known
    elsewhere: tuple[Acceptance | Waiver, ...] = ()  # of the approvals: for another gate or environment
    quarantine: tuple[Quarantine, ...] = ()
    today: str = ""  # ISO date: the decision has no clock of its own
    error_budget: float = 0.01  # false alarms a verdict, over all cases and metrics
    looks: int = 1  # how often this run's data were judged: the budget is divided by it
    has_anchor: bool = False  # whether there is a release anchor that head can be held against
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by case id, where a pattern names one

    def fits(self, pattern: str, case_id: str) -> bool:
        """Whether the pattern of an entry means this case."""
        return fits_pattern(pattern, case_id, self.tags.get(case_id, ()))

    @property
    def approved(self) -> tuple[Acceptance, ...]:
        """What was accepted of what is judged alone: worse than what it is compared with."""
        return tuple(entry for approval in self.approvals for entry in approval.accepted)

    @property
    def accepted(self) -> tuple[Acceptance, ...]:
        """All that somebody accepted, standing or for what is judged alone."""
        return (*self.acceptances, *self.approved)
