"""What came of all attempts: how often each fault was caught, and whether chance explains what was not."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from gate.decide.stats import compute_rate
from gate.errors import ExitCode
from gate.report.clean import ABSENT, clean_line
from gate.report.tables import render_table
from gate.report.words.comparisons import describe_comparison
from gate.report.words.facts import describe_whole
from gate.selftest.catalog import FALSE_ALARMS, Fault, FaultSize, Opinion, Result
from gate.units import format_change, format_duration, format_noun, format_percent

_MAX_SENTENCE = 160  # characters of what the gate wrote of one attempt
_COUNTED = (Result.CAUGHT, Result.INCONCLUSIVE, Result.MISSED, Result.FALSE_ALARM)
_COLUMNS = ("planted", "required", "tried", "caught", "unsure", "missed", "red", "rate", "interval", "time")
_MEANING = (
    "required: the share that must be found; - if the fault is too small for the current thresholds.\n"
    "unsure: inconclusive, which is not green. red: false alarms, of harmless changes.\n"
    "interval: of the rate of catches, or of false alarms, 95 % (Clopper and Pearson)."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    fault: Fault
    case_id: str
    size: FaultSize
    opinion: Opinion
    wall_s: float = 0.0

    def describe(self) -> str:
        fault, row, failure = self.fault, self.opinion.row, self.opinion.failure
        if failure:
            text = describe_whole(failure)
        elif row:
            change = f" {format_change(row.metric, row.change.centre)}" if row.change else ""
            text = f"{row.metric}{change}: {describe_comparison(row, with_values=False)}"
        elif fault.is_harmless:
            text = "nothing turned red"
        else:
            text = f"no failure was a {fault.failure}" if fault.failure else f"{fault.metric} was not judged"
        where = clean_line(f"{fault.name} in {self.case_id}")
        return f"{self.opinion.result:12}  {where}: {clean_line(text, _MAX_SENTENCE)}"


class Score:
    def __init__(self, fault: Fault, attempts: Sequence[Attempt]) -> None:
        self.fault, self.attempts = fault, attempts
        results = [attempt.opinion.result for attempt in attempts]
        self.counts = {result: results.count(result) for result in Result}
        self.tried = len(attempts) - self.counts[Result.BROKEN]
        self.hits = self.counts[Result.FALSE_ALARM if fault.is_harmless else Result.CAUGHT]
        self.rate = compute_rate(self.hits, self.tried) if self.tried else None
        self.is_asked = any(attempt.size.is_asked for attempt in attempts)
        self.complaint = self._describe_complaint()
        must = self.is_asked and fault.caught > 0
        # In so few attempts that chance explains it.
        self.is_open = must and not self.hits and not self.complaint

    def _describe_complaint(self) -> str:
        """Empty where chance explains the counts.

        If the fault must be caught, only attempts with enough of it planted count.
        """
        if self.rate is None:
            return "it could not be tried: every attempt failed"
        if self.fault.is_harmless:
            text = f"{self.hits} of {self.tried} harmless changes turned red"
            return text if self.rate.low > FALSE_ALARMS else ""
        results = [attempt.opinion.result for attempt in self.attempts if attempt.size.is_asked]
        asked = len(results) - results.count(Result.BROKEN)
        if asked and compute_rate(results.count(Result.MISSED), asked).low > self.fault.missed:
            return f"{self.counts[Result.MISSED]} of {self.tried} were missed"
        if asked and compute_rate(results.count(Result.CAUGHT), asked).high < self.fault.caught:
            return f"only {self.hits} of {self.tried} were caught"
        return ""

    def render(self) -> tuple[str, ...]:
        planted, rate = fmean(attempt.size.planted for attempt in self.attempts), self.rate
        return (
            self.fault.name,
            format_percent(planted) if planted else ABSENT,
            f"{100 * self.fault.caught:g} %" if self.is_asked and self.fault.caught else ABSENT,
            str(self.tried),
            *(str(self.counts[result]) for result in _COUNTED),
            f"{100 * rate.share:.0f} %" if rate else ABSENT,
            f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %" if rate else ABSENT,
            format_duration(sum(attempt.wall_s for attempt in self.attempts)),
        )


def score_faults(faults: Sequence[Fault], attempts: Sequence[Attempt]) -> tuple[Score, ...]:
    return tuple(
        Score(fault, tries)
        for fault in faults
        if (tries := [attempt for attempt in attempts if attempt.fault == fault])
    )


def conclude(scores: Sequence[Score], untried: Sequence[Fault]) -> tuple[ExitCode, str]:
    """The exit code, and the last lines."""
    tried = f"{len(scores)} of {len(scores) + len(untried)} faults and harmless changes tried"
    if lines := [f"{score.fault.name}: {score.complaint}" for score in scores if score.complaint]:
        failed = f"FAILED  {len(lines)} of {len(scores)} were not handled as they should be"
        return ExitCode.REGRESSION, "\n".join((*lines, failed))
    if untried:
        names = ", ".join(fault.name for fault in untried)
        return ExitCode.INCOMPLETE, f"INCOMPLETE  {tried}; raise --minutes for {names}"
    if names := ", ".join(score.fault.name for score in scores if score.is_open):
        why = f"never caught, which may be chance: {names}; raise --minutes or --repeats"
        return ExitCode.INCOMPLETE, f"INCONCLUSIVE  {why}"
    attempts = sum(len(score.attempts) for score in scores)
    return ExitCode.PASS, f"PASSED  {tried} in {format_noun(attempts, 'attempt')}"


def render_scores(scores: Sequence[Score]) -> str:
    table = render_table(("fault", *_COLUMNS), [score.render() for score in scores], right=_COLUMNS)
    return f"{table}\n{_MEANING}" if scores else ""
