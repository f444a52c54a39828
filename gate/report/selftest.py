"""What a test of the gate by itself found: one line a fault, then what is not good enough; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gate.records import Code
from gate.records.studies import (
    Attempt,
    Complaint,
    Demand,
    FaultKind,
    FaultScore,
    Result,
    SelftestReport,
)
from gate.report.clean import clean_line
from gate.report.footer import label_lines
from gate.report.view import ABSENT, Section, Study, keep_filled
from gate.report.words.comparisons import describe_comparison
from gate.report.words.failures import describe_failed_trial
from gate.report.words.templates import fill
from gate.units import count_noun, render_change, render_duration, render_percent

_MAX_SENTENCE = 160  # characters of what the gate said of one attempt; selftest.json has the rest
_HEADER = ("fault", "planted", "required", "tried", "caught", "unsure", "missed", "rate", "interval", "time")
_QUIET_HEADER = ("harmless", "planted", "tried", "red", "unsure", "rate", "interval", "time")
_MEANING = (
    "required: the share that must be found; - if the fault is too small for the current thresholds.\n"
    "unsure: inconclusive, which is not green. interval: of the rate, 95 % (Clopper and Pearson)."
)
_MARKS: Mapping[Result, str] = {
    Result.CAUGHT: "caught",
    Result.QUIET: "rightly not red",
    Result.INCONCLUSIVE: "inconclusive",
    Result.MISSED: "not caught",
    Result.FALSE_ALARM: "false alarm",
    Result.BROKEN: "could not be tried",
}
PASSED = "PASSED"
_HANDLED = frozenset({Result.CAUGHT, Result.QUIET})  # as it should be
_HARMLESS = (FaultKind.NOTHING, FaultKind.EAGER_FASTER)
_WORDS: Mapping[FaultKind, str] = {
    FaultKind.NOTHING: "nothing (A/A)",
    FaultKind.SLOWDOWN: "compiled slower",
    FaultKind.EAGER_FASTER: "eager faster",
    FaultKind.COLD_COMPILE: "cold compile longer",
    FaultKind.MEMORY: "more memory",
    FaultKind.GRAPH_BREAK: "graph break",
    FaultKind.RECOMPILE: "recompile at every call",
    FaultKind.LOW_PRECISION: "reduced precision",
    FaultKind.WRONG_EPS: "wrong epsilon",
    FaultKind.LOST_CACHE: "lost cache hit",
    FaultKind.NOT_A_NUMBER: "NaN in compiled code",
    FaultKind.CRASH: "crash",
    FaultKind.HANG: "hang",
    FaultKind.VANISHED: "vanished factory",
}
_TEMPLATES: Mapping[Code, str] = {
    Code.FAILURE_UNTOLD: "no failure of kind {kind} was reported",
    Code.NOT_JUDGED: "{metric_keys} was not judged",
}
_COMPLAINTS: Mapping[Complaint, str] = {
    Complaint.UNTRIED: "it could not be tried: every attempt failed",
    Complaint.ALARMS: "{score.false_alarms} of {score.tried} harmless changes turned red",
    Complaint.MISSES: "{score.missed} of {score.tried} were missed",
    Complaint.FEW_CAUGHT: "only {score.caught} of {score.tried} were caught",
}


def study_selftest(report: SelftestReport) -> Study:
    """Say what a selftest found."""
    outcome, headline = _describe_result(report)
    untried = f"Not tried: {', '.join(map(clean_line, report.untried))}."
    cases, time = ", ".join(report.case_ids), render_duration(report.wall_s)
    return Study(
        outcome=outcome,
        headline=headline,
        facts=label_lines(report.environment, ("cases", cases), ("time", time)),
        sections=keep_filled(
            _make_table(_HEADER, [score for score in report.scores if not _is_harmless(score)], _MEANING),
            _make_table(_QUIET_HEADER, [score for score in report.scores if _is_harmless(score)]),
        ),
        lines=tuple(_list_shortcomings(report)),
        notes=(untried,) if report.untried else (),
    )


def describe_fault(kind: FaultKind, size: float) -> str:
    """Describe a fault in words: ``compiled slower 5 %``."""
    return f"{_WORDS[kind]} {100 * size:g} %" if size else _WORDS[kind]


def describe_attempt(attempt: Attempt) -> str:
    """Describe what came of one attempt in a line."""
    row = attempt.comparison
    change = f", {row.metric} {render_change(row.metric, row.change.centre)}" if row and row.change else ""
    opinion = "" if attempt.result in _HANDLED else clean_line(describe_opinion(attempt), _MAX_SENTENCE)
    reason = f" ({opinion})" if opinion else ""
    fault = describe_fault(attempt.kind, attempt.size)
    return clean_line(f"{fault} in {attempt.case_id}: {_MARKS[attempt.result]}{change}{reason}")


def describe_opinion(attempt: Attempt) -> str:
    """Describe what the gate said of a fault; ``""`` where it had nothing to say."""
    if attempt.comparison:
        return describe_comparison(attempt.comparison)
    fact = attempt.fact
    if fact is None:
        return ""
    if fact.code is Code.FAILURE:
        return describe_failed_trial(fact)
    return fill(_TEMPLATES[fact.code], fact)


def describe_complaint(score: FaultScore) -> str:
    """Describe what is not good enough; ``""`` where nothing is."""
    return _COMPLAINTS[score.complaint].format(score=score) if score.complaint else ""


def _describe_result(report: SelftestReport) -> tuple[str, str]:
    failed = [score for score in report.scores if score.complaint]
    if failed:
        all_tried = f"{len(failed)} of {len(report.scores)} faults and harmless changes"
        return "FAILED", f"{all_tried} were not handled as they should be"
    faults = sum(not _is_harmless(score) for score in report.scores)
    if report.untried:
        harmless = tuple(_WORDS[kind] for kind in _HARMLESS)
        untried = sum(not one.startswith(harmless) for one in report.untried)
        return "INCOMPLETE", f"{faults} of {faults + untried} faults tried"
    if opened := sum(score.is_open for score in report.scores):
        return "INCONCLUSIVE", f"{count_noun(opened, 'fault')} that must be caught stayed open"
    counted = ((faults, "fault"), (len(report.scores) - faults, "harmless change"))
    tried = " and ".join(count_noun(number, noun) for number, noun in counted)
    return PASSED, f"{tried} in {count_noun(len(report.attempts), 'attempt')}"


def _make_table(header: tuple[str, ...], scores: Sequence[FaultScore], meaning: str = "") -> Section:
    return Section(
        title="",
        header=header,
        rows=tuple(tuple(_CELLS[column](score) for column in header) for score in scores),
        meaning=meaning,
    )


def _is_harmless(score: FaultScore) -> bool:
    return score.demand.false_alarm < Demand().false_alarm


def _render_fault(score: FaultScore) -> str:
    return describe_fault(score.kind, score.size)


_CELLS: Mapping[str, Callable[[FaultScore], str]] = {
    "fault": _render_fault,
    "harmless": _render_fault,
    "planted": lambda score: render_percent(score.planted) if score.planted else ABSENT,
    "required": lambda score: (
        f"{100 * score.demand.catch:g} %" if score.is_asked and score.demand.catch > 0 else ABSENT
    ),
    "tried": lambda score: str(score.tried),
    "caught": lambda score: str(score.caught),
    "red": lambda score: str(score.false_alarms),
    "unsure": lambda score: str(score.inconclusive),
    "missed": lambda score: str(score.missed),
    "rate": lambda score: f"{100 * score.rate.share:.0f} %" if score.rate else ABSENT,
    "interval": lambda score: (
        f"{100 * score.rate.low:.0f} to {100 * score.rate.high:.0f} %" if score.rate else ABSENT
    ),
    "time": lambda score: render_duration(score.wall_s),
}


def _list_shortcomings(report: SelftestReport) -> Iterator[str]:
    """What the gate did not handle as it should, with the attempts that show it."""
    for score in report.scores:
        stayed = f"0 of {score.tried} were caught, which may be chance" if score.is_open else ""
        if text := describe_complaint(score) or stayed:
            yield f"{describe_fault(score.kind, score.size)}: {text}"
            own = (one for one in report.attempts if (one.kind, one.size) == (score.kind, score.size))
            yield from (f"  {describe_attempt(one)}" for one in own if one.result not in _HANDLED)
