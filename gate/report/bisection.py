"""What a bisection says: its ends, how long it will take, each step, and what was found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.records import Comparison, Fact, Metric, Verdict
from gate.records.bisection import Bisection, BisectionStep
from gate.report.clean import clean_line
from gate.report.rows import complete_sentence, render_change_interval
from gate.report.words.causes import describe_cause
from gate.report.words.failures import describe_failure
from gate.report.words.terms import describe_change, name_metric
from gate.units import count_noun, render_duration

_SHORT = 12  # characters of a commit, or the end of a path


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstBad:
    """The first bad point, as it was held against the one before it."""

    name: str  # the commit with its subject, or the interpreter
    page: str  # of the commit, where GitHub has it
    state: Bisection
    labels: tuple[str, str]
    causes: tuple[Fact, ...]  # likeliest first
    row: Comparison | None
    is_confirmed: bool
    place: str  # of its report


def render_ends(labels: tuple[str, str], verdict: Verdict, row: Comparison | None) -> str:
    """Say what the bad end is, held against the good one; and why there is nothing to search, if so."""
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
    if row is None:
        return f"{head}: nothing got worse that decides. Name the METRIC, or other ends."
    told = f"{head}: {name_metric(row.metric)}: {complete_sentence(row)}"
    if row.status != "REGRESSED":
        return f"{told}\nThere is nothing to search for: the bad end is not seen to be worse here."
    return told


def render_bisection_plan(between: int, steps: int, pair_s: float, noun: str = "commit") -> str:
    """Say how many steps there will be, and how long they may take; ``noun`` is what is between the ends."""
    minutes = render_duration((steps + 1) * pair_s)
    most = f"at most {count_noun(steps, 'step')} and one to see it again"
    return f"{count_noun(between, noun)} between: {most}, about {minutes} by what the ends took"


def render_step(metric: Metric, step: BisectionStep) -> str:
    """Render one step as a line."""
    change = "not measured" if step.change is None else describe_change(metric, step.change)
    where = step.point if "/" in step.point else step.point[:_SHORT]
    return f"{step.mark:<4} {where}  {name_metric(metric)} {change} in {count_noun(step.pairs, 'pair')}"


def render_candidates(candidates: Sequence[str]) -> str:
    """Say what is left where some points could not be told."""
    return "\n".join(
        [
            f"Could not tell: it is one of these {len(candidates)}, since those between could not be told:",
            *(f"  {one}" for one in candidates),
            "Run again with --resume and more --minutes once the machine is quiet.",
        ]
    )


def render_finding(finding: FirstBad) -> str:
    """Render the answer, its cause, and a paragraph for an issue."""
    first = f"first bad: {clean_line(finding.name)}"
    sentence = (
        complete_sentence(finding.row) if finding.row else "It could not be held against what is before it."
    )
    if not finding.is_confirmed:
        return "\n".join(
            [
                "Could not tell: the steps lead to this one, and it is not worse than what is before it.",
                first,
                f"  {sentence}",
                "A step was wrong, or many small changes add up. Run again with more --minutes.",
            ]
        )
    causes = [f"  cause  {clean_line(describe_cause(fact))}" for fact in finding.causes[:3]]
    told = f"  {name_metric(finding.state.metric)}: {sentence}"
    return "\n".join([first, told, *causes, "", _render_paragraph(finding), "", f"Report: {finding.place}"])


def _render_paragraph(finding: FirstBad) -> str:
    """One paragraph of Markdown, with a link that stays."""
    state, row = finding.state, finding.row
    name = clean_line(finding.name)
    link = f"[{name}]({finding.page})" if finding.page else name
    change = describe_change(state.metric, row.change.centre) if row and row.change else "worse"
    interval = render_change_interval(state.metric, row.change) if row else ""
    pairs = count_noun(row.pairs, "pair") if row else "pairs"
    cause = f" Likeliest cause: {clean_line(describe_cause(finding.causes[0]))}" if finding.causes else ""
    between = f"{count_noun(len(state.steps), 'step')} between {' and '.join(finding.labels)}"
    within = f" ({interval})" if interval else ""
    return (
        f"`{state.case_id}`: {name_metric(state.metric)} {change}{within} with {link}, in {pairs} beside "
        f"what is before it; found in {between}.{cause}"
    )
