"""What the lab reports while it runs, and what the doctor finds; a display renders these."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gate.records.facts import Fact
from gate.records.run import CaseFailure, Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """In trials or pairs, with an estimate of the time left.

    Of pairs also: how many of the ``cases`` that need some are done, settled or out of time.
    """

    done: int
    total: int
    left_s: float
    cases: int = 0
    cases_done: int = 0
    is_limited: bool = False  # the time limit leaves less than it would take: ``left_s`` is up to that


@dataclass(frozen=True, kw_only=True, slots=True)
class LockAwaited:
    """``holder`` describes the other run in words."""

    device: str
    holder: str
    limit_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PrimeStarted:
    """Takes up to a minute."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrimeFinished:
    toolchain_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerPlanned:
    """It will write there at which stage it is."""

    result: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialStarted:
    """Also a pair of base and head; its index counts from 1."""

    case_id: str
    index: int
    progress: Progress
    paired: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialFinished:
    trial: Trial
    progress: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFailed:
    """No further trial of it is started. Before the first there is no progress."""

    failure: CaseFailure
    progress: Progress | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSkipped:
    """It would have ended after the budget."""

    case_id: str
    index: int
    expected_s: float
    paired: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFinished:
    base: Trial
    head: Trial
    progress: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Noted:
    """Something a reader of the run may wonder about."""

    fact: Fact


Event = (
    LockAwaited
    | PrimeStarted
    | PrimeFinished
    | WorkerPlanned
    | TrialStarted
    | TrialFinished
    | CaseFailed
    | TrialSkipped
    | PairFinished
    | Noted
)
Observer = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    del event


class CheckLevel(StrEnum):
    """One ``fail`` makes the machine unfit."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """No fix where all is well."""

    name: str
    level: CheckLevel
    finding: str
    fix: str
    numbers: Mapping[str, float] = field(default_factory=dict)  # of the finding, for programs
