from collections.abc import Sequence
from typing import Any

import pytest

from gate.decide.judge.compare import follow_leader, follow_leaders
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Comparison, Outcome, Reason, Status
from tests.make import Situation, decide, decide_row, find_row, make_change, make_row, state
from tests.words import describe_comparison

MIB = 1024.0 * 1024.0
BREAKS, MEMORY, RATIO = Metric.GRAPH_BREAKS, Metric.PEAK_MEMORY, Metric.MEMORY_RATIO


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ((1.0, 1.0), (1.0,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((1.0, 1.0), (2.0,), Status.REGRESSED, Reason.BEYOND_BAR),
        ((1.0,), (2.0, 2.0), Status.REGRESSED, Reason.BEYOND_BAR),
        ((2.0, 2.0), (0.0,), Status.IMPROVED, Reason.BEYOND_BAR),
        ((1.0, 2.0), (3.0, 4.0), Status.INCONCLUSIVE, Reason.UNSETTLED),  # it flickers: 1 in 16 by luck
        ((3.0, 4.0), (1.0, 2.0), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((1.0, 2.0), (2.0, 3.0), Status.INCONCLUSIVE, Reason.UNSETTLED),
        ((1.0, 1.0), (1.0, 2.0), Status.INCONCLUSIVE, Reason.UNSETTLED),
        ((1.0, 2.0), (1.0, 2.0), Status.INCONCLUSIVE, Reason.UNSETTLED),
        ((1.0, 2.0), (1.0, 1.0), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # surely no more than it was
    ],
)
def test_counters(before: Sequence[float], after: Sequence[float], status: Status, reason: Reason) -> None:
    """A counter is worse when all its values are above all stored ones, and open when they overlap."""
    row = decide_row(BREAKS, before={BREAKS: before}, after={BREAKS: after})
    assert (row.status, row.reason) == (status, reason)


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ((0.0,), (0.0,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((0.0,), (65536.0, 65536.0), Status.REGRESSED, Reason.BEYOND_BAR),
        ((65536.0,), (0.0,), Status.IMPROVED, Reason.BEYOND_BAR),
        ((65536.0,), (66560.0, 65536.0), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((65536.0,), (67584.0, 66560.0), Status.INCONCLUSIVE, Reason.UNSETTLED),
    ],
)
def test_memory_that_calls_keep(
    before: Sequence[float], after: Sequence[float], status: Status, reason: Reason
) -> None:
    """Memory that calls keep is judged like a counter, with 1 KiB of tolerance."""
    growth = Metric.MEMORY_GROWTH
    row = decide_row(growth, before={growth: before}, after={growth: after})
    assert (row.status, row.reason) == (status, reason)


def test_memory_that_calls_keep_is_shown_in_bytes() -> None:
    """A change from zero is shown in bytes, not percent."""
    growth = Metric.MEMORY_GROWTH
    row = decide_row(growth, before={growth: (0.0,)}, after={growth: (65536.0,)})
    assert describe_comparison(row) == (
        "0 B -> 64.0 KiB, +64.0 KiB (more): 0 B in the baseline trial, 64.0 KiB in the head trial."
    )


def test_a_counters_change_is_shown_in_counts() -> None:
    """One break to three is shown as +2."""
    row = decide_row(BREAKS, before={BREAKS: (1.0,)}, after={BREAKS: (3.0,)})
    assert row.change is not None
    assert row.change.centre == 2.0
    assert describe_comparison(row) == "1 -> 3, +2 (more): 1 in the baseline trial, 3 in the head trial."


@pytest.mark.parametrize(
    ("values", "ending"),
    [
        (((0.0,) * 5, (1.0,) * 3), "0 in all 5 baseline trials, 1 in all 3 head trials."),
        (((0.0, 1.0) * 10, (2.0,) * 4), "0 to 1 in 20 baseline trials, 2 in all 4 head trials."),
        (((4.0,) * 2, (3.0,)), "4 in both baseline trials, 3 in the head trial."),
    ],
)
def test_counts_of_both_sides_are_shown(values: tuple[Sequence[float], ...], ending: str) -> None:
    """The sentence has each side's counts and numbers of trials."""
    before, after = values
    row = decide_row(BREAKS, before={BREAKS: before}, after={BREAKS: after})
    assert describe_comparison(row).endswith(f": {ending}")


def test_explaining_counter_never_regresses() -> None:
    """More captured operations are UNCHANGED and do not decide; some that differ are open."""
    counts = Metric.CAPTURED_OPS
    for after, expected in (
        ((120.0,), (Status.UNCHANGED, Reason.BEYOND_BAR)),
        ((100.0, 120.0), (Status.INCONCLUSIVE, Reason.UNSETTLED)),
    ):
        row = decide_row(counts, before={counts: (100.0,)}, after={counts: after})
        assert state(row) == expected
        assert not row.decides


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ((400, 400), (400,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((400, 400), (405,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # 1.25 % of 3 %
        ((400, 401), (400.5,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((400, 400), (413, 414), Status.REGRESSED, Reason.BEYOND_BAR),  # 3.25 %, 13 MiB
        ((400, 400), (400, 414), Status.INCONCLUSIVE, Reason.UNSETTLED),
        ((400, 400), (380, 380), Status.IMPROVED, Reason.BEYOND_BAR),
        ((10, 10), (15.9,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # 59 %, yet 5.9 MiB of 6
        ((10, 10), (16.1,), Status.REGRESSED, Reason.BEYOND_BAR),
        ((8.2, 8.2, 8.2), (13.75, 13.75), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # 1.5 x an idle jump
        ((400, 410), (420,), Status.INCONCLUSIVE, Reason.UNSETTLED),  # 10 to 20 MiB
        ((400, 410), (425,), Status.REGRESSED, Reason.BEYOND_BAR),  # 15 MiB at least
        ((400, 410), (440,), Status.REGRESSED, Reason.BEYOND_BAR),
        ((400, 500), (430,), Status.INCONCLUSIVE, Reason.UNSETTLED),  # 300 MiB could hide
    ],
)
def test_memory(before: Sequence[float], after: Sequence[float], status: Status, reason: Reason) -> None:
    """Memory regresses when every trial is above every stored one by 3 % and by 6 MiB."""
    mib = {MEMORY: [MIB * value for value in before]}, {MEMORY: [MIB * value for value in after]}
    row = decide_row(MEMORY, before=mib[0], after=mib[1])
    assert (row.status, row.reason) == (status, reason)


def test_what_would_be_noticed_is_the_threshold_and_the_spread_before() -> None:
    """3 % of 405 MiB and 10 MiB between the stored trials: 22.15 of 405 MiB."""
    before = {MEMORY: [MIB * value for value in (400, 410)]}
    row = decide_row(MEMORY, before=before, after={MEMORY: [MIB * 405]})
    assert row.change is not None
    assert row.change.detectable == pytest.approx(22.15 / 405)


def test_doubled_memory_is_a_regression() -> None:
    """Twice the peak with a noisy baseline: 100 % worse."""
    before = {MEMORY: [MIB * value for value in (400, 402, 401)]}
    verdict = decide(Situation(before=before, after={MEMORY: [MIB * 802]}))
    assert verdict.outcome is Outcome.REGRESSION
    assert find_row(verdict, MEMORY).change.centre == pytest.approx(1.0)  # type: ignore[union-attr] # judged


def test_memory_ratio_does_not_fail_for_a_leaner_eager() -> None:
    """The ratio does not regress if eager uses less; that its calls take twice as long is another matter."""
    latency = Metric.EAGER_LATENCY
    before = {MEMORY: [MIB * 400] * 3, RATIO: [0.8] * 3, latency: [0.01] * 3}
    row = decide_row(RATIO, before=before, after={MEMORY: [MIB * 400], RATIO: [1.0], latency: [0.02]})
    assert (row.status, row.reason) == (Status.UNCHANGED, Reason.LEADER_STANDS)
    ending = "peak memory itself is within its threshold (eager changed by -20.0 %)."
    assert describe_comparison(row) == f"0.800x -> 1.00x (larger): {ending}"


@pytest.mark.parametrize("peak", [400, 403, 380])
def test_memory_ratio_does_not_improve_for_a_fatter_eager(peak: int) -> None:
    """The ratio improves only if compiled memory falls."""
    before = {MEMORY: [MIB * 402] * 3, RATIO: [0.9] * 3}
    ratio = 0.9 * peak / 402 / 1.5
    row = decide_row(RATIO, before=before, after={MEMORY: [MIB * peak], RATIO: [ratio]})
    assert (row.status == Status.IMPROVED) == (peak == 380)
    if peak != 380:
        assert describe_comparison(row).endswith(
            "peak memory itself did not improve by its threshold (eager changed by +50.0 %)."
        )


def test_memory_ratio_fails_with_its_peak() -> None:
    """The ratio regresses if compiled memory does."""
    before = {MEMORY: [MIB * 400] * 3, RATIO: [0.8] * 3}
    row = decide_row(RATIO, before=before, after={MEMORY: [MIB * 500], RATIO: [1.0]})
    assert row.status is Status.REGRESSED


def test_five_percent_more_calls_are_a_regression() -> None:
    """6 % more Python calls regress by one trial."""
    calls = Metric.COMPILE_CALLS
    before = {calls: (1.0000e6, 1.0004e6, 1.0009e6)}
    assert decide_row(calls, before=before, after={calls: (1.061e6,)}).status is Status.REGRESSED
    assert decide_row(calls, before=before, after={calls: (1.040e6,)}).status is Status.UNCHANGED


@pytest.mark.parametrize(
    ("ratio", "peak", "expected"),
    [
        (Status.REGRESSED, None, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (Status.UNCHANGED, Status.UNCHANGED, (Status.UNCHANGED, Reason.BEYOND_BAR)),
        (Status.REGRESSED, Status.IMPROVED, (Status.UNCHANGED, Reason.LEADER_STANDS)),
        (Status.IMPROVED, None, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (Status.IMPROVED, Status.UNCHANGED, (Status.UNCHANGED, Reason.LEADER_STANDS)),
        (Status.IMPROVED, Status.INCONCLUSIVE, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (Status.IMPROVED, Status.IMPROVED, (Status.IMPROVED, Reason.BEYOND_BAR)),
        (Status.REGRESSED, Status.INCONCLUSIVE, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (Status.REGRESSED, Status.REGRESSED, (Status.REGRESSED, Reason.BEYOND_BAR)),
        (Status.INCONCLUSIVE, Status.REGRESSED, (Status.INCONCLUSIVE, Reason.BEYOND_BAR)),
    ],
)
def test_memory_ratio_goes_as_far_as_its_peak(
    ratio: Status, peak: Status | None, expected: tuple[Status, Reason]
) -> None:
    """The ratio regresses or improves only as the compiled peak does."""
    statuses = {metric: status for metric, status in ((RATIO, ratio), (MEMORY, peak)) if status}
    findings = {
        metric: Comparison(
            case_id="m/x", metric=metric, decides=True, status=status, reason=Reason.BEYOND_BAR
        )
        for metric, status in statuses.items()
    }
    row = follow_leaders(findings)[RATIO]
    assert (row.status, row.reason) == expected


@pytest.mark.parametrize(
    ("ratio", "leader", "expected", "more_pairs"),
    [
        ((Status.REGRESSED, Reason.BEYOND_BAR), Status.REGRESSED, (Status.REGRESSED, Reason.BEYOND_BAR), 7),
        (
            (Status.INCONCLUSIVE, Reason.UNSETTLED),
            Status.REGRESSED,
            (Status.INCONCLUSIVE, Reason.UNSETTLED),
            7,
        ),
        (
            (Status.INCONCLUSIVE, Reason.FEW_TRIALS),
            Status.UNCHANGED,
            (Status.INCONCLUSIVE, Reason.FEW_TRIALS),
            7,
        ),
        ((Status.REGRESSED, Reason.BEYOND_BAR), None, (Status.INCONCLUSIVE, Reason.UNSETTLED), None),
        (
            (Status.REGRESSED, Reason.BEYOND_BAR),
            Status.INCONCLUSIVE,
            (Status.INCONCLUSIVE, Reason.UNSETTLED),
            5,
        ),
        (
            (Status.REGRESSED, Reason.BEYOND_BAR),
            Status.UNCHANGED,
            (Status.UNCHANGED, Reason.LEADER_STANDS),
            None,
        ),
        (
            (Status.INCONCLUSIVE, Reason.UNSETTLED),
            Status.UNCHANGED,
            (Status.UNCHANGED, Reason.LEADER_STANDS),
            None,
        ),
        (
            (Status.IMPROVED, Reason.BEYOND_BAR),
            Status.REGRESSED,
            (Status.UNCHANGED, Reason.LEADER_STANDS),
            None,
        ),
    ],
)
def test_a_ratio_needs_as_many_pairs_as_its_leader(
    ratio: tuple[Status, Reason],
    leader: Status | None,
    expected: tuple[Status, Reason],
    more_pairs: int | None,
) -> None:
    """A ratio that keeps its status keeps its 7 pairs; one that is open with its leader needs its 5."""
    status, reason = ratio
    row = make_row("m/x", RATIO, status, reason=reason, more_pairs=7)
    leader_row = make_row("m/x", MEMORY, leader, more_pairs=5) if leader else None
    followed = follow_leader(row, leader_row)
    assert (state(followed), followed.more_pairs) == (expected, more_pairs)


@pytest.mark.parametrize(
    ("ratio", "leader", "eager", "expected"),
    [
        pytest.param(0.25, 0.0, None, -0.2, id="eager needs a fifth less"),
        pytest.param(-0.5, -0.25, None, 0.5, id="eager needs half as much again"),
        pytest.param(0.25, 0.0, 0.1, 0.1, id="eager was measured"),
        pytest.param(None, None, 0.1, 0.1, id="eager alone was measured"),
        pytest.param(None, 0.0, None, None, id="no change of the ratio"),
        pytest.param(0.25, None, None, None, id="no change of its leader"),
        pytest.param(-1.0, 0.0, None, None, id="the ratio is zero"),
        pytest.param(0.25, -1.0, None, None, id="its leader is zero"),
    ],
)
def test_a_ratio_that_its_leader_does_not_explain_names_eagers_change(
    ratio: float | None, leader: float | None, eager: float | None, expected: float | None
) -> None:
    """Eager moved as its own comparison says, or by what the ratio moved less than its leader."""
    rows = [
        make_row("m/x", metric, status, change=None if centre is None else make_change(centre))
        for metric, status, centre in (
            (RATIO, Status.REGRESSED, ratio),
            (MEMORY, Status.UNCHANGED, leader),
            (Metric.EAGER_LATENCY, Status.UNCHANGED, eager),
        )
    ]
    followed = follow_leader(*rows)
    changes = [(fact.code, fact.numbers["change"]) for fact in followed.remarks]
    assert changes == ([(Code.EAGER_CHANGED, pytest.approx(expected))] if expected is not None else [])


STANDS = (Status.UNCHANGED, Reason.LEADER_STANDS)


@pytest.mark.parametrize(
    ("misses", "calls", "is_explained"),
    [
        (1.0, Status.IMPROVED, True),
        (1.0, Status.REGRESSED, False),
        (1.0, Status.INCONCLUSIVE, False),
        (-1.0, Status.REGRESSED, True),
        (-1.0, Status.INCONCLUSIVE, True),
        (-1.0, Status.IMPROVED, False),
        (0.0, Status.IMPROVED, False),
        (0.0, Status.REGRESSED, False),
        (None, Status.REGRESSED, False),
        (None, Status.IMPROVED, False),
    ],
)
def test_calls_stand_where_the_caches_explain_their_direction(
    misses: float | None, calls: Status, *, is_explained: bool
) -> None:
    """More misses explain fewer calls, and fewer misses more calls; unknown misses explain none."""
    row = make_row("m/x", Metric.COMPILE_CALLS, calls)
    change = None if misses is None else make_change(misses)
    findings = {
        row.metric: row,
        Metric.CACHE_MISSES: make_row("m/x", Metric.CACHE_MISSES, Status.UNCHANGED, change=change),
    }
    followed = follow_leaders(findings)[row.metric]
    assert state(followed) == (STANDS if is_explained else state(row))
    assert follow_leaders({row.metric: row})[row.metric] == row


@pytest.mark.parametrize(
    ("cuts", "graphs", "expected"),
    [
        (None, Status.REGRESSED, (Status.REGRESSED, Reason.BEYOND_BAR)),
        (Status.REGRESSED, Status.REGRESSED, (Status.REGRESSED, Reason.BEYOND_BAR)),
        (Status.IMPROVED, Status.REGRESSED, STANDS),
        (Status.UNCHANGED, Status.IMPROVED, STANDS),
        (Status.UNCHANGED, None, None),
    ],
)
def test_graphs_move_only_with_what_cuts_them_where_its_places_were_counted(
    cuts: Status | None, graphs: Status | None, expected: tuple[Status, Reason] | None
) -> None:
    """Breaks that were counted by place say whether there are more graphs."""
    remarks = (Fact(code=Code.BY_PLACE),) if cuts else ()
    rows: dict[Metric, Any] = {BREAKS: make_row("m/x", BREAKS, cuts or Status.UNCHANGED, remarks=remarks)}
    if graphs:
        rows[Metric.UNIQUE_GRAPHS] = make_row("m/x", Metric.UNIQUE_GRAPHS, graphs)
    followed = follow_leaders(rows).get(Metric.UNIQUE_GRAPHS)
    assert (followed and state(followed)) == expected


@pytest.mark.parametrize(
    ("misses", "calls", "status"),
    [
        ((0.0, 2.0), (1_400_000.0, 520_000.0), Status.UNCHANGED),  # it misses, and so counts fewer
        ((2.0, 0.0), (520_000.0, 1_400_000.0), Status.UNCHANGED),  # the fix of that is no regression
        ((0.0, 2.0), (520_000.0, 1_400_000.0), Status.REGRESSED),
        ((2.0, 0.0), (1_400_000.0, 520_000.0), Status.IMPROVED),
        ((0.0, 0.0), (520_000.0, 1_400_000.0), Status.REGRESSED),
    ],
)
def test_calls_that_the_caches_move_are_no_change(
    misses: tuple[float, float], calls: tuple[float, float], status: Status
) -> None:
    """Fewer calls after cache misses are UNCHANGED."""
    before, after = (
        {Metric.CACHE_MISSES: (misses[side],), Metric.COMPILE_CALLS: (calls[side],)} for side in (0, 1)
    )
    row = decide_row(Metric.COMPILE_CALLS, before=before, after=after)
    assert row.status is status
    assert (row.reason is Reason.LEADER_STANDS) == (status is Status.UNCHANGED)
