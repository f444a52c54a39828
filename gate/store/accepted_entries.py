"""The shapes of the files that accept a change: accepted.yml, and the approvals of single commits."""

from __future__ import annotations

from dataclasses import dataclass

from gate.files.entry import Entry
from gate.files.key_types import (
    Allowance,
    CaseId,
    Date,
    EnvironmentId,
    EnvironmentIds,
    Line,
    Login,
    Sha,
    Text,
    Version,
)
from gate.project.contradictions import check_acceptance
from gate.records import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceEntry(Entry):
    """A known change that somebody took responsibility for, until a date."""

    case: Text
    """The cases whose change is accepted: a case id, or a pattern with `*`.

    Example: "bert/*"
    """
    metric: Metric
    """The one metric that may be worse. All others of these cases are judged as ever.

    Example: cold_compile_time
    """
    allowance: Allowance
    """How much worse than the baseline the metric may be, in all; a larger change fails as before. Percent
    for times, memory and ratios; a plain number, in the metric's unit, for counters and drift.

    Example: 8%
    """
    reason: Text
    """Why this is right: reports show it beside the change, for whoever wonders later.

    Example: "the new fusion pass compiles longer and runs faster, see #12"
    """
    author: str = ""
    """Who takes responsibility. `compile-gate baseline accept` writes git's user name.

    Example: Ada
    """
    expires: Date
    """The last day on which this counts. Record new baselines before, or decide again then.

    Example: 2027-03-31
    """
    environment: EnvironmentIds = "*"
    """The environments it is for, by the name of their directory of baselines or a pattern with `*`: what one
    kind of machine may is not what another may. Without it, all that this gate runs on.

    Example: "cuda-h100-*"
    """

    find_contradictions = staticmethod(check_acceptance)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedFile(Entry):
    """``accepted.yml``, in the directory of baselines: changes that were accepted, until a date."""

    version: Version
    """The version of this file's format.

    Example: 1
    """
    accepted: tuple[AcceptanceEntry, ...] = ()
    """The accepted changes. `compile-gate baseline accept` adds to them.

    Example: [{case: "bert/*", metric: cold_compile_time, allowance: 8%, reason: "#12", expires: 2027-03-31}]
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnEntry:
    """Somebody accepts something of one commit, of what one gate measured in one environment."""

    reason: Line
    author: Login
    expires: Date
    gate: Line
    environment: EnvironmentId


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverEntry(OwnEntry):
    """These cases had no baseline to compare with, and somebody takes that."""

    cases: tuple[CaseId, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovedEntry(OwnEntry):
    """A regression of one case that is accepted for one commit."""

    case: CaseId
    metric: Metric
    allowance: Allowance


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalFile:
    """``approvals/<commit>.yml`` on the branch of approvals."""

    version: Version
    commit: Sha
    accepted: tuple[ApprovedEntry, ...] = ()
    first_baselines: tuple[WaiverEntry, ...] = ()
