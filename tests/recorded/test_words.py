"""Sentences on recorded runs agree with their numbers."""

import pytest

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.verdict import Comparison, Status, Verdict
from gate.report.comparison_rows import make_row
from gate.report.content import make_report
from gate.report.text import Detail, render_text
from gate.report.words.comparisons import complete_sentence, exceeds_threshold
from tests.recorded.runs import judge
from tests.recorded.situations import list_situations

NAMES = (
    *("same", "changed", "slower", "drift", "counters", "compile_slower", "a_little_slower", "pairs_one"),
    *("calm_faster", "slower_everywhere", "machine_slower_and_case", "other_speed", "upgrade_better", "zero"),
)
LATENCY = Metric.COMPILED_LATENCY


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    situations = list_situations()
    return {name: judge(situations[name]) for name in NAMES}


def find_row(verdict: Verdict, model: str, metric: Metric) -> Comparison:
    return next(
        row for row in verdict.comparisons if row.case_id.startswith(f"{model}/") and row.metric is metric
    )


def test_no_sentence_calls_noise_what_its_interval_calls_none(verdicts: dict[str, Verdict]) -> None:
    """A change whose interval excludes 0 is not explained by noise."""
    for verdict in verdicts.values():
        for row in verdict.comparisons:
            if row.change and row.change.low < row.change.high and not row.change.low <= 0 <= row.change.high:
                sentence = complete_sentence(row).lower()
                assert "within noise" not in sentence, row
                assert "noise could explain it" not in sentence, row


def test_what_is_below_its_threshold_has_a_change_below_it(verdicts: dict[str, Verdict]) -> None:
    """Exceptions are a change cleared by pairs, and an unsure improvement."""
    rows = [row for verdict in verdicts.values() for row in verdict.comparisons]
    small = [row for row in rows if "a change below the threshold" in complete_sentence(row).lower()]
    assert small
    assert [row for row in small if exceeds_threshold(row)] == []


def test_times_of_a_machine_of_another_speed_say_by_how_much(verdicts: dict[str, Verdict]) -> None:
    """Times of a machine 39 % slower are not judged; 10 % are subtracted."""
    unjudged = find_row(verdicts["other_speed"], "head", LATENCY)
    assert unjudged.status is Status.NOT_COMPARABLE
    assert complete_sentence(unjudged, with_values=False) == (
        "Not judged: this machine is 39 % slower than the one that recorded."
    )
    slower = find_row(verdicts["machine_slower_and_case"], "chain", LATENCY)
    assert complete_sentence(slower, with_values=False) == (
        "Beyond the threshold of 5 %, and too large to be noise"
        " (the change leaves out that this machine is now 10 % slower)."
    )
    assert "this machine is 39 % slower than the one that recorded" in render_text(
        verdicts["other_speed"], width=160, detail=Detail.EVERYTHING
    )


def test_what_is_beyond_noise_says_that_many_were_compared(verdicts: dict[str, Verdict]) -> None:
    """+9.4 to +179 % with a threshold of 15 % convict one comparison, but not one of 24."""
    warm = find_row(verdicts["compile_slower"], "chain", Metric.WARM_COMPILE_TIME)
    assert complete_sentence(warm, with_values=False) == (
        "Inconclusive: it looks changed: clear for one comparison, but not among as many as this check makes."
    )


def test_a_ratio_that_is_surely_better_waits_for_what_it_is_of(verdicts: dict[str, Verdict]) -> None:
    """-66 to -64 % in pairs that leave compiled latency open."""
    ratio = find_row(verdicts["upgrade_better"], "stencil", Metric.WARM_SPEEDUP)
    assert complete_sentence(ratio, with_values=False).startswith(
        "Inconclusive in 3 pairs side by side with the base, since compiled latency is too"
    )


def test_a_time_of_nothing_has_no_ratio(verdicts: dict[str, Verdict]) -> None:
    """The sentence names the time of 0 s, not noise."""
    zero = find_row(verdicts["zero"], "chain", LATENCY)
    assert complete_sentence(zero).endswith("inconclusive: a value is zero or less, so there is no ratio.")


def test_causes_of_open_cases_are_conditional(verdicts: dict[str, Verdict]) -> None:
    """Causes of an open case are conditional in every place, those of a regression are not."""
    for verdict in verdicts.values():
        for block in make_report(verdict).blocks:
            doubted = [cause.startswith("Possible cause: ") for cause in block.causes]
            assert doubted == [block.status is Status.INCONCLUSIVE] * len(doubted)


@pytest.mark.parametrize("name", ["slower", "drift", "counters"])
def test_a_faster_machine_is_no_cause_of_what_got_worse(name: str, verdicts: dict[str, Verdict]) -> None:
    """A machine 5 % faster is noted, and is no cause of longer times, counts or drift."""
    verdict = verdicts[name]
    worse = {row.case_id for row in verdict.comparisons if row.status is Status.REGRESSED and row.decides}
    blamed = {cause.case_id for cause in verdict.causes if cause.fact.code is Code.MACHINE_CHANGED}
    assert worse
    assert not worse & blamed
    assert not any("machine changed" in cause for cause in make_report(verdict).causes)


def test_one_pair_has_no_interval(verdicts: dict[str, Verdict]) -> None:
    """One pair has neither interval nor detectable change, but head's value."""
    row = find_row(verdicts["pairs_one"], "head", LATENCY)
    assert row.change is not None
    assert row.change.low == row.change.centre == row.change.high
    assert make_row([row]).interval == "no interval"
    assert complete_sentence(row).endswith("No change could have been noticed from 1 pair.")
