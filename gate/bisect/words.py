"""What a bisection says: its ends, how long it will take, each step, and what was found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.bisect.levels import MAX_END_PAIRS
from gate.metrics import SPECS, Family
from gate.records import Comparison, Fact, Metric, Status, Verdict
from gate.records.studies import Bisection, Mark
from gate.report.clean import clean_line
from gate.report.rows import complete_sentence
from gate.report.words.causes import describe_cause
from gate.report.words.failures import describe_failure
from gate.report.words.templates import describe_change, name_metric
from gate.units import count_noun, join_some, render_duration

_GOES_ON = "Run the same again with --resume: it goes on from here."
_CONFIRMING = 2  # steps that it takes to see again what was found: by the rule of every other comparison
_METRICS_NAMED = 5  # of those that the pairs leave open


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstBad:
    """The first bad point, as compared with the one before it."""

    name: str  # the commit with its subject, or the interpreter
    metric: Metric
    causes: tuple[Fact, ...]  # likeliest first
    row: Comparison | None
    mark: Mark  # what it is against the one before it: SKIP where the pairs do not show it
    place: str  # of its report


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What is still to come, by what the ends took."""

    between: int  # points that are neither end
    steps: int  # at most
    step_s: float
    noun: str = "commit"

    def count_left(self, state: Bisection) -> int:
        """The steps that are left at most, of a search in which nothing is skipped."""
        return max(self.steps - len(state.steps), 0)

    def compute_left_s(self, state: Bisection) -> float:
        """Seconds that are left; by what the steps took as soon as there are some."""
        took = [step.wall_s for step in state.steps]
        step_s = sum(took) / len(took) if took else self.step_s
        return (self.count_left(state) + _CONFIRMING) * step_s


def render_ends(
    labels: tuple[str, str], verdict: Verdict, row: Comparison | None, metric: Metric | None
) -> str:
    """Say what the bad end is, compared with the good one; and why there is nothing to search, if so.

    ``metric`` is the one that was named, if any.
    """
    head = f"{labels[1]} against {labels[0]}"
    failures = [
        f"  {one.case_id} failed at {one.stage}: {clean_line(describe_failure(one))}"
        for one in verdict.failures
    ]
    if failures:
        fix = "Name ends at which the case can be measured."
        return "\n".join([f"{head}: an end cannot be measured.", *failures, fix])
    if row is None and not verdict.tally.pairs:
        fix = "Run again with --resume and more --minutes, once the machine is quiet."
        return f"{head}: there was no time for a single pair. {fix}"
    if row is None and metric is not None:
        return f"{head}: the case has no {name_metric(metric)} in both. Name another METRIC."
    if row is None:
        return f"{head}: {_explain_no_row(verdict)}"
    text = f"{head}: {name_metric(row.metric)}: {complete_sentence(row)}"
    if row.status is Status.REGRESSED:
        return text
    return f"{text}\n{_explain_premise(row)}"


def _explain_no_row(verdict: Verdict) -> str:
    opened = [one for one in verdict.comparisons if one.decides and one.status is Status.INCONCLUSIVE]
    if not opened:
        return "nothing got worse that decides. Name the METRIC, or other ends."
    names = join_some([name_metric(one.metric) for one in opened], _METRICS_NAMED)
    return (
        f"could not tell for {count_noun(len(opened), 'metric')}: {names}. Once the machine is quiet, run"
        f" {_name_more(opened[0])}, or name the METRIC."
    )


def _explain_premise(row: Comparison) -> str:
    none = "There is nothing to search for:"
    if row.status is Status.IMPROVED:
        return f"{none} the bad end is better than the good one. Swap them, or name others."
    if row.status is Status.UNCHANGED and SPECS[row.metric].family is Family.EXACT:
        return f"{none} the ends do not differ in it. Name another METRIC, or other ends."
    if row.status is Status.UNCHANGED:
        return (
            f"{none} the ends do not differ by as much as matters, on this machine. Name another METRIC, ends"
            " that differ, or a lower threshold for this case (`overrides` in gate.yml)."
        )
    return (
        "Nothing to search for: the pairs do not show that the bad end is worse. Once the machine is quiet,"
        f" run {_name_more(row)}."
    )


def _name_more(row: Comparison) -> str:
    """How to get more pairs of what these leave open."""
    return "it anew" if row.pairs >= MAX_END_PAIRS else "again with --resume and more --minutes"


def render_bisection_plan(state: Bisection, forecast: Forecast, left_s: float) -> str:
    """Say how many steps there will be, and how long they may take; ``--minutes`` leaves ``left_s``."""
    needed_s, steps = forecast.compute_left_s(state), forecast.count_left(state)
    between = count_noun(forecast.between, forecast.noun)
    again = f" ({count_noun(len(state.steps), 'step')} done before)" if state.steps else ""
    most = f"at most {count_noun(steps, 'step')} and one to see it again{again}"
    text = f"{between} between: {most}, about {render_duration(needed_s)} by what the ends took"
    if needed_s <= left_s:
        return text
    more = f"That is more than the {render_duration(left_s)} left of --minutes"
    return f"{text}\n{more}: what is not done by then goes on with --resume."


def render_step(state: Bisection, name: str, forecast: Forecast, why: str = "") -> str:
    """Render the last step as a line; ``name`` is its commit with its subject, or its interpreter.

    ``why`` is why it could not be measured, where that is known.
    """
    step = state.steps[-1]
    came = f"not measured ({clean_line(why)})" if why else "not measured"
    if step.change is not None:
        change = f"{name_metric(state.metric)} {describe_change(state.metric, step.change)}"
        came = f"{change} in {count_noun(step.pairs, 'pair')}"
    left = forecast.count_left(state)
    most = f"at most {count_noun(left, 'step')} left" if left else "to see it again"
    return f"{step.mark:<4} {clean_line(name)}: {came}; {most}, about {_render_left(state, forecast)}"


def render_time_up(state: Bisection, forecast: Forecast) -> str:
    """Say that the time of ``--minutes`` is up, and what is left."""
    done, left = count_noun(len(state.steps), "step"), count_noun(forecast.count_left(state), "step")
    return (
        f"Could not tell yet: the time of --minutes is up after {done}, at most {left} left, about"
        f" {_render_left(state, forecast)}.\n{_GOES_ON}"
    )


def _render_left(state: Bisection, forecast: Forecast) -> str:
    return render_duration(forecast.compute_left_s(state))


def render_candidates(candidates: Sequence[str]) -> str:
    """Say what is left where some points could not be judged."""
    return "\n".join(
        [
            f"Could not tell: it is one of these {len(candidates)}, since those between could not be judged:",
            *(f"  {clean_line(one)}" for one in candidates),
            "They cannot be measured, lie between both ends, or vary too much. Compare two of them",
            "with `ab`, or run again once the machine is quiet.",
        ]
    )


def render_finding(finding: FirstBad) -> str:
    """Render the answer and its causes."""
    first = f"first bad: {clean_line(finding.name)}"
    sentence = (
        complete_sentence(finding.row) if finding.row else "It could not be compared with the one before it."
    )
    if finding.mark is Mark.SKIP:
        why = "Could not tell yet: the steps lead to this one, and it has not been seen again."
        quiet = f"Once the machine is quiet, run {_name_more(finding.row)}." if finding.row else ""
        return "\n".join([why, first, f"  {sentence}", quiet or _GOES_ON])
    if finding.mark is Mark.GOOD:
        why = "Could not tell: the steps lead to this one, and it is not worse than what is before it."
        fix = "A step was wrong, or many small changes add up. Run again once the machine is quiet."
        return "\n".join([why, first, f"  {sentence}", fix])
    causes = [f"  cause  {clean_line(describe_cause(fact))}" for fact in finding.causes[:3]]
    text = f"  {name_metric(finding.metric)}: {sentence}"
    return "\n".join([first, text, *causes, "", f"Report: {finding.place}"])
