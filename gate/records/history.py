"""One run in a few numbers, as a history keeps it: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.records.bounds import Time
from gate.records.metric import Metric

# Centre alone, or centre, low and high: in the metric's unit, for an anchor's run changes (+ is worse).
Figures = tuple[float, ...]


class HistoryKind(StrEnum):
    """What kind of run a line is of."""

    CHECK = "check"
    BASELINE = "baseline"
    ANCHOR = "anchor"  # side by side with the release anchor: its figures are changes, not values


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryHead:
    """What a line says of its run."""

    id: str  # of the content: the same line twice is one run
    kind: HistoryKind
    created: Time
    machine: str  # what times are comparable on: the kind and model of the device, the threads
    host: str = ""  # of the hardware: differs between machines of one name
    commit: str = ""
    run_url: str = ""
    torch: str = ""
    driver: str = ""
    anchor: str = ""  # the commit that an anchor's run was compared with


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryLine:
    """A line: the run, and the figures of each case and metric."""

    head: HistoryHead
    cases: Mapping[str, Mapping[Metric, Figures]] = field(default_factory=dict)
