"""What is said of recorded runs agrees with the numbers beside it."""

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


def find(verdict: Verdict, model: str, metric: Metric) -> Comparison:
    return next(
        one for one in verdict.comparisons if one.case_id.startswith(f"{model}/") and one.metric is metric
    )


def test_no_sentence_calls_noise_what_its_interval_calls_none(verdicts: dict[str, Verdict]) -> None:
    """An interval beside it that excludes no change: another reason stands there than noise."""
    for verdict in verdicts.values():
        for one in verdict.comparisons:
            if one.change and one.change.low < one.change.high and not one.change.low <= 0 <= one.change.high:
                sentence = complete_sentence(one).lower()
                assert "within noise" not in sentence, one
                assert "noise could explain it" not in sentence, one


def test_what_is_below_its_threshold_has_a_change_below_it(verdicts: dict[str, Verdict]) -> None:
    """Unless pairs say that it is not worse by more, or it is better and not for sure."""
    told = [one for verdict in verdicts.values() for one in verdict.comparisons]
    small = [one for one in told if "a change below the threshold" in complete_sentence(one).lower()]
    assert small
    assert [one for one in small if exceeds_threshold(one)] == []


def test_times_of_a_machine_of_another_speed_say_by_how_much(verdicts: dict[str, Verdict]) -> None:
    """Nothing is compared with them; a machine that is 10 % slower is left out of what changed."""
    unjudged = find(verdicts["other_speed"], "head", LATENCY)
    assert unjudged.status is Status.NOT_COMPARABLE
    assert complete_sentence(unjudged, with_values=False) == (
        "Not judged: this machine is 39 % slower than the one that recorded."
    )
    slower = find(verdicts["machine_slower_and_case"], "chain", LATENCY)
    assert complete_sentence(slower, with_values=False) == (
        "Beyond the threshold of 5 %, and too large to be noise"
        " (the change leaves out that this machine is now 10 % slower)."
    )
    assert "this machine is 39 % slower than the one that recorded" in render_text(
        verdicts["other_speed"], width=160, detail=Detail.EVERYTHING
    )


def test_what_is_beyond_noise_says_that_many_were_compared(verdicts: dict[str, Verdict]) -> None:
    """+9.4 to +179 % beside a threshold of 15 %: sure for one comparison, and one of 24 needs more."""
    warm = find(verdicts["compile_slower"], "chain", Metric.WARM_COMPILE_TIME)
    assert complete_sentence(warm, with_values=False) == (
        "Inconclusive: it looks changed: clear for one comparison, but not among as many as this check makes."
    )


def test_a_ratio_that_is_surely_better_waits_for_what_it_is_of(verdicts: dict[str, Verdict]) -> None:
    """-66 to -64 % in pairs that do not settle compiled latency."""
    ratio = find(verdicts["upgrade_better"], "stencil", Metric.WARM_SPEEDUP)
    assert complete_sentence(ratio, with_values=False).startswith(
        "Inconclusive in 3 pairs side by side with the base, since compiled latency is too"
    )


def test_a_time_of_nothing_has_no_ratio(verdicts: dict[str, Verdict]) -> None:
    """And says that instead of calling its trials noisy."""
    zero = find(verdicts["zero"], "chain", LATENCY)
    assert complete_sentence(zero).endswith("inconclusive: a value is zero or less, so there is no ratio.")


def test_causes_of_what_could_not_be_told_are_conditional(verdicts: dict[str, Verdict]) -> None:
    """In every place where the case is open; where it regressed they are plain."""
    for verdict in verdicts.values():
        for block in make_report(verdict).blocks:
            doubted = [cause.startswith("Possible cause: ") for cause in block.causes]
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
