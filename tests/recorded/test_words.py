"""What is said of recorded runs agrees with the numbers beside it."""

from __future__ import annotations

import pytest

from gate.records import Code, Comparison, Metric, Reason, Status, Verdict
from gate.report.content import make_report
from gate.report.rows import complete_sentence, make_row
from gate.report.text import Detail, render_text
from tests.recorded.situations import judge, list_situations

NAMES = ("same", "changed", "slower", "drift", "counters", "machine_slower", "compile_slower", "pairs_one")
LATENCY, COLD = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    situations = list_situations()
    return {name: judge(situations[name]) for name in NAMES}


def find(verdict: Verdict, model: str, metric: Metric) -> Comparison:
    return next(
        one for one in verdict.comparisons if one.case_id.startswith(f"{model}/") and one.metric is metric
    )


def test_no_sentence_calls_noise_what_its_interval_calls_none(verdicts: dict[str, Verdict]) -> None:
    """An interval beside it that excludes no change: another reason stands there than noise."""
    for verdict in verdicts.values():
        for one in verdict.comparisons:
            if one.change and one.change.low < one.change.high and not one.change.low <= 0 <= one.change.high:
                assert one.reason is not Reason.WITHIN_NOISE, one
                assert "noise could explain it" not in complete_sentence(one) or one.change.high < 0, one


def test_what_the_machine_explains_says_by_how_much(verdicts: dict[str, Verdict]) -> None:
    """Cleared: what the machine did, and what is left. 1.455 / 1.500 is 0.970, and 4.64 / 1.511 is 3.07."""
    cleared = find(verdicts["machine_slower"], "head", LATENCY)
    assert (cleared.status, cleared.reason) == (Status.UNCHANGED, Reason.MACHINE_SHIFT)
    assert complete_sentence(cleared, with_values=False) == (
        "The machine got slower by 50.0 %; without that -3.0 %."
    )
    assert "The machine got slower by 50.0 %" in render_text(
        verdicts["machine_slower"], width=160, detail=Detail.EVERYTHING
    )
    left = find(verdicts["changed"], "stencil", LATENCY)
    assert complete_sentence(left, with_values=False) == (
        "Could not tell: the machine got slower by 51.1 %; without that +207 %, beyond noise for one"
        " comparison, and not for as many as were made."
    )


def test_what_is_beyond_noise_says_that_many_were_compared(verdicts: dict[str, Verdict]) -> None:
    """+31 to +118 % beside a limit of 10 %: sure for one comparison, and one of 24 needs more."""
    assert complete_sentence(find(verdicts["changed"], "stencil", COLD), with_values=False) == (
        "Could not tell: it looks changed, beyond noise for one comparison, and not for as many as were made."
    )


def test_causes_of_what_could_not_be_told_are_conditional(verdicts: dict[str, Verdict]) -> None:
    """In every place where the case is open; where it regressed they are plain."""
    for verdict in verdicts.values():
        for block in make_report(verdict).blocks:
            doubted = [cause.startswith("If it is real: ") for cause in block.causes]
            assert doubted == [block.status is Status.INCONCLUSIVE] * len(doubted)


@pytest.mark.parametrize("name", ["slower", "drift", "counters"])
def test_a_faster_machine_is_no_cause_of_what_got_worse(name: str, verdicts: dict[str, Verdict]) -> None:
    """It was 5 % faster, which a note says: no time got longer for it, nor a count or drift."""
    verdict = verdicts[name]
    worse = {one.case_id for one in verdict.comparisons if one.status is Status.REGRESSED and one.decides}
    told = {one.case_id for one in verdict.causes if one.fact.code is Code.MACHINE_CHANGED}
    assert worse
    assert not worse & told
    assert not any("machine changed" in cause for cause in make_report(verdict).causes)


def test_one_pair_has_no_interval(verdicts: dict[str, Verdict]) -> None:
    """Nobody knows its noise: no interval, nothing that it would have noticed, and head's own value."""
    row = find(verdicts["pairs_one"], "head", LATENCY)
    assert row.change is not None
    assert row.change.low == row.change.centre == row.change.high
    assert make_row([row]).interval == "no interval"
    assert complete_sentence(row).endswith("No change could have been noticed from 1 pair.")
