"""Cases that need pairs after the screen."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide import suspects
from gate.decide.judge.screening import Screening
from gate.decide.suspects import Suspect, clear_unchanged_sources, list_suspects
from gate.decide.verdict import screen_run
from gate.records.cases import Metric
from gate.records.run import CodeIdentity
from gate.records.verdict import Change, Comparison, Reason, Status
from tests.make import POLICY, PairedCase, find_row, make_change, make_row, pair_up

from .one_case import (
    BREAKS,
    CASE,
    COLD,
    EAGER,
    LATENCY,
    SPEEDUP,
    UNBROKEN,
    WARM,
    WIDE,
    fail,
    measure,
    screen,
    store,
)


def list_suspects_of(*rows: Comparison) -> tuple[Suspect, ...]:
    return list_suspects(replace(screen(measure()), comparisons=rows))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([make_change(0.08, 0.04)], 2.0),
        ([make_change(0.01, 0.04)], 0.25),
        ([make_change(0.01, 0.04), make_change(0.06, 0.02)], 3.0),  # of the one that is more surely worse
        ([make_change(0.06, 0.02), make_change(0.01, 0.04)], 3.0),
        ([make_change(-0.08, 0.04)], 0.0),
        ([make_change(0.0, 0.04)], 0.0),
        ([make_change(1.0)], math.inf),  # no interval: a count
        ([make_change(0.5)], math.inf),
        ([make_change(0.0)], 0.0),
        ([make_change(-0.5)], 0.0),
        ([None], 0.0),
        ([None, make_change(0.08, 0.04)], 2.0),
    ],
)
def test_doubt_is_the_change_in_half_widths_of_its_interval(
    changes: list[Change | None], expected: float
) -> None:
    """Doubt is the worse metric's change in half widths of its interval, and 0 where none looks worse."""
    pairs = zip((LATENCY, SPEEDUP), changes, strict=False)
    rows = [make_row(CASE, metric, Status.INCONCLUSIVE, change=change) for metric, change in pairs]
    (suspect,) = list_suspects_of(*rows)
    assert suspect.screened.doubt == pytest.approx(expected)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (make_row(CASE, LATENCY), (SPEEDUP, LATENCY)),
        (make_row(CASE, SPEEDUP, Status.INCONCLUSIVE), (SPEEDUP, LATENCY)),
        (make_row(CASE, COLD, Status.IMPROVED), (COLD,)),
        (make_row(CASE, Metric.COMPILE_CALLS), (COLD, WARM, Metric.COMPILE_CALLS)),
        (make_row(CASE, Metric.CACHE_MISSES), (WARM, Metric.CACHE_MISSES)),
        (make_row(CASE, BREAKS), (BREAKS,)),
        (make_row(CASE, BREAKS, Status.UNCHANGED), ()),
        (make_row(CASE, BREAKS, decides=False), ()),
        (make_row(CASE, LATENCY, Status.MISSING, reason=Reason.NOT_RUN), ()),
    ],
)
def test_what_is_not_unchanged_is_measured_in_pairs_with_what_belongs_to_it(
    row: Comparison, expected: tuple[Metric, ...]
) -> None:
    """Calls belong to each other, times of a compile to its counters; a case that did not run is none."""
    assert [suspect.metrics for suspect in list_suspects_of(row)] == ([expected] if expected else [])


def test_a_case_that_did_not_run_is_no_suspect() -> None:
    """Without any trial there is nothing to confirm."""
    assert list_suspects(screen({}, pairs=0)) == ()


@pytest.mark.parametrize(
    ("latency", "speedup", "expected"),
    [
        (Status.REGRESSED, Status.REGRESSED, True),
        (Status.REGRESSED, Status.INCONCLUSIVE, True),
        (Status.INCONCLUSIVE, Status.REGRESSED, True),
        (Status.INCONCLUSIVE, Status.IMPROVED, False),
    ],
)
def test_calls_are_slower_where_either_of_their_metrics_regressed(
    latency: Status, speedup: Status, *, expected: bool
) -> None:
    """One of latency and speedup is enough, and neither is a count that was seen."""
    (suspect,) = list_suspects_of(make_row(CASE, LATENCY, latency), make_row(CASE, SPEEDUP, speedup))
    assert (suspect.screened.slower, suspect.screened.seen) == (expected, {})


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
    assert list_suspects(screen(measure(compiled_latency=1.08))) == (
        Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),
    )


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
    assert list_suspects(screen(measure(), baselines=())) == (
        Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY, COLD)),
    )


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
        pytest.param((1.0, 1.03, 0.97, 1.06, 0.94), True, id="one speed"),
        pytest.param((1.0, 1.0, 1.0, 1.02, 1.02), True, id="two speeds, nearer than a live pair tells"),
        pytest.param((1.0, 1.1, 1.005, 1.095, 0.995), False, id="two speeds, a tenth apart"),
        pytest.param((0.9, 1.0, 1.001, 0.999, 1.0), False, id="one is faster"),
        pytest.param((1.1, 1.0, 1.001, 0.999, 1.0), False, id="one is slower"),
        pytest.param((1.0, 1.001, 0.999), True, id="three say it"),
        pytest.param((1.0, 1.001), False, id="too few to say"),
    ],
)
def test_two_speeds_are_seen_in_what_is_stored(factors: tuple[float, ...], expected: bool) -> None:
    """Stored values at two speeds are not steady."""
    values = {LATENCY: tuple(0.010 * factor for factor in factors), EAGER: (0.020,) * len(factors)}
    baseline = store(values)
    (suspect,) = list_suspects(screen(measure(compiled_latency=1.2), baselines=(baseline,)))
    assert suspect.screened.is_steady is expected


@pytest.mark.parametrize(
    ("bar", "factors", "expected"),
    [("LIVE_PAIR_SD", (1.0, 1.0, 1.0), True), ("TWO_SPEEDS", (1.0, 1.0, 1.1), False)],
)
def test_what_just_reaches_a_bar_of_steadiness_passes_it(
    monkeypatch: pytest.MonkeyPatch, bar: str, factors: tuple[float, ...], *, expected: bool
) -> None:
    """With a bar of nothing, a spread of nothing is steady, and so is each of two speeds."""
    monkeypatch.setattr(suspects, bar, 0.0)
    baseline = store({LATENCY: tuple(0.010 * factor for factor in factors), EAGER: (0.020,) * 3})
    (suspect,) = list_suspects(screen(measure(compiled_latency=1.2), baselines=(baseline,)))
    assert suspect.screened.is_steady is expected


def test_suspects_are_the_same_where_the_same_pairs_are_to_be_measured() -> None:
    """What was found out about a case makes it no other suspect; by itself nothing is known."""
    plain = Suspect(case_id=CASE, metrics=(LATENCY,))
    assert not any((plain.unchanged_code, plain.thorough, plain.convicted, plain.slower, plain.later))
    assert plain.more == 0
    known: dict[str, Any] = {"unchanged_code": True, "thorough": True, "convicted": True, "slower": True}
    assert replace(plain, **known) == plain
    assert replace(plain, more=1) != plain
    assert replace(plain, later=True) != plain


@pytest.mark.parametrize("asked", [{}, {"thorough": False}, {"thorough": True}])
def test_all_pairs_are_wanted_where_they_are_asked_for(asked: dict[str, bool]) -> None:
    """A conviction ends a case's pairs, unless the check is thorough."""
    (suspect,) = list_suspects(screen(measure(compiled_latency=1.3)), **asked)
    assert suspect.thorough is asked.get("thorough", False)


def test_a_stored_latency_of_zero_is_not_steady() -> None:
    """It has no logarithm."""
    baseline = store({LATENCY: (0.0,) * 9, BREAKS: (0.0,) * 9})
    (suspect,) = list_suspects(screen({**measure(), BREAKS: (1.0,)}, baselines=(baseline,)))
    assert not suspect.screened.is_steady


# Slower calls of the program that is stored, beside an improvement and what does not decide.
SLOWER = (
    make_row(CASE, LATENCY),
    make_row(CASE, SPEEDUP, Status.INCONCLUSIVE),
    make_row(CASE, COLD, Status.UNCHANGED),
    make_row(CASE, EAGER, Status.INCONCLUSIVE, decides=False),
)
BETTER, NEW = make_row(CASE, COLD, Status.IMPROVED), make_row(CASE, COLD, Status.NEW)
CODE = CodeIdentity(digest="a1")


def clear(
    rows: Sequence[Comparison] = SLOWER,
    other_changes: Sequence[str] | None = (),
    imports: Sequence[tuple[str, ...] | None] = ((), ()),
    rows_of_inputs: str = "8",
    code: CodeIdentity = CODE,
) -> Screening:
    """What is left of these rows of a case with one trial for each of these lists of changed imports."""
    run = pair_up(PairedCase(alone={LATENCY: (0.010,) * len(imports)}, pairs=1, identity=code))
    alone = [
        replace(trial, changed_imports=files, workload={"inputs": rows_of_inputs})
        for trial, files in zip(run.trials, imports, strict=False)
    ]
    assert run.base is not None
    base = replace(run.base, other_changes=None if other_changes is None else tuple(other_changes))
    run = replace(run, trials=(*alone, *run.trials[len(alone) :]), base=base)
    stored = replace(UNBROKEN, identity=CODE, workload={"inputs": "8"})
    return clear_unchanged_sources(replace(screen_run(run, (stored,), POLICY), comparisons=tuple(rows)), run)


def test_times_of_the_bases_program_are_cleared() -> None:
    """What is worse or open of a suspect is UNCHANGED; the rest stays as it is."""
    screening = clear()
    cleared: dict[str, Any] = {"status": Status.UNCHANGED, "reason": Reason.UNCHANGED_SOURCES}
    assert screening.comparisons == (*(replace(row, **cleared) for row in SLOWER[:2]), *SLOWER[2:])
    assert screening.base.same == (CASE,)
    assert clear((*SLOWER[:2], BETTER)).comparisons[2] == BETTER


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": (*SLOWER, make_row(CASE, BREAKS))},
        {"rows": (*SLOWER[:2], NEW)},
        {"other_changes": None},
        {"other_changes": ("weights.bin",)},
        {"imports": ((), ("a.py",))},
        {"imports": (None, ())},
        {"rows_of_inputs": "9"},
        {"code": CodeIdentity(digest="b2")},
        {"code": CodeIdentity(digest="")},
        {"code": replace(CODE, calls={"torch.ops.mine.op": 1})},
    ],
)
def test_times_of_what_may_be_another_program_are_not_cleared(changes: dict[str, Any]) -> None:
    """A count moved, a time is new, or files, inputs, code or operators are not known to be the base's."""
    screening = clear(**changes)
    assert screening.comparisons == changes.get("rows", SLOWER)
    assert screening.base.same == ()


def test_without_a_base_nothing_is_cleared() -> None:
    """There is no program to be the same as."""
    run = replace(pair_up(PairedCase(alone=measure(compiled_latency=1.3), pairs=0)), base=None)
    screening = screen_run(run, (UNBROKEN,), POLICY)
    assert clear_unchanged_sources(screening, run) == screening
