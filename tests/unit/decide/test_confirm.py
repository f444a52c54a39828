"""The verdict after pairs on what stored values made suspect."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.check.procedure import CheckTerms, judge_recorded
from gate.decide.judge.counted import Repeats
from gate.decide.judge.machine import Machine
from gate.decide.judge.pairs import Screened
from gate.decide.judge.screening import BaseFindings, Screening
from gate.decide.side_by_side import confirm_screening
from gate.decide.suspects import Suspect, list_suspects
from gate.decide.verdict import conclude_verdict, decide_verdict, screen_run
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, Pairing, Run
from gate.records.verdict import Comparison, Estimate, Outcome, Reason, Status, Tally, Verdict
from tests.make import POLICY, PairedCase, find_row, make_acceptance, make_change, make_row, pair_up, state
from tests.words import describe_comparison, describe_steps, write_notes

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
    WIDE,
    confirm,
    fail,
    measure,
    screen,
    store,
)


def test_pairs_acquit_what_the_screen_convicted() -> None:
    """30 % slower than stored and equal to the base passes, with a note."""
    slower = measure(compiled_latency=1.3)
    assert find_row(screen(slower), LATENCY).status is Status.REGRESSED
    verdict = confirm(slower)
    assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert find_row(verdict, SPEEDUP).status is Status.UNCHANGED
    assert verdict.outcome is Outcome.PASS
    assert (verdict.tally.pairs, verdict.tally.paired_cases) == (6, 1)
    beginning = (
        f"Worse than the stored baseline, but not worse than the base: {CASE} warm speedup, {CASE} compiled"
    )
    assert any(note.startswith(beginning) and "record new baselines" in note for note in write_notes(verdict))
    rows = len(verdict.comparisons)
    expected = Tally(trials=1, pairs=6, paired_cases=1, cleared=2, cases=1, comparisons=rows)
    assert verdict.tally == expected


ONCE = Estimate(centre=1.0, low=None, high=None, noise=None, n=1)
UPGRADED = Fact(code=Code.SINCE_UPGRADE)


@pytest.mark.parametrize(
    ("before", "after", "is_acquitted"),
    [
        ({}, Status.UNCHANGED, True),
        ({}, Status.IMPROVED, True),
        ({}, Status.INCONCLUSIVE, False),
        ({}, Status.REGRESSED, False),
        ({"decides": False}, Status.UNCHANGED, False),
        ({"baseline": None}, Status.UNCHANGED, False),
        ({"status": Status.INCONCLUSIVE}, Status.UNCHANGED, False),
        ({"status": Status.INCONCLUSIVE, "remarks": (UPGRADED,)}, Status.UNCHANGED, True),
        ({"status": Status.UNCHANGED}, Status.UNCHANGED, False),
    ],
)
def test_what_stored_values_convicted_and_pairs_do_not_is_acquitted(
    before: dict[str, Any], after: Status, *, is_acquitted: bool
) -> None:
    """Only what decides by a stored value, and was worse for sure or since an upgrade."""
    row = replace(make_row(CASE, BREAKS, baseline=ONCE), **before)
    earlier = make_row("other/x", BREAKS)
    screening = Screening(
        evidence=(),
        comparisons=(row,),
        machine=Machine(),
        places={},
        base=BaseFindings(acquitted=(earlier,)),
    )
    rows = (make_row(CASE, BREAKS, after), make_row(CASE, LATENCY))
    revised = screening.revise(rows)
    assert revised.comparisons == rows
    assert revised.base.acquitted == ((earlier, row) if is_acquitted else (earlier,))


def test_an_anchor_is_suggested_to_separate_creep_from_the_machine() -> None:
    """What is worse than stored and equal to the base is referred to the anchor."""
    command = f"compile-gate ab --anchor --select {CASE}"
    anchored = replace(POLICY, has_anchor=True)
    assert describe_steps(confirm(measure(compiled_latency=1.3), rules=anchored))[-1].endswith(f": {command}")
    for rules, factor in ((POLICY, 1.3), (anchored, 1.0)):
        steps = describe_steps(confirm(measure(compiled_latency=factor), rules=rules))
        assert not any("--anchor" in step for step in steps)


def test_a_graph_break_that_the_base_has_too_is_not_the_changes() -> None:
    """One pair shows that the base has the break as well, and a note says so."""
    broken = {BREAKS: 2.0}
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(UNBROKEN,), base=broken, head=broken, pairs=1)
    assert state(find_row(verdict, BREAKS)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert verdict.outcome is Outcome.PASS
    assert any(
        note.startswith(f"Worse than the stored baseline, but not worse than the base: {CASE} graph breaks.")
        for note in write_notes(verdict)
    )


def test_drift_beyond_its_limit_on_both_sides_is_worse_than_no_stored_value() -> None:
    """Without a baseline drift that the base has too is not noted as worse than stored."""
    off = {Metric.DRIFT: 17.0}
    verdict = confirm({**measure(), Metric.DRIFT: (17.0,)}, baselines=(), base=off, head=off, pairs=2)
    assert verdict.tally.cleared == 0
    assert not any(fact.code is Code.CLEARED for fact in verdict.notes)


def test_drift_that_pairs_show_regresses_unasked() -> None:
    """Drift of 0.6 bits in both pairs of a latency regresses."""
    stored = store({Metric.DRIFT: (0.1,) * 9})
    alone = {**measure(compiled_latency=1.3), Metric.DRIFT: (0.1,)}
    arms = {"base": {Metric.DRIFT: 0.1}, "head": {Metric.DRIFT: 0.7}}
    row = find_row(confirm(alone, baselines=(stored,), pairs=2, **arms), Metric.DRIFT)
    assert (state(row), row.pairs) == ((Status.REGRESSED, Reason.BEYOND_BAR), 2)


@pytest.mark.parametrize(("pairs", "base"), [(1, 0.0), (1, 2.0), (2, 0.0), (2, 2.0)])
def test_a_graph_break_of_the_change_is_convicted(pairs: int, base: float) -> None:
    """One pair convicts a break that stored values show as well, against the base's count."""
    changes = {"base": {BREAKS: base}, "head": {BREAKS: 3.0}, "pairs": pairs}
    verdict = confirm({**measure(), BREAKS: (3.0,)}, baselines=(UNBROKEN,), **changes)
    row = find_row(verdict, BREAKS)
    assert state(row) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert row.baseline is not None
    assert row.baseline.centre == base
    assert verdict.outcome is Outcome.REGRESSION


ONE_MORE = make_acceptance(BREAKS, 1.0, case=CASE)


def one_more_again(rules: Policy) -> Verdict:
    """Graph breaks: none stored, two in the base, three in head."""
    breaks = {"base": {BREAKS: 2.0}, "head": {BREAKS: 3.0}, "pairs": 1}
    return confirm({**measure(), BREAKS: (3.0,)}, baselines=(UNBROKEN,), rules=rules, **breaks)


def test_an_acceptance_of_what_the_change_adds_holds_after_one_pair() -> None:
    """An acceptance for this commit counts on top of the base's breaks."""
    verdict = one_more_again(replace(POLICY, acceptances=(replace(ONE_MORE, commit="c" * 40),)))
    assert find_row(verdict, BREAKS).status is Status.ACCEPTED
    assert verdict.outcome is Outcome.PASS


def test_a_standing_acceptance_does_not_allow_each_change_so_much_again() -> None:
    """One break is accepted on top of the stored none: three exceed it, and the note has both counts."""
    verdict = one_more_again(replace(POLICY, acceptances=(ONE_MORE,)))
    assert verdict.outcome is Outcome.REGRESSION
    assert "+3 (more) against the stored baseline" in describe_comparison(find_row(verdict, BREAKS))
    ending = "accepted up to 1 until 2026-03-01, and this is more: +3 against the stored baseline."
    assert any(note.endswith(ending) for note in write_notes(verdict))


def test_the_acceptance_that_is_suggested_covers_what_is_stored() -> None:
    """The suggested allowance covers the change against the stored value."""
    steps = describe_steps(one_more_again(POLICY))
    assert any("--allow 3 " in step for step in steps)
    taken = replace(ONE_MORE, allowance=3.0)
    assert one_more_again(replace(POLICY, acceptances=(taken,))).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("slower", "status"),
    [
        pytest.param(1.12, Status.ACCEPTED, id="the base is as it was"),
        pytest.param(1.16, Status.ACCEPTED, id="the base may be worse"),
        pytest.param(1.19, Status.INCONCLUSIVE, id="by the estimate alone"),
        pytest.param(1.30, Status.REGRESSED, id="the base is worse"),
    ],
)
def test_an_accepted_time_counts_what_the_base_has_surely_added(slower: float, status: Status) -> None:
    """15 % allowed, 10 % in pairs: 30 % more than stored, give or take 3 %, is beyond; 16 % may be luck."""
    taken = replace(ONE_MORE, metric=LATENCY, allowance=0.15)
    verdict = confirm(
        measure(compiled_latency=slower),
        base={LATENCY: 0.0118},
        head={LATENCY: 0.013},
        rules=replace(POLICY, acceptances=(taken,)),
    )
    row = find_row(verdict, LATENCY)
    assert row.status is status
    assert row.change is not None
    assert 0.09 < row.change.centre < 0.12
    is_exceeded = any("this is more" in note for note in write_notes(verdict))
    assert is_exceeded is (status is not Status.ACCEPTED)


def test_a_slower_time_is_reported_by_its_pairs_alone() -> None:
    """The sentence on a slower time has no stored value."""
    slower = {"base": {LATENCY: 0.0118}, "head": {LATENCY: 0.013}}
    row = find_row(confirm(measure(compiled_latency=1.3), **slower), LATENCY)
    assert row.status is Status.REGRESSED
    assert "stored" not in describe_comparison(row)


def test_a_counter_that_one_pair_shows_better_too_has_improved() -> None:
    """Three stored, two in the base and one in head have improved after one pair."""
    broken = store({BREAKS: (3.0,) * len(NINE)})
    changes = {"base": {BREAKS: 2.0}, "head": {BREAKS: 1.0}, "pairs": 1}
    verdict = confirm({**measure(), BREAKS: (1.0,)}, baselines=(broken,), **changes)
    assert find_row(verdict, BREAKS).status is Status.IMPROVED
    assert verdict.outcome is Outcome.PASS


def test_a_case_that_neither_what_is_stored_nor_the_base_knows_is_not_judged() -> None:
    """A case without baseline and base is not judged."""
    run = pair_up(PairedCase(alone=measure(), pairs=0, base_definition="d0"))
    screened = screen_run(run, (), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    row = find_row(screening, LATENCY)
    assert (*state(row), row.remarks) == (Status.NEW, Reason.NO_BASELINE, ())


@pytest.mark.parametrize("drifts", [(), (0.1, 0.1, 0.1)])
def test_what_the_base_measures_and_head_no_longer_does_is_missing(drifts: tuple[float, ...]) -> None:
    """Drift that only the base measures is MISSING, once, stored or not, and the verdict INCOMPLETE."""
    run = pair_up(PairedCase(alone=measure(), pairs=3, base={Metric.DRIFT: 0.1}))
    kept = tuple(
        replace(
            trial, samples={name: value for name, value in trial.samples.items() if name is not Metric.DRIFT}
        )
        if trial.arm == "head"
        else trial
        for trial in run.trials
    )
    run = replace(run, trials=kept)
    stored = replace(STORED_CASE, trials={**STORED_CASE.trials, Metric.DRIFT: drifts})
    screened = screen_run(run, (stored,) if drifts else (), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    states = [state(row) for row in screening.comparisons if row.metric is Metric.DRIFT]
    assert states == [(Status.MISSING, Reason.NOT_MEASURED)]
    assert conclude_verdict(run, screening, POLICY).outcome is Outcome.INCOMPLETE


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [(1, (Status.INCONCLUSIVE, Reason.UNSETTLED)), (2, (Status.REGRESSED, Reason.BEYOND_BAR))],
)
def test_a_graph_break_that_the_change_brings_back_regresses(
    pairs: int, expected: tuple[Status, Reason]
) -> None:
    """As many breaks as stored regress after two pairs if the base has none."""
    broken = store({BREAKS: (2.0,) * len(NINE)})
    alone = {**measure(compiled_latency=1.3), BREAKS: (2.0,)}
    changes = {"base": {BREAKS: 0.0}, "head": {BREAKS: 2.0}, "pairs": pairs}
    verdict = confirm(alone, baselines=(broken,), **changes)
    assert state(find_row(verdict, BREAKS)) == expected


def vary_head(run: Run, metric: Metric, values: Sequence[float]) -> Run:
    """The run whose head has these values in its pairs."""
    trials = tuple(
        replace(trial, samples={**trial.samples, metric: (values[trial.index - 1],)})
        if (trial.pairing, trial.arm) == (Pairing.LIVE, "head")
        else trial
        for trial in run.trials
    )
    return replace(run, trials=trials)


def flicker(values: Sequence[float]) -> Comparison:
    """The state of graph breaks that the screen saw none of, with these counts in three pairs."""
    alone = {**measure(compiled_latency=1.3), BREAKS: (0.0,)}
    run = vary_head(pair_up(PairedCase(alone=alone, pairs=3)), BREAKS, values)
    screened = screen_run(run, (UNBROKEN,), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    return find_row(screening, BREAKS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3.0, 3.0, 0.0), (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        ((3.0, 0.0, 0.0), (Status.UNCHANGED, Reason.BELOW_THRESHOLD)),
        ((3.0, 3.0, 3.0), (Status.REGRESSED, Reason.BEYOND_BAR)),
    ],
    ids=["most", "one", "all"],
)
def test_a_counter_that_most_pairs_show_worse_is_open(
    values: Sequence[float], expected: tuple[Status, Reason]
) -> None:
    """Breaks in all three pairs regress, in two are open, and in one may be chance."""
    assert state(flicker(values)) == expected


INCONCLUSIVE = (Status.INCONCLUSIVE, Reason.UNSETTLED)
REGRESSED = (Status.REGRESSED, Reason.BEYOND_BAR)
UNCHANGED = (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


@pytest.mark.parametrize(
    ("counts", "paired", "expected"),
    [
        pytest.param((1.0,), {"head": {BREAKS: 1.0}, "pairs": 1}, REGRESSED, id="the same"),
        pytest.param((2.0,), {"head": {BREAKS: 1.0}, "pairs": 1}, INCONCLUSIVE, id="another"),
        pytest.param((2.0,), {"head": {BREAKS: 1.0}, "pairs": 2}, REGRESSED, id="two pairs"),
        pytest.param((0.0, 1.0), {"head": {BREAKS: 1.0}, "pairs": 1}, INCONCLUSIVE, id="now and then"),
        pytest.param((0.0, 1.0), {"pairs": 1}, INCONCLUSIVE, id="in no pair"),
        pytest.param((0.0, 1.0), {"base": {BREAKS: 1.0}, "pairs": 1}, UNCHANGED, id="the base now and then"),
        pytest.param((1.0,), {"base": {BREAKS: 1.0}, "pairs": 1}, UNCHANGED, id="the base too"),
    ],
)
def test_a_new_graph_break_is_certain_when_it_was_counted_twice(
    counts: Sequence[float], paired: dict[str, Any], expected: object
) -> None:
    """Without a baseline two counts of head above the base's are certain."""
    alone = {**{metric: [*value] * len(counts) for metric, value in measure().items()}, BREAKS: counts}
    assert state(find_row(confirm(alone, baselines=(), **paired), BREAKS)) == expected


def test_peak_memory_is_not_certain_with_one_pair() -> None:
    """Of memory one pair convicts nothing."""
    memory = {Metric.PEAK_MEMORY: (2e9,)}
    changes = {"base": {Metric.PEAK_MEMORY: 1e9}, "head": {Metric.PEAK_MEMORY: 2e9}, "pairs": 1}
    row = find_row(confirm({**measure(), **memory}, **changes), Metric.PEAK_MEMORY)
    assert state(row) == (Status.INCONCLUSIVE, Reason.UNSETTLED)


@pytest.mark.parametrize("head", [{}, {BREAKS: 0.0}])
def test_what_head_lacks_stays_missing(head: dict[Metric, float]) -> None:
    """Graph breaks that are stored and that head's own trial lacks are MISSING."""
    base = {BREAKS: 0.0} if head else {}
    verdict = confirm(measure(), baselines=(UNBROKEN,), base=base, head=head, pairs=1)
    assert state(find_row(verdict, BREAKS)) == (Status.MISSING, Reason.NOT_MEASURED)
    assert verdict.outcome is Outcome.INCOMPLETE


def test_a_count_that_the_base_lacks_too_stays_new() -> None:
    """Drift that only head measures is NEW."""
    alone = {**measure(), Metric.DRIFT: (0.1,)}
    row = find_row(confirm(alone, baselines=(), head={Metric.DRIFT: 0.1}, pairs=3), Metric.DRIFT)
    assert state(row) == (Status.NEW, Reason.NO_BASELINE)


def test_pairs_do_not_hide_that_too_few_trials_came_back() -> None:
    """One of two planned trials is INCOMPLETE although pairs clear the latency."""
    run = replace(pair_up(PairedCase(alone=measure(compiled_latency=1.3))), trials_planned=2)
    screened = screen_run(run, (STORED_CASE,), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    states = [state(row) for row in screening.comparisons if row.metric is LATENCY]
    assert states == [(Status.MISSING, Reason.NOT_RUN), (Status.UNCHANGED, Reason.BELOW_THRESHOLD)]
    assert conclude_verdict(run, screening, POLICY).outcome is Outcome.INCOMPLETE


def test_one_pair_that_shows_fewer_breaks_convicts_nobody() -> None:
    """More breaks than stored and fewer than the base's do not regress."""
    changes = {"base": {BREAKS: 3.0}, "head": {BREAKS: 2.0}, "pairs": 1}
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(UNBROKEN,), **changes)
    assert state(find_row(verdict, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNSETTLED)


def test_a_graph_break_that_no_pair_looked_at_is_left_open() -> None:
    """Without a pair a new break is INCONCLUSIVE, and the sentence says why."""
    verdict = confirm({**measure(), BREAKS: (2.0,)}, baselines=(UNBROKEN,), pairs=0)
    assert state(find_row(verdict, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNPAIRED)


def test_pairs_convict_what_was_suspect() -> None:
    """Pairs confirm a latency 8 % slower; the compile is judged by stored values."""
    verdict = confirm(measure(compiled_latency=1.08), head={LATENCY: 0.0108})
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert (find_row(verdict, LATENCY).pairs, find_row(verdict, COLD).pairs) == (6, 0)
    assert not any("but not worse than the base" in note for note in write_notes(verdict))
    assert not any("Not measured side by side" in note for note in write_notes(verdict))


def test_pairs_stand_in_for_a_missing_baseline() -> None:
    """Without a baseline pairs judge counters as well."""
    verdict = confirm({**measure(), BREAKS: (1.0,)}, baselines=(), head={BREAKS: 1.0})
    assert state(find_row(verdict, BREAKS)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


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
def test_without_pairs_nothing_is_convicted(changes: dict[str, object], because: str) -> None:
    """Without a pair 30 % slower than stored is INCONCLUSIVE, and the sentence says why."""
    verdict = confirm(measure(compiled_latency=1.3), **changes)
    row = find_row(verdict, LATENCY)
    assert state(row) == (Status.INCONCLUSIVE, Reason.UNPAIRED)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert describe_comparison(row).endswith(f"Not measured again side by side: {because}.")
    assert "Not measured side by side with the base: the times of 1 case." in write_notes(verdict)


def test_a_base_that_failed_is_to_be_read_and_not_measured_again() -> None:
    """If the base fails its log is the first step, before more trials."""
    verdict = confirm(measure(compiled_latency=1.3), pairs=0, failures=(fail("base"),))
    assert f"main (1a2b3c4) failed in 1 case: {CASE}." in write_notes(verdict)
    first, second = describe_steps(verdict)[:2]
    assert first == "Read the log of the base's cases: what failed there was not measured in pairs."
    assert second.startswith("Or measure inconclusive cases again, with more trials:")


def test_what_only_pairs_of_head_lack_is_missing() -> None:
    """The base's pairs and the trial alone have the memory: that it is gone in pairs is no pass."""
    memory = Metric.PEAK_MEMORY
    run = pair_up(PairedCase(alone={**measure(), memory: (2e8,)}, base={memory: 1e8}))
    trials = [
        replace(trial, samples={key: trial.samples[key] for key in trial.samples if key is not memory})
        if trial.arm != BASE_ARM and trial.pairing is not Pairing.ALONE
        else trial
        for trial in run.trials
    ]
    terms = CheckTerms(baselines=(STORED_CASE,), policy=POLICY)
    verdict = judge_recorded(replace(run, trials=tuple(trials)), terms)
    assert state(find_row(verdict, memory)) == (Status.MISSING, Reason.NOT_MEASURED)
    assert verdict.outcome is Outcome.INCOMPLETE


def test_a_limit_needs_no_pair() -> None:
    """Drift beyond its absolute limit regresses without a base."""
    verdict = confirm({**measure(), Metric.DRIFT: (1.2,)}, pairs=0, base_definition="")
    assert state(find_row(verdict, Metric.DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)
    assert verdict.outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    ("base", "speedup", "ending"),
    [
        ("d1", (Status.INCONCLUSIVE, Reason.UNPAIRED), "no pair came back."),
        ("d0", (Status.UNCHANGED, Reason.BELOW_THRESHOLD), "the base defines this case differently."),
    ],
    ids=["no time", "nothing to compare with"],
)
def test_what_could_hide_a_change_says_that_no_pair_looked(
    base: str, speedup: tuple[Status, Reason], ending: str
) -> None:
    """An open latency says that it had no pair; without time its speedup is open too."""
    baselines = (store(WIDE),)
    verdict = confirm(measure(), baselines=baselines, pairs=0, base_definition=base)
    row = find_row(verdict, LATENCY)
    assert state(row) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert describe_comparison(row).endswith(f"Not measured again side by side: {ending}")
    assert state(find_row(verdict, SPEEDUP)) == speedup


def test_check_without_a_base_says_that_it_is_not_confirmed() -> None:
    """One note covers all times that regressed against stored values alone."""
    run = replace(pair_up(PairedCase(pairs=0, alone=measure(compiled_latency=1.3))), base=None)
    verdict = decide_verdict(run, (STORED_CASE,), POLICY)
    notes = [note for note in write_notes(verdict) if "side by side" in note]
    assert notes == ["Not measured side by side with the base: the times of 1 case."]
    assert any(step.endswith("compile-gate ab --select mlp/x") for step in describe_steps(verdict))


ONE = Estimate(centre=1.0, low=None, high=None, noise=None, n=1)
NONE = replace(ONE, centre=0.0)
DRIFT, MEMORY = Metric.DRIFT, Metric.PEAK_MEMORY


def confirm_rows(
    *rows: Comparison, metrics: tuple[Metric, ...] = (LATENCY,), **paired: Any
) -> dict[Metric, Comparison]:
    """What pairs make of these rows of the screen, where pairs are to look at these metrics."""
    run = pair_up(PairedCase(**paired))
    screening = replace(screen_run(run, (), POLICY), comparisons=rows)
    suspects = (Suspect(case_id=CASE, metrics=metrics),)
    return {row.metric: row for row in confirm_screening(screening, run, POLICY, suspects).comparisons}


def make_stored(metric: Metric, status: Status = Status.UNCHANGED, **fields: Any) -> Comparison:
    """A row that stored values judged."""
    return make_row(CASE, metric, status, **{"baseline": ONE, "candidate": ONE, **fields})


def drift(base: float, head: float) -> dict[str, dict[Metric, float]]:
    return {"base": {DRIFT: base}, "head": {DRIFT: head}}


FAILED = make_stored(LATENCY, Status.FAILED, reason=Reason.CASE_FAILED, baseline=None)
LATENCIES, LOWER = (LATENCY,), {"base": {BREAKS: 2.0}, "head": {BREAKS: 1.0}}


@pytest.mark.parametrize(
    ("row", "metrics", "paired", "pairs"),
    [
        pytest.param(make_stored(LATENCY), LATENCIES, {}, 6, id="asked for"),
        pytest.param(make_stored(COLD), LATENCIES, {}, 0, id="not asked for"),
        pytest.param(make_stored(COLD), LATENCIES, {"head": {COLD: 20.0}}, 0, id="a time that is longer"),
        pytest.param(make_stored(COLD, Status.NEW), LATENCIES, {}, 6, id="nothing was compared"),
        pytest.param(make_stored(COLD, baseline=None), LATENCIES, {}, 6, id="a limit alone judged"),
        pytest.param(make_stored(EAGER), LATENCIES, {}, 6, id="eager beside compiled"),
        pytest.param(make_stored(EAGER), (COLD,), {}, 0, id="eager beside a compile"),
        pytest.param(make_stored(BREAKS), LATENCIES, {}, 0, id="a count as before"),
        pytest.param(make_stored(BREAKS), LATENCIES, {"head": {BREAKS: 1.0}}, 6, id="a higher count"),
        pytest.param(make_stored(BREAKS), LATENCIES, LOWER, 0, id="a lower count"),
        pytest.param(make_stored(DRIFT), LATENCIES, drift(17.0, 17.0), 0, id="drift on both sides"),
        pytest.param(make_stored(DRIFT), LATENCIES, drift(0.3, 0.7), 0, id="drift that does not matter"),
        pytest.param(make_stored(DRIFT), LATENCIES, drift(0.9, 1.2), 6, id="more drift"),
        pytest.param(FAILED, LATENCIES, {}, 0, id="a failure of the case"),
    ],
)
def test_pairs_replace_what_they_were_to_look_at_and_what_they_show_worse(
    row: Comparison, metrics: tuple[Metric, ...], paired: dict[str, Any], pairs: int
) -> None:
    """And what nothing stored was compared with; all else is judged by stored values."""
    confirmed = confirm_rows(row, metrics=metrics, **paired)
    assert {metric: judged.pairs for metric, judged in confirmed.items()} == {row.metric: pairs}


@pytest.mark.parametrize(
    ("metric", "base", "head", "is_shown"),
    [
        (DRIFT, 1.0, (3.0, 1.0, 1.0), True),
        (DRIFT, 1.0, (2.0, 1.0, 0.0), False),
        (DRIFT, 1.0, (2.0, 0.0, 0.0), False),
        (BREAKS, 0.0, (1.0, 1.0, 0.0), True),
        (BREAKS, 0.0, (1.0, 0.0, 0.0), False),
        (MEMORY, 1e8, (1.1e8, 1.02e8, 1.0e8), False),
    ],
)
def test_what_most_pairs_show_worse_is_open_unasked(
    metric: Metric, base: float, head: Sequence[float], *, is_shown: bool
) -> None:
    """Drift that is more on average, and a count or memory that is notably more in the median pair."""
    run = vary_head(pair_up(PairedCase(pairs=3, base={metric: base})), metric, head)
    screening = replace(screen_run(run, (), POLICY), comparisons=(make_stored(metric),))
    suspects = (Suspect(case_id=CASE, metrics=(LATENCY,)),)
    row = find_row(confirm_screening(screening, run, POLICY, suspects), metric)
    assert state(row) == (INCONCLUSIVE if is_shown else state(make_stored(metric)))


def test_a_count_that_is_known_to_flicker_does_not_prove_it_again() -> None:
    """Stored breaks of unchanged code differed: that no pair shows them clears head."""
    run = pair_up(PairedCase())
    row = make_stored(BREAKS, Status.REGRESSED, candidate=ONE)
    screening = replace(screen_run(run, (), POLICY), comparisons=(row,))
    known = Screened(repeats={BREAKS: Repeats(differs=True)})
    suspects = (Suspect(case_id=CASE, metrics=(BREAKS,), screened=known),)
    assert state(find_row(confirm_screening(screening, run, POLICY, suspects), BREAKS)) == UNCHANGED


def test_a_count_that_only_head_has_in_pairs_is_left_open() -> None:
    """Pairs cannot compare a drift that the base did not measure, whatever stored values convict."""
    row = confirm_rows(make_stored(DRIFT, Status.REGRESSED), metrics=(DRIFT,), head={DRIFT: 1.2})[DRIFT]
    assert (*state(row), row.found) == (Status.INCONCLUSIVE, Reason.UNPAIRED, Reason.BEYOND_BAR)


@pytest.mark.parametrize(
    ("row", "head", "expected"),
    [
        (make_stored(BREAKS, Status.REGRESSED, candidate=ONE), 0.0, INCONCLUSIVE),
        (make_stored(BREAKS, Status.REGRESSED, candidate=NONE), 0.0, UNCHANGED),
        (make_stored(BREAKS, Status.REGRESSED, candidate=None), 0.0, UNCHANGED),
        (make_stored(BREAKS, Status.INCONCLUSIVE, candidate=ONE), 0.0, INCONCLUSIVE),
        (make_stored(BREAKS, Status.NEW, candidate=ONE), 0.0, INCONCLUSIVE),
        (make_stored(BREAKS, Status.INCONCLUSIVE, candidate=replace(NONE, high=1.0)), 0.0, INCONCLUSIVE),
        (make_stored(BREAKS, Status.INCONCLUSIVE, candidate=NONE), 0.0, UNCHANGED),
        (make_stored(BREAKS, Status.UNCHANGED, candidate=ONE), 0.0, UNCHANGED),
        (make_stored(BREAKS, Status.IMPROVED, candidate=ONE), 0.0, UNCHANGED),
        (make_stored(BREAKS, Status.REGRESSED, candidate=ONE), 2.0, REGRESSED),
        (make_stored(MEMORY, Status.REGRESSED, candidate=ONE), 0.0, UNCHANGED),
        (make_stored(MEMORY, Status.INCONCLUSIVE, candidate=replace(ONE, centre=2e8)), 0.0, UNCHANGED),
    ],
)
def test_a_count_of_heads_own_trials_that_no_pair_shows_is_open(
    row: Comparison, head: float, expected: tuple[Status, Reason]
) -> None:
    """It flickers, unless pairs show it worse, or head counted no more; memory just varies."""
    assert state(confirm_rows(row, metrics=(row.metric,), head={BREAKS: head})[row.metric]) == expected


WORSE_THAN_STORED = make_stored(LATENCY, Status.REGRESSED, change=make_change(0.3, 0.03))
SINCE_UPGRADE = Fact(code=Code.SINCE_UPGRADE)


@pytest.mark.parametrize(
    ("row", "head", "expected"),
    [
        (WORSE_THAN_STORED, {LATENCY: 0.012}, 0.3),
        (replace(WORSE_THAN_STORED, status=Status.INCONCLUSIVE), {LATENCY: 0.012}, 0.3),
        (WORSE_THAN_STORED, {}, None),
        (WORSE_THAN_STORED, {LATENCY: 0.008}, None),
        (replace(WORSE_THAN_STORED, status=Status.IMPROVED), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, status=Status.UNCHANGED), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, baseline=None), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, change=None), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, change=make_change(0.1, 0.03)), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, remarks=(SINCE_UPGRADE,)), {LATENCY: 0.012}, None),
        (replace(WORSE_THAN_STORED, metric=BREAKS, change=make_change(3.0)), {BREAKS: 1.0}, 3.0),
        (replace(WORSE_THAN_STORED, metric=BREAKS, change=make_change(1.0)), {BREAKS: 1.0}, None),
    ],
)
def test_what_is_worse_than_the_base_says_how_much_worse_than_stored_it_is(
    row: Comparison, head: dict[Metric, float], expected: float | None
) -> None:
    """Where both are worse, and stored values show more than pairs do."""
    judged = confirm_rows(row, metrics=(row.metric,), head=head)[row.metric]
    changes = [fact.numbers["change"] for fact in judged.remarks if fact.code is Code.SINCE_STORED]
    assert changes == ([] if expected is None else [expected])


def test_nothing_is_confirmed_without_a_base_or_a_suspect() -> None:
    """The screening stays as it is."""
    run = pair_up(PairedCase(alone=measure(compiled_latency=1.3)))
    screening = screen_run(run, (STORED_CASE,), POLICY)
    suspects = list_suspects(screening)
    assert confirm_screening(screening, replace(run, base=None), POLICY, suspects) == screening
    assert confirm_screening(screening, run, POLICY, ()) == screening
