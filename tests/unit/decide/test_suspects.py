"""Which cases need pairs, and what pairs make of a screening."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide import (
    LOOKS,
    PairEffort,
    Screening,
    Suspect,
    conclude_verdict,
    confirm_screening,
    decide_side_by_side,
    decide_verdict,
    judge_pairs,
    list_suspects,
    list_unsettled,
    order_unsettled,
    screen_run,
)
from gate.records import (
    Acceptance,
    Baseline,
    CaseFailure,
    CodeIdentity,
    Comparison,
    Conditions,
    Environment,
    FailureKind,
    Metric,
    Outcome,
    Pairing,
    Policy,
    Provenance,
    Reason,
    Run,
    Status,
    Tally,
    Verdict,
    make_text,
)
from tests.told import tell_notes, tell_row, tell_steps

from .conftest import find_comparison

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM, BREAKS = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.GRAPH_BREAKS
CASE = "mlp/x"
MAIN = "main (1a2b3c4)"
TYPICAL = {EAGER: 0.020, LATENCY: 0.010, COLD: 10.0}
# Five stored values with a spread of about 1 %.
FIVE = (0.990, 1.000, 1.010, 1.005, 0.995)

Make = Callable[..., Any]
Pair = Callable[..., Run]
Find = Callable[..., Comparison]
Screen = Callable[..., Screening]
Confirm = Callable[..., Verdict]


def fail(arm: str) -> CaseFailure:
    return CaseFailure(
        case_id=CASE,
        trial=1,
        kind=FailureKind.ERROR,
        stage="build",
        told=make_text("ImportError: x"),
        arm=arm,
    )


def state(comparison: Comparison) -> tuple[Status, Reason]:
    return comparison.status, comparison.reason


def measure(**factors: float) -> dict[Metric, Sequence[float]]:
    """One trial that ran alone, some of its values so many times the typical one."""
    return {metric: (value * factors.get(metric, 1.0),) for metric, value in TYPICAL.items()}


def get_latency(screening: Screening) -> Comparison:
    (row,) = (one for one in screening.comparisons if one.metric is LATENCY)
    return row


@pytest.fixture
def screen(paired_case: Make, pair_run: Pair, policy: Policy, stored: Baseline) -> Screen:
    """The screening of one case against its stored values."""

    def run_screen(
        alone: object, *, baselines: tuple[Baseline, ...] = (stored,), **changes: object
    ) -> Screening:
        return screen_run(pair_run(paired_case(alone=alone, **changes)), baselines, policy)

    return run_screen


@pytest.fixture
def confirm(paired_case: Make, pair_run: Pair, policy: Policy, stored: Baseline) -> Confirm:
    """The verdict on one case that was screened and has its pairs."""

    def run_both(
        alone: object,
        *,
        baselines: tuple[Baseline, ...] = (stored,),
        rules: Policy = policy,
        **changes: object,
    ) -> Verdict:
        run = pair_run(paired_case(alone=alone, **changes))
        screening = confirm_screening(screen_run(run, baselines, rules), run, rules)
        return conclude_verdict(run, screening, rules)

    return run_both


@pytest.fixture
def stored(host: Environment) -> Baseline:
    values = {metric: tuple(value * one for one in FIVE) for metric, value in TYPICAL.items()}
    return Baseline(
        case_id=CASE,
        definition="d1",
        environment=host,
        provenance=Provenance(commit="old"),
        trials={**values, SPEEDUP: (2.0,) * len(FIVE)},
    )


@pytest.fixture
def unbroken(stored: Baseline) -> Baseline:
    """The stored values, and no graph break in any trial."""
    return replace(stored, trials={**stored.trials, BREAKS: (0.0,) * len(FIVE)})


# --- who needs pairs ---


def test_plan_without_pairs_asks_for_everything(paired_case: Make, pair_run: Pair, policy: Policy) -> None:
    """The first pair measures all that decides and is noisy."""
    (asked,) = list_unsettled(pair_run(paired_case(pairs=0)), policy)
    assert asked == Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY, COLD, WARM))


def test_one_pair_settles_no_time_and_three_that_agree_settle_all(
    paired_case: Make, pair_run: Pair, policy: Policy
) -> None:
    """What one compile took says too little: pairs of them vary by 20 %."""
    assert list_unsettled(pair_run(paired_case(pairs=1)), policy) == (
        Suspect(case_id=CASE, metrics=(LATENCY, COLD, WARM)),
    )
    assert list_unsettled(pair_run(paired_case(pairs=3)), policy) == ()


def test_changed_counter_asks_for_another_pair(paired_case: Make, pair_run: Pair, policy: Policy) -> None:
    """Six pairs settled the latency; the break was seen in the only full one, and compiles are no alibi."""
    run = pair_run(paired_case(pairs=6, full=1, head={BREAKS: 1.0}))
    assert list_unsettled(run, policy) == (Suspect(case_id=CASE, metrics=(COLD, WARM, BREAKS)),)


def test_only_the_suspects_are_asked_about(paired_case: Make, pair_run: Pair, policy: Policy) -> None:
    """Of two cases without pairs one is suspect, for its compile."""
    suspects = (Suspect(case_id=CASE, metrics=(COLD,)),)
    run = pair_run(paired_case(pairs=0), paired_case(pairs=0, case_id="b/x"))
    assert list_unsettled(run, policy, suspects) == suspects
    assert list_unsettled(run, policy, ()) == ()


def test_last_look_ends_it(paired_case: Make, pair_run: Pair, policy: Policy, find: Find) -> None:
    """Near the threshold after the last look: open, and no more pairs."""
    run = pair_run(paired_case(pairs=LOOKS[-1], full=3, head={LATENCY: 0.0103}, spread=(0.05, -0.05) * 8))
    assert find(decide_side_by_side(run, policy), LATENCY).reason is Reason.UNSETTLED
    assert list_unsettled(run, policy) == ()


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
def test_no_more_pairs_where_none_can_help(
    paired_case: Make, pair_run: Pair, policy: Policy, changes: dict[str, object]
) -> None:
    """What cannot be compared is not measured again."""
    assert list_unsettled(pair_run(paired_case(pairs=0, **changes)), policy) == ()


def test_more_cases_share_the_error_budget(
    paired_case: Make, pair_run: Pair, policy: Policy, find: Find
) -> None:
    """What three pairs confirm for one case alone they leave open among forty-one."""
    suspect = paired_case(pairs=3, head={LATENCY: 0.0108}, full=1)
    others = [paired_case(pairs=3, case_id=f"m{n}/x", full=1) for n in range(40)]
    alone = judge_pairs(pair_run(suspect), policy)
    crowd = decide_side_by_side(pair_run(suspect, *others), policy)
    assert [row.status for row in alone if row.metric is LATENCY] == [Status.REGRESSED]
    assert find(crowd, LATENCY, CASE).status is Status.INCONCLUSIVE


def test_what_promises_most_a_second_goes_first_and_on_to_the_look_that_settles() -> None:
    """Begun first, then by doubt and seconds, then those with the fewest pairs; what is convicted comes last.

    The dear one looks worst and takes three times as long: (1 + 4) / 90 s is less than (1 + 1.1) / 30 s.
    """
    found = {
        "convicted": (4, Suspect(case_id="convicted", metrics=(COLD,), doubt=9.0, convicted=True)),
        "many": (6, Suspect(case_id="many", metrics=(LATENCY,), doubt=5.0)),
        "few": (3, Suspect(case_id="few", metrics=(LATENCY,), doubt=1.0)),
        "begun": (1, Suspect(case_id="begun", metrics=(LATENCY,), doubt=0.5)),
        "mild": (0, Suspect(case_id="mild", metrics=(LATENCY,), doubt=1.1)),
        "worst": (0, Suspect(case_id="worst", metrics=(LATENCY,), doubt=3.0)),
        "dear": (0, Suspect(case_id="dear", metrics=(COLD,), doubt=4.0)),
        "no time": (0, Suspect(case_id="no time", metrics=(LATENCY,), doubt=4.0)),
    }
    efforts = {
        name: PairEffort(pairs=pairs, seconds=90.0 if name == "dear" else 30.0)
        for name, (pairs, _) in found.items()
        if name != "no time"
    }
    ordered = order_unsettled([one for _, one in found.values()], efforts)
    expected = ["begun", "worst", "mild", "dear", "few", "many", "convicted"]
    assert [one.case_id for one in ordered] == expected


def test_a_convicted_case_needs_no_more_pairs(paired_case: Make, pair_run: Pair, policy: Policy) -> None:
    """Six pairs show compiled 30 % slower, and the only full one leaves the compile open: it may wait."""
    run = pair_run(paired_case(pairs=6, full=1, head={LATENCY: 0.013, COLD: 20.0}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD))
    assert list_unsettled(run, policy, [suspect]) == ()
    (asked,) = list_unsettled(run, policy, [replace(suspect, thorough=True)])
    assert (asked.metrics, asked.convicted) == ((COLD,), True)


@pytest.fixture
def unsettled_after_a_pair(paired_case: Make, pair_run: Pair, policy: Policy) -> Make:
    """What is left of a call that takes so long, 10 ms in the base, and a compile of 20 s instead of 10."""

    def find(latency_s: float, *, thorough: bool) -> list[tuple[Metric, ...]]:
        run = pair_run(paired_case(pairs=1, head={LATENCY: latency_s, COLD: 20.0}))
        suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD), thorough=thorough)
        return [one.metrics for one in list_unsettled(run, policy, [suspect])]

    return find


@pytest.mark.parametrize(
    ("latency_s", "thorough", "expected"),
    [(0.0104, False, (LATENCY,)), (0.0102, False, (LATENCY, COLD)), (0.0104, True, (LATENCY, COLD))],
    ids=["beyond the threshold of 3 %", "below it", "thorough"],
)
def test_compile_times_wait_for_a_latency_that_is_about_to_convict(
    unsettled_after_a_pair: Make, latency_s: float, thorough: bool, expected: tuple[Metric, ...]
) -> None:
    """One pair shows a slower call and a longer compile: where the call alone may convict it goes first."""
    assert unsettled_after_a_pair(latency_s, thorough=thorough) == [expected]


def test_what_is_accepted_convicts_nobody(paired_case: Make, pair_run: Pair, policy: Policy) -> None:
    """Somebody takes the slower calls, so the outcome hangs on the compile, and it is measured on."""
    run = pair_run(paired_case(pairs=6, full=1, head={LATENCY: 0.013, COLD: 20.0}))
    taken = Acceptance(
        case=CASE, metric=LATENCY, allowance=0.5, reason="known", author="a", expires=policy.today
    )
    suspect = Suspect(case_id=CASE, metrics=(LATENCY, COLD))
    (asked,) = list_unsettled(run, replace(policy, acceptances=(taken,)), [suspect])
    assert asked.metrics == (COLD,)


@pytest.mark.parametrize(("seen", "expected"), [((BREAKS,), []), ((), [(BREAKS,)])])
def test_what_stored_values_convict_is_seen_twice_by_one_pair(
    paired_case: Make,
    pair_run: Pair,
    policy: Policy,
    seen: tuple[Metric, ...],
    expected: list[tuple[Metric, ...]],
) -> None:
    """A counter that the screen convicts and the first pair shows needs no second one."""
    run = pair_run(paired_case(pairs=1, head={BREAKS: 1.0}))
    suspect = Suspect(case_id=CASE, metrics=(BREAKS,), seen=seen)
    assert [one.metrics for one in list_unsettled(run, policy, [suspect])] == expected


@pytest.mark.parametrize(
    ("otherwise", "thorough", "expected"),
    [
        ({}, False, []),
        ({"slower": 1.0}, False, ["loud/x"]),
        ({"head": 1.2}, False, ["loud/x"]),
        ({"pairs": 1}, False, ["loud/x"]),
        ({}, True, ["loud/x"]),
    ],
    ids=["waits", "nothing is red", "looks slower", "one pair", "thorough"],
)
def test_a_case_that_looks_no_slower_waits_once_another_is_convicted(
    two_cases: Make, otherwise: dict[str, float], thorough: bool, expected: list[str]
) -> None:
    """Its pairs vary by 10 %, and six of the other's say that it is 30 % slower: the outcome is certain."""
    run, policy = two_cases(**otherwise)
    suspects = [Suspect(case_id=one, metrics=(LATENCY,), thorough=thorough) for one in ("calm/x", "loud/x")]
    found = [one.case_id for one in list_unsettled(run, policy, suspects) if not one.convicted]
    assert found == expected


@pytest.fixture
def two_cases(paired_case: Make, pair_run: Pair, policy: Policy) -> Make:
    """A calm case with six pairs and a loud one, each so many times as slow in head; and the policy."""

    def make(*, slower: float = 1.3, pairs: int = 3, head: float = 1.0) -> tuple[Run, Policy]:
        calm = paired_case(case_id="calm/x", head={LATENCY: 0.010 * slower})
        wild = (0.10, -0.10, 0.01)
        loud = paired_case(case_id="loud/x", pairs=pairs, head={LATENCY: 0.010 * head}, spread=wild)
        return pair_run(calm, loud), policy

    return make


def test_a_convicted_case_says_so_where_more_of_it_is_open(
    paired_case: Make, pair_run: Pair, policy: Policy
) -> None:
    """Compiled 30 % slower by six pairs, and a counter that moved in one pair only."""
    run = pair_run(paired_case(pairs=6, full=1, head={LATENCY: 0.013, BREAKS: 1.0}))
    (asked,) = list_unsettled(run, policy)
    assert (asked.metrics, asked.convicted) == ((COLD, WARM, BREAKS), True)


# --- screen ---


def test_doubt_is_the_change_in_half_widths_of_its_interval(screen: Screen) -> None:
    """The screen's own interval says how far the worse of both metrics is from no change."""
    screening = screen(measure(compiled_latency=1.08))
    (found,) = list_suspects(screening)
    changes = [one.change for one in screening.comparisons if one.metric in {LATENCY, SPEEDUP}]
    assert found.doubt == max(one.centre / (one.high - one.centre) for one in changes if one)
    assert found.doubt > 1


def test_unchanged_case_is_no_suspect(screen: Screen) -> None:
    """The stored values again."""
    assert list_suspects(screen(measure())) == ()


def test_slower_case_is_suspect(screen: Screen) -> None:
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
    screen: Screen, unbroken: Baseline, digests: tuple[str, str], breaks: float, expected: bool
) -> None:
    """The same digest and the same counters; an unknown digest is no known code."""
    before, after = (CodeIdentity(digest=one) for one in digests)
    alone = {**measure(compiled_latency=1.08), BREAKS: (breaks,)}
    (found,) = list_suspects(screen(alone, baselines=(replace(unbroken, identity=before),), identity=after))
    assert found.known_code is expected


def test_fallen_speedup_makes_the_latency_suspect(screen: Screen) -> None:
    """Eager 20 % faster and compiled unmoved: acquitted by the screen, and looked at all the same."""
    screening = screen(measure(eager_latency=0.8))
    assert all(row.status is Status.UNCHANGED for row in screening.comparisons if row.decides)
    assert list_suspects(screening) == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


def test_a_machine_that_moved_acquits_nobody_where_pairs_can_look(
    paired_case: Make, pair_run: Pair, policy: Policy, stored: Baseline
) -> None:
    """10 % slower on a machine whose canaries are 9 % slower: cleared by the screen, and looked at."""
    run = pair_run(paired_case(alone=measure(compiled_latency=1.1, eager_latency=1.1)))
    slow = Conditions(canaries_s={"loop": 1.09e-3})
    run = replace(run, trials=tuple(replace(trial, conditions=slow) for trial in run.trials))
    screening = screen_run(run, (replace(stored, canaries_s={"loop": (1e-3,) * 5}),), policy)
    assert get_latency(screening).status is Status.UNCHANGED
    assert list_suspects(screening) == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


def test_a_latency_that_could_hide_a_change_is_suspect(screen: Screen, stored: Baseline) -> None:
    """Stored values that spread by 5 %: one trial sees 13 % and more, beyond twice the threshold of 5 %."""
    wide = {LATENCY: tuple(0.01 * (1 + 6 * (one - 1)) for one in FIVE)}
    screening = screen(measure(), baselines=(replace(stored, trials={**stored.trials, **wide}),))
    row = get_latency(screening)
    assert row.status is Status.UNCHANGED
    assert row.change is not None
    assert 0.10 < row.change.detectable < 0.15
    assert list_suspects(screening) == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY)),)


def test_case_without_baseline_is_suspect_in_all(screen: Screen) -> None:
    """Nothing stored: every noisy metric that was measured."""
    found = list_suspects(screen(measure(), baselines=()))
    assert found == (Suspect(case_id=CASE, metrics=(SPEEDUP, LATENCY, COLD)),)


def test_a_counter_that_stored_values_convict_is_suspect(screen: Screen, unbroken: Baseline) -> None:
    """A graph break more than stored: looked at first, since nothing of it is left to chance."""
    (found,) = list_suspects(screen({**measure(), BREAKS: (1.0,)}, baselines=(unbroken,)))
    assert (found.metrics, found.doubt) == ((BREAKS,), math.inf)
    assert list_suspects(screen({**measure(), BREAKS: (0.0,)}, baselines=(unbroken,))) == ()


def test_failed_case_is_no_suspect(screen: Screen) -> None:
    """It is INCOMPLETE whatever pairs say."""
    assert list_suspects(screen(measure(compiled_latency=1.3), failures=(fail("head"),))) == ()


def test_stored_values_are_held_against_trials_that_ran_alone(screen: Screen, find: Find) -> None:
    """Six trials of pairs, twice as slow, do not enter the screen."""
    found = find(screen(measure(), head={LATENCY: 0.02}), LATENCY)
    assert found.candidate is not None
    assert found.candidate.n == 1


# --- confirm ---


def test_pairs_acquit_what_the_screen_convicted(screen: Screen, confirm: Confirm, find: Find) -> None:
    """30 % slower than the stored values, equal to the base: the machine, not the change."""
    slower = measure(compiled_latency=1.3)
    assert find(screen(slower), LATENCY).status is Status.REGRESSED
    verdict = confirm(slower)
    assert state(find(verdict, LATENCY)) == (Status.UNCHANGED, Reason.ACQUITTED)
    assert find(verdict, SPEEDUP).status is Status.UNCHANGED
    assert verdict.outcome is Outcome.PASS
    assert f"Measured side by side with {MAIN} on this machine: 6 pairs of 1 case." in tell_notes(verdict)
    told = f"Worse than the stored baseline, but not than the base: {CASE} warm speedup, {CASE} compiled"
    assert any(note.startswith(told) and "record new baselines" in note for note in tell_notes(verdict))
    rows = len(verdict.comparisons)
    expected = Tally(trials=1, pairs=6, paired_cases=1, cleared=2, cases=1, comparisons=rows)
    assert verdict.tally == expected


def test_where_there_is_an_anchor_it_tells_creep_from_the_machine(confirm: Confirm, policy: Policy) -> None:
    """What got worse since the baselines, and not by this change, is sent to the anchor; nothing else is."""
    command = f"compile-gate ab --anchor --select {CASE}"
    anchored = replace(policy, has_anchor=True)
    assert tell_steps(confirm(measure(compiled_latency=1.3), rules=anchored))[-1].endswith(f": {command}")
    for rules, factor in ((policy, 1.3), (anchored, 1.0)):
        steps = tell_steps(confirm(measure(compiled_latency=factor), rules=rules))
        assert not any("--anchor" in step for step in steps)


def test_a_graph_break_that_the_base_has_too_is_not_the_changes(
    confirm: Confirm, find: Find, unbroken: Baseline
) -> None:
    """Merged by others since the baselines were recorded: one pair tells, and a note says it."""
    broken = {BREAKS: 2.0}
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(unbroken,), base=broken, head=broken, pairs=1)
    assert state(find(verdict, BREAKS)) == (Status.UNCHANGED, Reason.EXACT_EQUAL)
    assert verdict.outcome is Outcome.PASS
    assert any(
        note.startswith(f"Worse than the stored baseline, but not than the base: {CASE} graph breaks.")
        for note in tell_notes(verdict)
    )


@pytest.mark.parametrize(("pairs", "base"), [(1, 0.0), (2, 0.0), (2, 2.0)])
def test_a_graph_break_of_the_change_is_convicted(
    confirm: Confirm, find: Find, unbroken: Baseline, pairs: int, base: float
) -> None:
    """One pair is enough where the stored values say the same; it is held against the base's count."""
    changes = {"base": {BREAKS: base}, "head": {BREAKS: 3.0}, "pairs": pairs}
    verdict = confirm({**measure(), BREAKS: (3.0,)}, baselines=(unbroken,), **changes)
    found = find(verdict, BREAKS)
    assert state(found) == (Status.REGRESSED, Reason.EXACT_CHANGED)
    assert found.baseline is not None
    assert found.baseline.centre == base
    assert verdict.outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (1, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (2, (Status.REGRESSED, Reason.EXACT_CHANGED)),
    ],
)
def test_a_graph_break_that_others_fixed_and_the_change_brings_back_is_told(
    confirm: Confirm, find: Find, stored: Baseline, pairs: int, expected: tuple[Status, Reason]
) -> None:
    """Two as stored, of which the base has none: nobody asked, but pairs for the latency saw them."""
    broken = replace(stored, trials={**stored.trials, BREAKS: (2.0,) * len(FIVE)})
    alone = {**measure(compiled_latency=1.3), BREAKS: (2.0,)}
    changes = {"base": {BREAKS: 0.0}, "head": {BREAKS: 2.0}, "pairs": pairs}
    verdict = confirm(alone, baselines=(broken,), **changes)
    assert state(find(verdict, BREAKS)) == expected


@pytest.fixture
def flicker(paired_case: Make, pair_run: Pair, policy: Policy, unbroken: Baseline) -> Make:
    """What becomes of graph breaks that the screen saw none of, and three pairs for the latency so many."""

    def find(values: Sequence[float]) -> Comparison:
        alone = {**measure(compiled_latency=1.3), BREAKS: (0.0,)}
        run = pair_run(paired_case(alone=alone, pairs=3))
        trials = tuple(
            replace(trial, samples={**trial.samples, BREAKS: (values[trial.index - 1],)})
            if (trial.pairing, trial.arm) == (Pairing.LIVE, "head")
            else trial
            for trial in run.trials
        )
        run = replace(run, trials=trials)
        found = confirm_screening(screen_run(run, (unbroken,), policy), run, policy)
        (row,) = (row for row in found.comparisons if row.metric is BREAKS)
        return row

    return find


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3.0, 3.0, 0.0), (Status.INCONCLUSIVE, Reason.COUNTER_UNSTABLE)),
        ((3.0, 0.0, 0.0), (Status.UNCHANGED, Reason.EXACT_EQUAL)),
        ((3.0, 3.0, 3.0), (Status.REGRESSED, Reason.EXACT_CHANGED)),
    ],
    ids=["most", "one", "all"],
)
def test_a_counter_that_most_pairs_show_worse_is_told(
    flicker: Make, values: Sequence[float], expected: tuple[Status, Reason]
) -> None:
    """Nobody asked about it; that one pair in three shows breaks may be what a trial does now and then."""
    assert state(flicker(values)) == expected


def test_pairs_do_not_hide_that_too_few_trials_came_back(
    paired_case: Make, pair_run: Pair, policy: Policy, stored: Baseline
) -> None:
    """One of two planned trials: INCOMPLETE, though pairs acquit the latency that stands for the case."""
    run = replace(pair_run(paired_case(alone=measure(compiled_latency=1.3))), trials_planned=2)
    found = confirm_screening(screen_run(run, (stored,), policy), run, policy)
    states = [state(row) for row in found.comparisons if row.metric is LATENCY]
    assert states == [(Status.MISSING, Reason.TRIALS_MISSING), (Status.UNCHANGED, Reason.ACQUITTED)]
    assert conclude_verdict(run, found, policy).outcome is Outcome.INCOMPLETE


def test_cases_that_get_no_pair_take_no_part_of_the_error_budget(
    paired_case: Make, pair_run: Pair, policy: Policy
) -> None:
    """Twenty new cases have nothing to be compared with: what convicts the old one stays as sure."""
    new = [paired_case(pairs=0, case_id=f"new/{number}", base_definition="") for number in range(20)]
    run = pair_run(paired_case(pairs=3, head={LATENCY: 0.0106}), *new)
    suspects = [Suspect(case_id=case.id, metrics=(LATENCY, COLD)) for case in run.cases]
    (old,) = (row for row in judge_pairs(run, policy, suspects) if row.metric is LATENCY and row.pairs)
    assert old.status is Status.REGRESSED


def test_what_got_better_in_a_pair_asks_for_no_further_one(
    paired_case: Make, pair_run: Pair, policy: Policy
) -> None:
    """A check asks about the latency, which is settled; where all is asked an improvement is seen again."""
    run = pair_run(paired_case(pairs=6, full=1, base={BREAKS: 1.0}, head={BREAKS: 0.0}))
    suspect = Suspect(case_id=CASE, metrics=(LATENCY,))
    assert list_unsettled(run, policy, [suspect]) == ()
    (asked,) = list_unsettled(run, policy, [replace(suspect, thorough=True)])
    assert asked.metrics == (BREAKS,)


def test_one_pair_that_shows_fewer_breaks_convicts_nobody(
    confirm: Confirm, find: Find, unbroken: Baseline
) -> None:
    """More than stored and fewer than the base: the change mends some of what others merged."""
    changes = {"base": {BREAKS: 3.0}, "head": {BREAKS: 2.0}, "pairs": 1}
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(unbroken,), **changes)
    assert state(find(verdict, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNSETTLED)


def test_a_graph_break_that_no_pair_looked_at_is_left_open(
    confirm: Confirm, find: Find, unbroken: Baseline
) -> None:
    """It may be what others merged: INCONCLUSIVE, and it says why."""
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(unbroken,), pairs=0)
    assert state(find(verdict, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNPAIRED)


def test_pairs_convict_what_was_suspect(confirm: Confirm, find: Find) -> None:
    """8 % slower is suspect after the screen and confirmed by its pairs; the compile stays the screen's."""
    verdict = confirm(measure(compiled_latency=1.08), head={LATENCY: 0.0108})
    assert state(find(verdict, LATENCY)) == (Status.REGRESSED, Reason.CONFIRMED)
    assert (find(verdict, LATENCY).pairs, find(verdict, COLD).pairs) == (6, 0)
    assert not any("but not than the base" in note for note in tell_notes(verdict))
    assert not any("Not measured side by side" in note for note in tell_notes(verdict))


def test_pairs_stand_in_for_a_missing_baseline(confirm: Confirm, find: Find) -> None:
    """Nothing stored: the pairs judge the counters as well."""
    verdict = confirm({**measure(), BREAKS: (1.0,)}, baselines=(), head={BREAKS: 1.0})
    assert state(find(verdict, BREAKS)) == (Status.REGRESSED, Reason.EXACT_CHANGED)
    assert state(find(verdict, LATENCY)) == (Status.UNCHANGED, Reason.ACQUITTED)


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"pairs": 0, "failures": (fail("base"),)}, "the base could not be measured"),
        ({"pairs": 0, "base_definition": ""}, "the base does not have this case"),
        ({"pairs": 0}, "no pair came back"),
        ({"base_definition": "d0"}, "the base defines this case differently"),
    ],
    ids=["base failed", "unknown to the base", "no time for pairs", "defined otherwise"],
)
def test_without_pairs_nothing_is_convicted(
    confirm: Confirm, find: Find, changes: dict[str, object], because: str
) -> None:
    """30 % slower than the stored values may be what others merged: INCONCLUSIVE, and it says why."""
    verdict = confirm(measure(compiled_latency=1.3), **changes)
    found = find(verdict, LATENCY)
    assert state(found) == (Status.INCONCLUSIVE, Reason.UNPAIRED)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert tell_row(found).endswith(f"Not measured again side by side: {because}.")
    assert "Not measured side by side with the base: the times of 1 case." in tell_notes(verdict)


def test_a_limit_needs_no_pair(confirm: Confirm, find: Find) -> None:
    """Drift beyond its absolute limit is red although the base does not have the case."""
    verdict = confirm({**measure(), Metric.DRIFT: (1.2,)}, pairs=0, base_definition="")
    assert state(find(verdict, Metric.DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)
    assert verdict.outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    ("base", "expected", "told"),
    [
        ("d1", (Status.INCONCLUSIVE, Reason.UNPAIRED), "no pair came back."),
        ("d0", (Status.UNCHANGED, Reason.WITHIN_NOISE), "the base defines this case differently."),
    ],
    ids=["no time", "nothing to compare with"],
)
def test_what_could_hide_a_change_says_that_no_pair_looked(
    stored: Baseline, confirm: Confirm, base: str, expected: tuple[Status, Reason], told: str
) -> None:
    """Where there was no time for its pairs nobody knows, and the sentence says what is missing."""
    wide = {LATENCY: tuple(0.01 * (1 + 6 * (one - 1)) for one in FIVE)}
    baselines = (replace(stored, trials={**stored.trials, **wide}),)
    row = find_comparison(confirm(measure(), baselines=baselines, pairs=0, base_definition=base), LATENCY)
    assert state(row) == expected
    assert tell_row(row).endswith(f"Not measured again side by side: {told}")


def test_check_without_a_base_says_that_it_is_not_confirmed(
    paired_case: Make, pair_run: Pair, policy: Policy, stored: Baseline
) -> None:
    """One note for all times that were convicted against stored baselines alone."""
    run = replace(pair_run(paired_case(pairs=0, alone=measure(compiled_latency=1.3))), base=None)
    verdict = decide_verdict(run, (stored,), policy)
    notes = [note for note in tell_notes(verdict) if "side by side" in note]
    assert notes == ["Not measured side by side with the base: the times of 1 case."]
    assert any(step.endswith("compile-gate ab --select mlp/x") for step in tell_steps(verdict))
