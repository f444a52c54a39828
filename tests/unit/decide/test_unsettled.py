"""Cases that need more pairs, and their order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gate.check.schedule import rank_suspect
from gate.decide.constants import LOOKS
from gate.decide.judge.counted import Repeats
from gate.decide.judge.pairs import Screened
from gate.decide.side_by_side import decide_side_by_side, gather_judged, judge_pairs, list_unsettled
from gate.decide.suspects import Suspect
from gate.metrics import DECIDING, LEADING
from gate.records.cases import Metric, Override, Policy, Quarantine
from gate.records.run import Run, Shard
from gate.records.verdict import Reason, Status
from tests.make import POLICY, TODAY, PairedCase, find_row, make_acceptance, pair_up

from .one_case import BREAKS, CASE, COLD, LATENCY, WARM, fail

CALLS = Metric.COMPILE_CALLS


def test_plan_without_pairs_asks_for_everything() -> None:
    """The first pair measures all metrics that decide."""
    (asked,) = list_unsettled(pair_up(PairedCase(pairs=0)), POLICY)
    assert asked == Suspect(case_id=CASE, metrics=DECIDING)


def test_one_pair_settles_no_time_and_three_that_agree_settle_all() -> None:
    """One pair settles no time, since compiles vary by 20 %; three that agree do."""
    assert list_unsettled(pair_up(PairedCase(pairs=1)), POLICY) == (
        Suspect(case_id=CASE, metrics=(LATENCY, COLD, WARM)),
    )
    assert list_unsettled(pair_up(PairedCase(pairs=3)), POLICY) == ()


def test_changed_counter_asks_for_another_pair() -> None:
    """Six pairs settle the latency; a break in the only full pair needs another one."""
    run = pair_up(PairedCase(pairs=6, full=1, head={BREAKS: 1.0}))
    assert list_unsettled(run, POLICY) == (Suspect(case_id=CASE, metrics=(COLD, WARM, BREAKS)),)


def test_only_the_suspects_are_asked_about() -> None:
    """Only suspects get pairs, for their own metrics."""
    suspects = (Suspect(case_id=CASE, metrics=(COLD,)),)
    run = pair_up(PairedCase(pairs=0), PairedCase(pairs=0, case_id="b/x"))
    assert list_unsettled(run, POLICY, suspects) == suspects
    assert list_unsettled(run, POLICY, ()) == ()


def test_last_look_ends_it() -> None:
    """After the last look an open case gets no pair."""
    run = pair_up(PairedCase(pairs=LOOKS[-1], full=3, head={LATENCY: 0.0103}, spread=(0.05, -0.05) * 8))
    assert find_row(decide_side_by_side(run, POLICY), LATENCY).reason is Reason.UNSETTLED
    assert list_unsettled(run, POLICY) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"base_definition": ""},
        {"base_definition": "d0"},
        {"failures": (fail("base"),)},
        {"failures": (fail("head"),)},
    ],
    ids=["unknown to the base", "defined otherwise", "base failed", "head failed"],
)
def test_no_more_pairs_where_none_can_help(changes: dict[str, Any]) -> None:
    """What cannot be compared gets no pair."""
    assert list_unsettled(pair_up(PairedCase(pairs=0, **changes)), POLICY) == ()


def test_more_cases_share_the_error_budget() -> None:
    """Each of 41 cases has a 41st of the budget; one has three times and a memory, and six looks convict."""
    suspect = PairedCase(pairs=4, full=1)
    others = [PairedCase(pairs=4, case_id=f"m{n}/x", full=1) for n in range(40)]
    alone, crowd = (gather_judged(pair_up(*cases), POLICY)[1] for cases in ((suspect,), (suspect, *others)))
    assert crowd.alpha == pytest.approx(alone.alpha / 41)
    assert alone.counts.alpha == pytest.approx(POLICY.error_budget / 4)
    assert alone.alpha == pytest.approx(POLICY.error_budget / 4 / 6)


def test_nothing_asked_leaves_the_budget_whole() -> None:
    """Without a suspect there is one comparison at least, at six looks."""
    rules = gather_judged(pair_up(PairedCase(pairs=0)), POLICY, ())[1]
    assert rules.alpha == pytest.approx(POLICY.error_budget / 6)


def test_a_shard_leaves_the_other_cases_their_part_of_the_budget() -> None:
    """A shard's cases have the budget that they have in the joined run."""
    cases = [PairedCase(pairs=4, case_id=f"m{n}/x", full=1) for n in range(8)]
    asked, *others = (Suspect(case_id=f"m{n}/x", metrics=LEADING) for n in (0, *range(2, 8)))
    asked = replace(asked, metrics=(LATENCY,))
    part = replace(pair_up(*cases[:2]), shard=Shard(number=1, of=4, cases=8))
    (_, alone), (_, joined) = (
        gather_judged(run, POLICY, suspects)
        for run, suspects in ((part, [asked]), (pair_up(*cases), [asked, *others]))
    )
    assert alone.alpha == joined.alpha


def test_what_looks_worst_goes_first_and_on_to_the_look_that_settles() -> None:
    """Order: counts, begun cases, the largest doubt, the fewest pairs, then convicted cases.

    Cost does not count. Cases that import nothing changed come last unless stored values make them suspect.
    """
    candidates = {
        "convicted": (
            4,
            Suspect(case_id="convicted", metrics=(COLD,), screened=Screened(doubt=9.0), convicted=True),
        ),
        "new": (0, Suspect(case_id="new", metrics=(BREAKS,))),
        "again": (1, Suspect(case_id="again", metrics=(LATENCY, BREAKS))),
        "flickers": (2, Suspect(case_id="flickers", metrics=(BREAKS,), screened=Screened(doubt=0.4))),
        "many": (6, Suspect(case_id="many", metrics=(LATENCY,), screened=Screened(doubt=5.0))),
        "few": (3, Suspect(case_id="few", metrics=(LATENCY,), screened=Screened(doubt=1.0))),
        "begun": (1, Suspect(case_id="begun", metrics=(LATENCY,), screened=Screened(doubt=0.5))),
        "mild": (0, Suspect(case_id="mild", metrics=(LATENCY,), screened=Screened(doubt=1.1))),
        "worst": (0, Suspect(case_id="worst", metrics=(LATENCY,), screened=Screened(doubt=3.0))),
        "dear": (0, Suspect(case_id="dear", metrics=(COLD,), screened=Screened(doubt=4.0))),
        "untouched": (1, Suspect(case_id="untouched", metrics=(LATENCY,))),
        "doubted": (6, Suspect(case_id="doubted", metrics=(LATENCY,), screened=Screened(doubt=0.1))),
    }

    def rank(name: str) -> tuple[float, ...]:
        pairs, suspect = candidates[name]
        seconds = 90.0 if name == "dear" else 30.0
        return rank_suspect(suspect, pairs, seconds, untouched=name in {"untouched", "doubted"})

    counted = ["new", "again"]  # a count gets its second look before any time gets another pair
    expected = [
        *counted,
        "begun",
        "flickers",
        "dear",
        "worst",
        "mild",
        "few",
        "many",
        "doubted",
        "untouched",
        "convicted",
    ]
    assert sorted(candidates, key=rank) == expected


def test_a_convicted_case_needs_no_more_pairs() -> None:
    """Latency regresses by six pairs, so the compile of the one full pair waits."""
    run = pair_up(PairedCase(pairs=6, full=1, head={LATENCY: 0.013, COLD: 20.0}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD))
    assert list_unsettled(run, POLICY, [suspect]) == ()
    (asked,) = list_unsettled(run, POLICY, [replace(suspect, thorough=True)])
    assert (asked.metrics, asked.convicted) == ((COLD,), True)


@pytest.mark.parametrize(
    ("slower", "thorough", "times"),
    [(1.3, False, 1), (0.946, False, 1), (0.926, False, 2), (0.9, False, 2), (1.3, True, 2)],
)
def test_no_compile_is_timed_while_calls_look_slower(slower: float, *, thorough: bool, times: int) -> None:
    """After one pair 30 % slower two more without compiles convict; so after 4.5 %, but not 2.3 %."""
    run, policy = two_cases(head=slower, pairs=1)
    suspect = Suspect(case_id="loud/x", metrics=(LATENCY, COLD), thorough=thorough)
    (asked,) = list_unsettled(run, policy, [suspect])
    assert len({LATENCY, COLD}.intersection(asked.metrics)) == times


@pytest.mark.parametrize(
    ("slower", "thorough", "pairs", "head", "expected"),
    [
        pytest.param(True, False, 0, {}, [(LATENCY, BREAKS)], id="first pair"),
        pytest.param(False, False, 0, {}, [(LATENCY, COLD, BREAKS, CALLS)], id="not surely slower"),
        pytest.param(True, True, 0, {}, [(LATENCY, COLD, BREAKS, CALLS)], id="thorough"),
        pytest.param(True, False, 3, {}, [(COLD, CALLS)], id="pairs show no slower calls"),
        pytest.param(True, False, 3, {LATENCY: 0.013}, [], id="convicted"),
    ],
)
def test_compiles_wait_where_stored_values_see_slower_calls(
    *,
    slower: bool,
    thorough: bool,
    pairs: int,
    head: dict[Metric, float],
    expected: list[tuple[Metric, ...]],
) -> None:
    """Compiles are timed after three pairs that convict nothing; Python calls are counted then."""
    run = pair_up(PairedCase(pairs=pairs, full=0, head=head))
    metrics = (LATENCY, COLD, BREAKS, CALLS)
    suspect = Suspect(case_id=CASE, metrics=metrics, screened=Screened(slower=slower), thorough=thorough)
    assert [left.metrics for left in list_unsettled(run, POLICY, [suspect])] == expected


def test_a_first_pair_measures_what_is_asked_for() -> None:
    """Python calls are not counted with a compile that did not wait."""
    screened = Screened(slower=True)
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD), screened=screened, thorough=True)
    assert [left.metrics for left in list_unsettled(pair_up(PairedCase(pairs=0)), POLICY, [suspect])] == [
        (LATENCY, COLD)
    ]


def test_calls_of_a_compile_that_waited_are_counted_with_it() -> None:
    """Stored values showed them the same, so only the cold compile is suspect."""
    run = pair_up(PairedCase(pairs=3, full=0))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD), screened=Screened(slower=True))
    assert [left.metrics for left in list_unsettled(run, POLICY, [suspect])] == [(COLD, CALLS)]


def test_a_first_conviction_can_end_the_search() -> None:
    """With fail_fast an open case gets no more pairs once another regressed."""
    run, policy = two_cases(pairs=1)
    suspects = [Suspect(case_id=name, metrics=(LATENCY,)) for name in ("calm/x", "loud/x")]
    assert [suspect.case_id for suspect in list_unsettled(run, policy, suspects)] == ["loud/x"]
    assert list_unsettled(run, policy, suspects, fail_fast=True) == ()
    run, policy = two_cases(slower=1.0, pairs=1)
    assert len(list_unsettled(run, policy, suspects, fail_fast=True)) == 1


@pytest.mark.parametrize(("pairs", "expected"), [(1, [(LATENCY,)]), (2, [(LATENCY,)]), (3, [])])
def test_a_convicted_case_goes_on_until_its_latency_had_three_pairs(
    pairs: int, expected: list[tuple[Metric, ...]]
) -> None:
    """A graph break convicts with the first pair; the latency is measured in three."""
    spread = (0.03, -0.03, 0.02)
    run = pair_up(PairedCase(pairs=pairs, spread=spread, head={BREAKS: 1.0}))
    screened = Screened(seen={BREAKS: Status.REGRESSED})
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, BREAKS), screened=screened)
    unsettled = list_unsettled(run, POLICY, [suspect])
    assert [(left.metrics, left.convicted) for left in unsettled] == [(metrics, True) for metrics in expected]


@pytest.mark.parametrize(
    ("pairs", "full", "head", "open_metrics"),
    [
        (2, 2, {BREAKS: 1.0, COLD: 20.0}, {LATENCY, COLD}),
        (2, 2, {BREAKS: 1.0, COLD: 20.0, LATENCY: 0.013}, {LATENCY}),
        (3, 2, {BREAKS: 1.0, COLD: 20.0, LATENCY: 0.030}, set()),
        (3, 3, {BREAKS: 1.0, COLD: 20.0}, set()),
        (6, 3, {BREAKS: 1.0, LATENCY: 0.013}, set()),
        (3, 2, {BREAKS: 1.0, LATENCY: 0.0102}, {LATENCY, COLD}),
        (3, 3, {BREAKS: 1.0, COLD: 11.5}, set()),
    ],
)
def test_compiles_of_a_case_that_counts_alone_convict_are_timed_in_three_pairs(
    pairs: int, full: int, head: Mapping[Metric, float], open_metrics: set[Metric]
) -> None:
    """Three compiles show what a break costs; none is timed if calls regressed too, or look as if."""
    spread = (0.03, -0.03, 0.02, 0.0, 0.01, -0.01)
    run = pair_up(PairedCase(pairs=pairs, full=full, spread=spread, head=head))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD, BREAKS))
    unsettled = list_unsettled(run, POLICY, [suspect])
    assert {metric for left in unsettled for metric in left.metrics} == open_metrics


@pytest.mark.parametrize(
    ("pairs", "open_metrics"),
    [(2, {LATENCY}), (3, {LATENCY, COLD, CALLS}), (6, {LATENCY, COLD, CALLS})],
)
def test_a_compile_that_waited_for_slower_calls_is_timed_though_memory_convicts(
    pairs: int, open_metrics: set[Metric]
) -> None:
    """The first pairs were for calls and memory alone; once calls look no slower, its turn has come."""
    spread = (0.09, -0.09, 0.06, 0.0, 0.0, 0.0)
    head = {LATENCY: 0.0112, Metric.MEMORY_GROWTH: 1e6}
    run = pair_up(PairedCase(pairs=pairs, spread=spread, base={Metric.MEMORY_GROWTH: 0.0}, head=head))
    kept = (LATENCY, Metric.EAGER_LATENCY, Metric.MEMORY_GROWTH)
    trials = tuple(
        replace(trial, samples={metric: trial.samples[metric] for metric in kept}) for trial in run.trials
    )
    suspect = Suspect(
        case_id=CASE, metrics=(LATENCY, COLD, Metric.MEMORY_GROWTH), screened=Screened(slower=True)
    )
    unsettled = list_unsettled(replace(run, trials=trials), POLICY, [suspect])
    assert [left.convicted for left in unsettled] == [True]
    assert {metric for left in unsettled for metric in left.metrics} == open_metrics


@pytest.mark.parametrize(
    "rules",
    [
        {"acceptances": (make_acceptance(LATENCY, 0.5, case=CASE),)},
        {"quarantine": (Quarantine(case=CASE, metric=LATENCY, owner="a", reason="b", expires=TODAY),)},
    ],
    ids=["accepted", "quarantined"],
)
def test_what_decides_nothing_convicts_nobody(rules: dict[str, Any]) -> None:
    """With slower calls accepted or quarantined the compile is measured on."""
    run = pair_up(PairedCase(pairs=6, full=1, head={LATENCY: 0.013, COLD: 20.0}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD))
    (asked,) = list_unsettled(run, replace(POLICY, **rules), [suspect])
    assert (asked.metrics, asked.convicted) == ((COLD,), False)


@pytest.mark.parametrize(("head", "convicted"), [({BREAKS: 1.0}, True), ({COLD: 20.0}, False)])
def test_a_count_convicts_though_nobody_asked_for_it(
    head: Mapping[Metric, float], *, convicted: bool
) -> None:
    """A time that was not asked for got no pairs of its own, and convicts nobody."""
    run = pair_up(PairedCase(pairs=4, full=3, spread=(0.1, -0.1, 0.01, 0.03), head=head))
    suspects = [Suspect(case_id=CASE, metrics=(LATENCY, WARM), thorough=True)]
    (asked,) = list_unsettled(run, POLICY, suspects)
    assert asked.convicted is convicted


@pytest.mark.parametrize(("seen", "expected"), [({BREAKS: Status.REGRESSED}, []), ({}, [(BREAKS,)])])
def test_what_stored_values_convict_is_seen_twice_by_one_pair(
    seen: Mapping[Metric, Status], expected: list[tuple[Metric, ...]]
) -> None:
    """A counter convicted by the screen needs one pair."""
    run = pair_up(PairedCase(pairs=1, head={BREAKS: 1.0}))
    suspect = Suspect(case_id=CASE, metrics=(BREAKS,), screened=Screened(seen=seen))
    assert [left.metrics for left in list_unsettled(run, POLICY, [suspect])] == expected


@pytest.mark.parametrize(
    ("counted", "head", "stands"),
    [({BREAKS: 1.0}, 1.0, True), ({BREAKS: 2.0}, 1.0, False), ({}, 1.0, False), ({BREAKS: 1.0}, 0.0, True)],
)
def test_the_same_count_in_trial_and_pair_is_certain(
    counted: Mapping[Metric, float], head: float, stands: bool
) -> None:
    """The same count in trial and pair, above the base's 0, is certain; another count needs a second pair."""
    run = pair_up(PairedCase(pairs=1, head={BREAKS: head}))
    suspect = Suspect(case_id=CASE, metrics=(BREAKS,), screened=Screened(seen=counted))
    assert (list_unsettled(run, POLICY, [suspect]) == ()) is stands


@pytest.mark.parametrize(
    ("otherwise", "thorough", "expected"),
    [
        ({}, False, []),
        ({"slower": 1.0}, False, ["loud/x"]),
        ({"head": 1.2}, False, ["loud/x"]),
        ({"head": 1.045}, False, ["loud/x"]),
        ({"head": 1.02}, False, []),
        ({"pairs": 1}, False, ["loud/x"]),
        ({"pairs": 0}, False, ["loud/x"]),
        ({"cold": 1.2}, False, ["loud/x"]),
        ({}, True, ["loud/x"]),
    ],
    ids=[
        "waits",
        "nothing is red",
        "looks slower",
        "by 5 %",
        "by 2.5 %",
        "one pair",
        "no pair",
        "compiles look longer",
        "thorough",
    ],
)
def test_a_case_that_looks_no_slower_waits_once_another_is_convicted(
    otherwise: dict[str, Any], thorough: bool, expected: list[str]
) -> None:
    """Six pairs convict the loud case; the calm one, whose pairs vary by 10 %, waits."""
    run, policy = two_cases(**otherwise)
    metrics = (LATENCY, COLD)
    suspects = [Suspect(case_id=name, metrics=metrics, thorough=thorough) for name in ("calm/x", "loud/x")]
    case_ids = [suspect.case_id for suspect in list_unsettled(run, policy, suspects) if not suspect.convicted]
    assert case_ids == expected


@pytest.mark.parametrize(("pairs", "expected"), [(3, []), (1, [(LATENCY, COLD)])])
def test_what_looks_slower_by_just_its_threshold_looks_no_slower(
    pairs: int, expected: list[tuple[Metric, ...]]
) -> None:
    """It waits once another case is convicted, and its compile is timed beside its calls."""
    run, policy = two_cases(head=1.045, pairs=pairs)
    changes = {(row.case_id, row.metric): row.change for row in judge_pairs(run, policy)}
    change = changes["loud/x", LATENCY]
    assert change is not None
    override = Override(case="loud/x", metric=LATENCY, reason="just so", relative=change.centre)
    suspects = [Suspect(case_id=name, metrics=(LATENCY, COLD)) for name in ("calm/x", "loud/x")]
    unsettled = list_unsettled(run, replace(policy, overrides=(override,)), suspects)
    assert [suspect.metrics for suspect in unsettled if not suspect.convicted] == expected


def two_cases(
    *, slower: float = 1.3, pairs: int = 3, head: float = 1.0, cold: float = 1.0
) -> tuple[Run, Policy]:
    """A calm case with six pairs, a loud one, each slower by a factor; and the policy."""
    calm = PairedCase(case_id="calm/x", head={LATENCY: 0.010 * slower})
    wild = (0.10, -0.10, 0.01)
    loud = PairedCase(
        case_id="loud/x", pairs=pairs, head={LATENCY: 0.010 * head, COLD: 10.0 * cold}, spread=wild
    )
    return pair_up(calm, loud), POLICY


def test_a_convicted_case_says_so_where_more_of_it_is_open() -> None:
    """A case that regressed by six pairs is marked as convicted while a counter is open."""
    run = pair_up(PairedCase(pairs=6, full=1, head={LATENCY: 0.013, BREAKS: 1.0}))
    (asked,) = list_unsettled(run, POLICY)
    assert (asked.metrics, asked.convicted) == ((COLD, WARM, BREAKS), True)


def test_cases_that_get_no_pair_take_no_part_of_the_error_budget() -> None:
    """Twenty new cases do not share the budget of the one that has a base."""
    new = [PairedCase(pairs=0, case_id=f"new/{number}", base_definition="") for number in range(20)]
    run = pair_up(PairedCase(pairs=4, head={LATENCY: 0.0106}), *new)
    suspects = [Suspect(case_id=case.id, metrics=(LATENCY, COLD)) for case in run.cases]
    (old,) = (row for row in judge_pairs(run, POLICY, suspects) if row.metric is LATENCY and row.pairs)
    assert old.status is Status.REGRESSED


def test_what_got_better_in_a_pair_asks_for_no_further_one() -> None:
    """A check needs no second pair of an improvement; ``ab`` does."""
    run = pair_up(PairedCase(pairs=6, full=1, base={BREAKS: 1.0}, head={BREAKS: 0.0}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY,))
    assert list_unsettled(run, POLICY, [suspect]) == ()
    (asked,) = list_unsettled(run, POLICY, [replace(suspect, thorough=True)])
    assert asked.metrics == (BREAKS,)


@pytest.mark.parametrize(
    ("metric", "base", "head", "seen", "expected"),
    [
        (BREAKS, 1.0, 0.0, {BREAKS: Status.REGRESSED}, [(BREAKS,)]),  # stored values show it worse
        (Metric.DRIFT, 0.1, 0.7, {}, [(Metric.DRIFT,)]),
        (Metric.COMPILE_PEAK_MEMORY, 1e9, 2e9, {}, []),  # decides nothing
    ],
)
def test_what_one_pair_shows_otherwise_is_counted_again(
    metric: Metric,
    base: float,
    head: float,
    seen: Mapping[Metric, Status],
    expected: list[tuple[Metric, ...]],
) -> None:
    """What got worse, unasked, or better than stored values show, where it decides."""
    run = pair_up(PairedCase(pairs=1, base={metric: base}, head={metric: head}))
    suspect = Suspect(case_id=CASE, metrics=(BREAKS,), screened=Screened(seen=seen))
    assert [left.metrics for left in list_unsettled(run, POLICY, [suspect])] == expected


@pytest.mark.parametrize(("pairs", "expected"), [(13, [(LATENCY,)]), (16, [])])
def test_after_sixteen_pairs_none_is_asked_for(pairs: int, expected: list[tuple[Metric, ...]]) -> None:
    """Calls 2.9 % slower are open with any number of pairs."""
    run = pair_up(PairedCase(pairs=pairs, head={LATENCY: 0.01029}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY,))
    assert [left.metrics for left in list_unsettled(run, POLICY, [suspect])] == expected


def test_what_is_stored_tells_which_counts_flicker() -> None:
    """Stored breaks of unchanged code differed, so those of pairs may."""
    screened = Screened(repeats={BREAKS: Repeats(differs=True)})
    suspects = [Suspect(case_id=CASE, metrics=(LATENCY,), screened=screened)]
    assert gather_judged(pair_up(PairedCase()), POLICY, suspects)[1].counts.varied == {BREAKS}
    assert gather_judged(pair_up(PairedCase()), POLICY)[1].counts.varied == frozenset()


def test_pairs_judge_all_that_was_asked_for_and_every_count() -> None:
    """Without suspects all that was measured; with one its times, and counts and memory."""
    run = pair_up(PairedCase())
    counts = {CALLS, BREAKS, Metric.PEAK_MEMORY}
    times = {LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP, COLD, WARM, Metric.BREAK_EVEN_CALLS}
    assert {row.metric for row in judge_pairs(run, POLICY)} == counts | times
    suspects = [Suspect(case_id=CASE, metrics=(LATENCY,))]
    assert {row.metric for row in judge_pairs(run, POLICY, suspects)} == counts | {LATENCY}


@pytest.mark.parametrize(
    ("paired_cases", "tests"),
    [
        ([PairedCase()], 4),
        ([PairedCase(), PairedCase(case_id="mlp/y")], 8),
        ([PairedCase(), PairedCase(case_id="mlp/y", full=0)], 6),
        ([PairedCase(full=0)], 1),
    ],
)
def test_the_error_budget_is_for_the_times_that_pairs_measured(
    paired_cases: list[PairedCase], tests: int
) -> None:
    """Three times a case, or the latency alone; and memory of each case where it was measured at all."""
    rules = gather_judged(pair_up(*paired_cases), POLICY)[1]
    assert rules.counts.alpha == pytest.approx(0.01 / tests)
