"""Breaks and recompiles of two sides, matched by kind: by where they are, never by the number of a line.

Dynamo records a break once, or once more for each caller whose frame it cuts, depending on its release and
settings. Where both sides record alike, numbers and reasons count.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from gate.decide.evidence.gather import Evidence
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import NESTED_BREAKS, Baseline, Compiled, GraphBreak, Recompile

Record = GraphBreak | Recompile

_READERS: Mapping[Metric, Callable[[Compiled], Sequence[Record]]] = {
    Metric.GRAPH_BREAKS: lambda side: side.graph_breaks,
    Metric.RECOMPILES: lambda side: side.recompile_reasons,
}
_GIVEN_UP = "step_unsupported"  # torch gives no reason: the function it gave up is all it names
_VARYING = re.compile(r"'[^']*'|\d+")  # the tensor and the sizes in a guard that no line made
_ELSEWHERE = re.compile(r"^/.*/")  # as Python's own library: another Python has it in another directory


class Site(NamedTuple):
    """Where something was recorded; one that leads to the ``end`` of another is of its kind."""

    record: Record
    reason: str
    function: tuple[str, str]  # with its file
    code: str  # of the line
    leads: Collection[Hashable]
    end: Hashable

    def meets(self, others: Sequence["Site"]) -> bool:
        return any(self.end in site.leads or site.end in self.leads for site in others)


Changes = tuple[Sequence[Site], Sequence[Site]]  # what is new, and what is gone


def _make_site(record: Record) -> Site:
    if isinstance(record, Recompile):
        words = () if record.code else (_VARYING.sub("", record.guard),)
        function = _split(record.location, record.function)
        return Site(record, record.guard, function, record.code, words, next(iter(words), None))
    last = record.innermost
    function = _split(last.location, last.function) if last else _split(record.location, "")
    leads = {function, *(_split(frame.location, frame.function) for frame in record.stack)}
    end = function if record.reason == _GIVEN_UP else None
    return Site(record, record.reason, function, last.code if last else "", leads, end)


def _split(location: str, function: str) -> tuple[str, str]:
    return _ELSEWHERE.sub("", location.rpartition(":")[0]), function


# What makes a kind, the strictest first; with None, not this.
_ALIKE: tuple[Callable[[Site], Hashable], ...] = (
    lambda site: (*site[1:4], site.record.location),
    lambda site: site[1:3] if site.function[1] else None,
    lambda site: (site.reason, site.code) if site.code else None,
)
_BY_FILE = (lambda site: (site.reason, site.function[0]),)  # an older file names no function
_ACROSS: tuple[Callable[[Site], Hashable], ...] = (
    lambda site: site[2:4],
    lambda site: site.function,
    lambda site: site.code or None,
)


def list_changes(evidence: Evidence, before: Compiled, after: Compiled, metric: Metric) -> Changes | None:
    """What is new and what is gone; as many of a kind as before only moved. ``None`` where it is unknown.

    Where their frames are cut, a recompile is recorded for callers too: one that only that side has means
    nothing.
    """
    sides = [_list_sites(metric, side) for side in (after, before)]
    is_alike, is_nested = _compare_recording(evidence, before)
    is_known = all(site.function[1] for side in sides for site in side)
    is_cut = metric is Metric.RECOMPILES and is_nested is not None
    if all(sides) and not is_alike and not (is_known and (is_nested or not is_cut)):
        return None
    rules = _ACROSS if not is_alike else _ALIKE if is_known else _ALIKE + _BY_FILE
    added, gone = sides if is_alike else map(_list_distinct, sides)
    for make_key in rules:
        added, gone = _drop_moved(added, gone, make_key)
    if not is_alike:
        added = [site for site in added if not site.meets(sides[1])]
        gone = [site for site in gone if not (is_cut or site.meets(sides[0]))]
    reasons = {site.reason for site in sides[1]}
    # A line in a library helps less than the line that led there.
    added.sort(key=lambda site: (site.reason in reasons, site.record.location.startswith("/")))
    return added, gone


def _list_sites(metric: Metric, compiled: Compiled) -> list[Site]:
    return list(map(_make_site, _READERS[metric](compiled)))


def _drop_moved(
    added: Sequence[Site], gone: Sequence[Site], make_key: Callable[[Site], Hashable]
) -> tuple[list[Site], list[Site]]:
    """Where both sides have as many sites of a key, these only moved; without a key nothing did."""
    more = Counter(map(make_key, added))
    more.subtract(map(make_key, gone))
    return (
        [site for site in added if (key := make_key(site)) is None or more[key] > 0],
        [site for site in gone if (key := make_key(site)) is None or more[key] < 0],
    )


def _list_distinct(sites: Sequence[Site]) -> list[Site]:
    return [*{site[2:4]: site for site in sites}.values()]


def _compare_recording(evidence: Evidence, baseline: Compiled) -> tuple[bool, bool | None]:
    """Whether both sides record alike; and where the setting differs, whether head has it on."""
    heads = {trial.workload.get(NESTED_BREAKS) == "on" for trial in evidence.trials if trial.graph_breaks}
    other = baseline.workload.get(NESTED_BREAKS) != "on"
    differs = bool(baseline.graph_breaks) and other in heads
    return not (evidence.other_stack or differs), other if differs else None


def count_kinds(
    evidence: Evidence, baseline: Baseline, metric: Metric
) -> tuple[Sequence[float], Sequence[float], tuple[Fact, ...]] | None:
    """Values of both sides, one a trial; where they do not record alike, numbers of kinds, with a remark.

    What is new is added to the base's number, or what is gone is subtracted. ``None`` where it is unknown.
    """
    before, after = baseline.trials[metric], evidence.values[metric]
    if metric is Metric.UNIQUE_GRAPHS:
        counted = [other for other in _READERS if other in evidence.values and baseline.trials.get(other)]
        is_lost = any(count_kinds(evidence, baseline, other) is None for other in counted)
        return None if is_lost else (before, after, ())
    is_alike = _compare_recording(evidence, baseline)[0]
    if metric not in _READERS or is_alike or not (any(before) and any(after)):
        return before, after, ()
    trials = [trial for trial in evidence.trials if trial.samples.get(metric)]
    changes = [list_changes(evidence, baseline, trial, metric) for trial in trials]
    listed = [change for change in changes if change is not None]
    if len(listed) < len(changes):
        return None
    kinds = len(_list_distinct(_list_sites(metric, baseline)))
    counts = [float(kinds + (len(new) or -len(gone))) for new, gone in listed]
    fewer = max(before)  # where the base's own trials differ some of them lack a kind
    base_counts = [float(max(kinds - (value < fewer), 0)) for value in before]
    return base_counts, counts, note_places(before, after)


def note_places(before: Sequence[float], after: Sequence[float]) -> tuple[Fact, ...]:
    return (Fact(code=Code.BY_PLACE, numbers={"before": median(before), "after": median(after)}),)
