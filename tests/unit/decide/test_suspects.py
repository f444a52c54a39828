"""Which cases the screen sends to pairs."""

import math
from dataclasses import replace

import pytest

from gate.decide.judge.screening import Screening
from gate.decide.suspects import Suspect, list_suspects
from gate.records.run import CodeIdentity
from gate.records.verdict import Reason, Status
from tests.make import find_row

from .one_case import (
    BREAKS,
    CASE,
    COLD,
    EAGER,
    LATENCY,
    NINE,
    SPEEDUP,
    STORED_CASE,
    UNBROKEN,
    fail,
    measure,
    screen,
)


def find_latency(screening: Screening) -> Reason:
    (row,) = (one for one in screening.comparisons if one.metric is LATENCY)
    return row.reason


def test_doubt_is_the_change_in_half_widths_of_its_interval() -> None:
    """The screen's own interval says how far the worse of both metrics is from no change."""
    screening = screen(measure(compiled_latency=1.08))
    (found,) = list_suspects(screening)
    changes = [one.change for one in screening.comparisons if one.metric in {LATENCY, SPEEDUP}]
    assert found.screened.doubt == max(one.centre / (one.high - one.centre) for one in changes if one)
    assert found.screened.doubt > 1


@pytest.mark.parametrize("factors", [{}, {"eager_latency": 0.8}])
def test_unchanged_case_is_no_suspect(factors: dict[str, float]) -> None:
    """The stored values again, or a speedup that fell since eager is 20 % faster."""
    assert list_suspects(screen(measure(**factors))) == ()


@pytest.mark.parametrize(
    ("factors", "slower"),
    [
        ({"compiled_latency": 1.3}, True),
        ({"compiled_latency": 0.7}, False),
        ({"cold_compile_time": 2}, False),
    ],
)
def test_calls_are_surely_slower_where_stored_values_convict_them(
    factors: dict[str, float], *, slower: bool
) -> None:
    """30 % slower; not where they are faster, nor for a compile that takes twice as long."""
    (found,) = list_suspects(screen(measure(**factors)))
    assert found.screened.slower is slower


def test_slower_case_is_suspect() -> None:
    """8 % slower compiled: latency and speedup; the compile is none."""
    found = list_suspects(screen(measure(compiled_latency=1.08)))
    assert found == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


@pytest.mark.parametrize(
    ("digests", "breaks", "expected"),
    [
        (("a1", "a1"), 0.0, True),
        (("a1", "b2"), 0.0, False),
        (("", "a1"), 0.0, False),
        (("a1", "a1"), 1.0, False),
    ],
)
def test_code_is_known_where_it_is_the_stored_baselines(
    digests: tuple[str, str], breaks: float, expected: bool
) -> None:
    """The same digest and the same counters; an unknown digest is no known code."""
    before, after = (CodeIdentity(digest=one) for one in digests)
    alone = {**measure(compiled_latency=1.08), BREAKS: (breaks,)}
    (found,) = list_suspects(screen(alone, baselines=(replace(UNBROKEN, identity=before),), identity=after))
    assert found.unchanged_code is expected


def test_a_latency_that_could_hide_a_change_is_suspect() -> None:
    """Stored values that spread by 5 %: what one trial shows may be beyond the threshold of 5 %."""
    wide = {LATENCY: tuple(0.01 * (1 + 6 * (one - 1)) for one in NINE)}
    screening = screen(measure(), baselines=(replace(STORED_CASE, trials={**STORED_CASE.trials, **wide}),))
    assert find_latency(screening) is Reason.UNSETTLED
    assert list_suspects(screening) == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


def test_case_without_baseline_is_suspect_in_all() -> None:
    """Nothing stored: every noisy metric that was measured."""
    found = list_suspects(screen(measure(), baselines=()))
    assert found == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY, COLD)),)


def test_a_counter_that_stored_values_convict_is_suspect() -> None:
    """A graph break more than stored: looked at first, since nothing of it is left to chance."""
    (found,) = list_suspects(screen({**measure(), BREAKS: (1.0,)}, baselines=(UNBROKEN,)))
    assert (found.metrics, found.screened.doubt) == ((BREAKS,), math.inf)
    assert list_suspects(screen({**measure(), BREAKS: (0.0,)}, baselines=(UNBROKEN,))) == ()


def test_failed_case_is_no_suspect() -> None:
    """It is INCOMPLETE whatever pairs say."""
    assert list_suspects(screen(measure(compiled_latency=1.3), failures=(fail("head"),))) == ()


def test_stored_values_are_held_against_trials_that_ran_alone() -> None:
    """Six trials of pairs, twice as slow, do not enter the screen."""
    found = find_row(screen(measure(), head={LATENCY: 0.02}), LATENCY)
    assert found.candidate is not None
    assert found.candidate.n == 1


@pytest.mark.parametrize(
    ("own", "stored_breaks", "expected"),
    [
        ((0.0, 1.0), (0.0,), {}),  # differs between trials
        ((1.0,), None, {BREAKS: 1.0}),  # nothing is stored: new
        ((1.0,), (0.0, 1.0), {}),  # a stored trial shows as much
        ((1.0,), (0.0, 0.0), {BREAKS: Status.REGRESSED}),  # as stored values say
    ],
)
def test_a_count_that_is_not_unchanged_is_suspect(
    own: tuple[float, ...], stored_breaks: tuple[float, ...] | None, expected: object
) -> None:
    """It gets a pair, which is enough for what all trials of head count and no stored one does."""
    known = {} if stored_breaks is None else {BREAKS: stored_breaks}
    baseline = replace(STORED_CASE, trials={**STORED_CASE.trials, **known})
    values = {metric: [*value] * len(own) for metric, value in measure().items()}
    (found,) = list_suspects(screen({**values, BREAKS: own}, baselines=(baseline,)))
    assert (found.metrics, found.screened.seen) == ((BREAKS,), expected)


def test_a_latency_without_its_speedup_is_suspect() -> None:
    """Eager was not measured: both metrics are asked for, though one of them has no row."""
    values = {metric: value for metric, value in measure(compiled_latency=1.3).items() if metric is not EAGER}
    (found,) = list_suspects(screen(values, baselines=()))
    assert found.metrics == (SPEEDUP, LATENCY, COLD)


def test_trials_of_pairs_are_no_first_look() -> None:
    """Where no trial ran alone, head's side of a pair would be counted as both looks."""
    (found,) = list_suspects(screen({}, baselines=(), pairs=1, head={BREAKS: 1.0}))
    assert (BREAKS in found.metrics, found.screened.seen) == (True, {})


def test_a_count_that_head_no_longer_has_is_suspect() -> None:
    """MISSING gets its pair, which shows whether the base has it."""
    (found,) = list_suspects(screen(measure(), baselines=(UNBROKEN,)))
    assert (found.metrics, found.screened.seen) == ((BREAKS,), {})


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        pytest.param((1.0, 1.01, 0.99, 1.02, 0.98), True, id="one speed"),
        pytest.param((1.0, 1.005, 0.995, 1.01, 0.99), True, id="quieter than a live pair"),
        pytest.param((1.0, 1.1, 1.005, 1.095, 0.995), False, id="two speeds, a tenth apart"),
        pytest.param((1.0, 1.1), False, id="too few to say"),
    ],
)
def test_two_speeds_are_seen_in_what_is_stored(factors: tuple[float, ...], expected: bool) -> None:
    """Its case gets three pairs before its latency is clear: two agree by luck."""
    values = {LATENCY: tuple(0.010 * factor for factor in factors), EAGER: (0.020,) * len(factors)}
    baseline = replace(STORED_CASE, trials={**STORED_CASE.trials, **values})
    (found,) = list_suspects(screen(measure(compiled_latency=1.2), baselines=(baseline,)))
    assert found.screened.is_steady is expected
