"""Cases that need pairs after the screen."""

import math
from dataclasses import replace

import pytest

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
    SPEEDUP,
    UNBROKEN,
    WIDE,
    fail,
    measure,
    screen,
    store,
)


def test_doubt_is_the_change_in_half_widths_of_its_interval() -> None:
    """Doubt is the worse metric's change in half widths of its interval."""
    screening = screen(measure(compiled_latency=1.08))
    (suspect,) = list_suspects(screening)
    changes = [row.change for row in screening.comparisons if row.metric in {LATENCY, SPEEDUP}]
    assert suspect.screened.doubt == max(
        change.centre / (change.high - change.centre) for change in changes if change
    )
    assert suspect.screened.doubt > 1


@pytest.mark.parametrize("factors", [{}, {"eager_latency": 0.8}])
def test_unchanged_case_is_no_suspect(factors: dict[str, float]) -> None:
    """The stored values are not suspect, nor is a speedup that fell because eager is faster."""
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
    """Calls 30 % slower are, faster calls and a longer compile are not."""
    (suspect,) = list_suspects(screen(measure(**factors)))
    assert suspect.screened.slower is slower


def test_slower_case_is_suspect() -> None:
    """8 % slower makes latency and speedup suspect, not the compile."""
    suspects = list_suspects(screen(measure(compiled_latency=1.08)))
    assert suspects == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


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
    """Code is unchanged if digest and counters are the baseline's; an unknown digest is not."""
    before, after = (CodeIdentity(digest=digest) for digest in digests)
    alone = {**measure(compiled_latency=1.08), BREAKS: (breaks,)}
    (suspect,) = list_suspects(screen(alone, baselines=(replace(UNBROKEN, identity=before),), identity=after))
    assert suspect.unchanged_code is expected


def test_a_latency_that_could_hide_a_change_is_suspect() -> None:
    """A latency is suspect if its stored values spread by 5 %."""
    screening = screen(measure(), baselines=(store(WIDE),))
    assert find_row(screening, LATENCY).reason is Reason.UNSETTLED
    assert list_suspects(screening) == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


def test_case_without_baseline_is_suspect_in_all() -> None:
    """Without a baseline every measured noisy metric is suspect."""
    suspects = list_suspects(screen(measure(), baselines=()))
    assert suspects == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY, COLD)),)


def test_a_counter_that_stored_values_convict_is_suspect() -> None:
    """A new graph break has infinite doubt."""
    (suspect,) = list_suspects(screen({**measure(), BREAKS: (1.0,)}, baselines=(UNBROKEN,)))
    assert (suspect.metrics, suspect.screened.doubt) == ((BREAKS,), math.inf)
    assert list_suspects(screen({**measure(), BREAKS: (0.0,)}, baselines=(UNBROKEN,))) == ()


def test_failed_case_is_no_suspect() -> None:
    """A failed case is INCOMPLETE, whatever pairs show."""
    assert list_suspects(screen(measure(compiled_latency=1.3), failures=(fail("head"),))) == ()


def test_stored_values_are_compared_with_trials_alone() -> None:
    """Trials of pairs are not in the screen."""
    row = find_row(screen(measure(), head={LATENCY: 0.02}), LATENCY)
    assert row.candidate is not None
    assert row.candidate.n == 1


@pytest.mark.parametrize(
    ("counts", "stored_breaks", "expected"),
    [
        ((0.0, 1.0), (0.0,), {}),  # differs between trials
        ((1.0,), None, {BREAKS: 1.0}),  # nothing is stored: new
        ((1.0,), (0.0, 1.0), {}),  # a stored trial shows as much
        ((1.0,), (0.0, 0.0), {BREAKS: Status.REGRESSED}),  # as stored values say
    ],
)
def test_a_count_that_is_not_unchanged_is_suspect(
    counts: tuple[float, ...], stored_breaks: tuple[float, ...] | None, expected: object
) -> None:
    """The suspect has the count that all trials of head share and no stored one has."""
    baseline = store({} if stored_breaks is None else {BREAKS: stored_breaks})
    values = {metric: [*value] * len(counts) for metric, value in measure().items()}
    (suspect,) = list_suspects(screen({**values, BREAKS: counts}, baselines=(baseline,)))
    assert (suspect.metrics, suspect.screened.seen) == ((BREAKS,), expected)


def test_a_latency_without_its_speedup_is_suspect() -> None:
    """Without eager both latency and speedup are suspect."""
    values = {metric: value for metric, value in measure(compiled_latency=1.3).items() if metric is not EAGER}
    (suspect,) = list_suspects(screen(values, baselines=()))
    assert suspect.metrics == (SPEEDUP, LATENCY, COLD)


def test_trials_of_pairs_are_no_first_look() -> None:
    """Without a trial alone a count has not been seen yet."""
    (suspect,) = list_suspects(screen({}, baselines=(), pairs=1, head={BREAKS: 1.0}))
    assert (BREAKS in suspect.metrics, suspect.screened.seen) == (True, {})


def test_a_count_that_head_no_longer_has_is_suspect() -> None:
    """A MISSING count gets a pair."""
    (suspect,) = list_suspects(screen(measure(), baselines=(UNBROKEN,)))
    assert (suspect.metrics, suspect.screened.seen) == ((BREAKS,), {})


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
    """Stored values at two speeds are not steady."""
    values = {LATENCY: tuple(0.010 * factor for factor in factors), EAGER: (0.020,) * len(factors)}
    baseline = store(values)
    (suspect,) = list_suspects(screen(measure(compiled_latency=1.2), baselines=(baseline,)))
    assert suspect.screened.is_steady is expected
