"""The sentences of a bisection: unmet premises, progress, and open answers."""

from dataclasses import replace

import pytest

from gate.bisect.command import (
    render_bisection_plan,
    render_candidates,
    render_ends,
    render_finding,
    render_step,
    render_time_up,
)
from gate.bisect.search import Forecast
from gate.records.cases import Metric
from gate.records.studies import Bisection, BisectionStep, Mark
from gate.records.verdict import Change, Comparison, Reason, Status, Tally, Verdict
from tests.unit.report.conftest import make_pass

LABELS = ("v1.0 (1a2b3c4)", "main (9f1c2d3)")
STATE = Bisection(case_id="mlp/x", metric=Metric.COMPILED_LATENCY, good="a" * 40, bad="b" * 40, change=0.10)
FORECAST = Forecast(between=31, step_s=20.0)
STEP = BisectionStep(point="c" * 40, mark=Mark.BAD, pairs=2, wall_s=50.0, change=0.104)


def make_row(status: Status, reason: Reason, centre: float) -> Comparison:
    """A latency's comparison by three pairs."""
    change = Change(centre=centre, low=centre - 0.01, high=centre + 0.01, detectable=0.03)
    latency = next(row for row in make_pass().comparisons if row.metric is Metric.COMPILED_LATENCY)
    return replace(latency, status=status, reason=reason, change=change, pairs=3)


def make_verdict(pairs: int = 3) -> Verdict:
    return replace(make_pass(), tally=Tally(pairs=pairs))


@pytest.mark.parametrize(
    ("row", "metric", "words"),
    [
        (
            make_row(Status.IMPROVED, Reason.BEYOND_BAR, -0.10),
            Metric.COMPILED_LATENCY,
            "There is nothing to search for: the bad end is better than the good one. Swap them,",
        ),
        (
            make_row(Status.UNCHANGED, Reason.BELOW_THRESHOLD, 0.001),
            Metric.COMPILED_LATENCY,
            "the ends do not differ by as much as matters, on this machine. Name another METRIC",
        ),
        (
            make_row(Status.INCONCLUSIVE, Reason.UNSETTLED, 0.02),
            Metric.COMPILED_LATENCY,
            "Once the machine is quiet, run again with --resume and more --minutes.",
        ),
        (
            replace(make_row(Status.INCONCLUSIVE, Reason.UNSETTLED, 0.02), pairs=32),
            Metric.COMPILED_LATENCY,
            "Once the machine is quiet, run it anew.",
        ),
        (
            replace(make_row(Status.UNCHANGED, Reason.BELOW_THRESHOLD, 0.0), metric=Metric.GRAPH_BREAKS),
            Metric.GRAPH_BREAKS,
            "the ends do not differ in it. Name another METRIC, or other ends.",
        ),
        (None, Metric.FIRST_REQUEST, "the case has no first request in both. Name another METRIC."),
        (None, None, "nothing got worse that decides. Name the METRIC, or other ends."),
    ],
)
def test_an_unmet_premise_names_what_to_do(row: Comparison | None, metric: Metric | None, words: str) -> None:
    """The sentence names both ends."""
    text = render_ends(LABELS, make_verdict(), row, metric)
    assert text.startswith("main (9f1c2d3) against v1.0 (1a2b3c4): ")
    assert words in text


def test_what_the_pairs_leave_open_is_not_called_unchanged() -> None:
    """An inconclusive metric is named with what to do, unless it does not decide."""
    opened = make_row(Status.INCONCLUSIVE, Reason.UNSETTLED, 0.14)
    advisory = replace(make_verdict(), comparisons=(replace(opened, decides=False),))
    assert "nothing got worse that decides" in render_ends(LABELS, advisory, None, None)
    assert render_ends(LABELS, replace(make_verdict(), comparisons=(opened,)), None, None) == (
        "main (9f1c2d3) against v1.0 (1a2b3c4): inconclusive for 1 metric: compiled latency. "
        "Once the machine is quiet, run again with --resume and more --minutes, or name the METRIC."
    )


def test_a_regression_at_the_bad_end_is_all_there_is_to_say() -> None:
    """A regression is one line, and the search begins."""
    row = make_row(Status.REGRESSED, Reason.BEYOND_BAR, 0.10)
    assert "\n" not in render_ends(LABELS, make_verdict(), row, None)


def test_ends_without_a_pair_had_no_time() -> None:
    assert "no time for a single pair" in render_ends(LABELS, make_verdict(0), None, None)


def test_the_plan_says_what_minutes_leave_open() -> None:
    """Five steps of 20 s and two to see it again are 140 s; 100 s leave some for later."""
    text = render_bisection_plan(STATE, FORECAST, 200.0)
    assert text == (
        "31 commits between: at most 5 steps and one to see it again, about 2 min 20 s by what the ends took"
    )
    short = render_bisection_plan(STATE, FORECAST, 100.0)
    assert short.endswith(
        "more than the 1 min 40 s left of --minutes: what is not done by then goes on with --resume."
    )


def test_a_search_that_goes_on_counts_what_it_has() -> None:
    """One step is done, four of 50 s are left: 300 s with the last."""
    state = replace(STATE, steps=(STEP,))
    text = render_bisection_plan(state, FORECAST, 600.0)
    assert "at most 4 steps and one to see it again (1 step done before), about 5 min 00 s" in text


def test_a_step_names_its_commit_and_what_is_left() -> None:
    """The commit's subject is shown without control characters."""
    state = replace(STATE, steps=(STEP,))
    assert render_step(state, "ccccccc Fuse \x1b[31mtwo layers", FORECAST) == (
        "bad  ccccccc Fuse two layers: compiled latency +10.4 % (slower) in 2 pairs; "
        "at most 4 steps left, about 5 min 00 s"
    )
    last = replace(STATE, steps=(STEP,) * 4 + (replace(STEP, mark=Mark.SKIP, pairs=0, change=None),))
    assert render_step(last, "ddddddd Break it", FORECAST) == (
        "skip ddddddd Break it: not measured; to see it again, about 1 min 40 s"
    )


def test_time_that_is_up_is_no_answer() -> None:
    """The sentence names what is left and how to continue."""
    text = render_time_up(replace(STATE, steps=(STEP, STEP)), FORECAST)
    assert text.startswith(
        "Inconclusive so far: the time of --minutes is up after 2 steps, at most 3 steps left"
    )
    assert "--resume" in text


def test_candidates_are_named_with_their_subjects() -> None:
    """One candidate a line."""
    assert "\n  ccccccc Two\n" in render_candidates(["bbbbbbb One", "ccccccc Two", "ddddddd Three"])


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Mark.SKIP, "it has not been seen again"),
        (Mark.GOOD, "it is not worse than what is before it"),
    ],
)
def test_what_was_not_seen_again_is_no_answer(mark: Mark, words: str) -> None:
    """Too few pairs and pairs without the change have different sentences."""
    text = render_finding("ccccccc Fuse", Metric.COMPILED_LATENCY, None, mark)
    assert text.startswith("Inconclusive")
    assert words in text
    assert "first bad: ccccccc Fuse" in text
