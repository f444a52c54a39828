"""Whole verdicts by pairs, without baselines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.accept import apply_acceptances, compute_acceptance_limit
from gate.decide.constants import LIVE_PAIR_SD, PRIOR_DF
from gate.decide.side_by_side import decide_side_by_side, gather_judged
from gate.decide.verdict import decide_verdict
from gate.records.cases import Metric, Override, Policy, Quarantine, Threshold
from gate.records.codes import Code
from gate.records.run import CodeIdentity, GraphBreak, Provenance, Shard
from gate.records.verdict import Outcome, PairBase, Reason, Status, Verdict
from gate.report.case_blocks import render_command
from gate.report.words.comparisons import complete_sentence
from tests.make import POLICY, PairedCase, find_row, make_acceptance, pair_up, state
from tests.words import describe_causes, describe_comparison, describe_steps, write_notes, write_opening

from .one_case import BREAKS, CASE, COLD, EAGER, LATENCY, SPEEDUP, WARM, fail

CALLS, MEMORY, DRIFT = Metric.COMPILE_CALLS, Metric.PEAK_MEMORY, Metric.DRIFT
MAIN = "main (1a2b3c4)"
ALONE = {LATENCY: (0.010,), EAGER: (0.020,)}

Judge = Callable[..., Verdict]


def ab(rules: Policy = POLICY, **changes: Any) -> Verdict:
    """The verdict on one case that ran in pairs."""
    return decide_side_by_side(pair_up(PairedCase(**changes)), rules)


def ab_busy(clock: float, processor: float, calls: float) -> Verdict:
    """Six pairs whose cold compile has these factors of clock, CPU time and calls in head."""
    run = pair_up(PairedCase(head={COLD: 10.0 * clock, CALLS: 4e6 * calls}))
    spent_s = {"base": 1.0, "head": processor}
    trials = tuple(
        replace(
            trial, phases_s={"cpu_self": 2.0 * spent_s[trial.arm], "cpu_children": 6.0 * spent_s[trial.arm]}
        )
        for trial in run.trials
    )
    return decide_side_by_side(replace(run, trials=trials), POLICY)


@pytest.mark.parametrize(
    ("cases", "expected", "df"), [(4, LIVE_PAIR_SD**2, PRIOR_DF), (5, 0.03**2 / (8 / 9) ** 3, 4.0)]
)
def test_noise_of_pairs_is_learned_from_the_first_of_each_case(
    cases: int, expected: float, df: float
) -> None:
    """The first pairs of 3, 0 and -3 % give 0.03^2 with 2 df; four other cases give 4 df."""
    wild = (0.03, 0.0, -0.03, 0.5, -0.5, 0.3)
    run = pair_up(*(PairedCase(case_id=f"m{number}/x", spread=wild) for number in range(cases)))
    prior = gather_judged(run, POLICY)[1].priors[LATENCY, True]["m0/x"]
    assert (prior.value, prior.df) == (pytest.approx(expected), df)


def test_equal_arms_pass() -> None:
    """Six equal pairs pass in every noisy metric and counter."""
    verdict = ab()
    assert verdict.outcome is Outcome.PASS
    assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert state(find_row(verdict, BREAKS)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert find_row(verdict, LATENCY).pairs == 6
    assert write_opening(verdict).startswith("Nothing got worse: ")
    assert write_opening(verdict).endswith(f", against {MAIN}.")
    assert write_notes(verdict) == ()
    assert verdict.baseline_provenance == (Provenance(commit="1a2b3c4"),)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, PairBase(label=MAIN, commit="1a2b3c4")),
        ({"provenance": Provenance(commit="1a2b3c4", dirty=True)}, PairBase(label=MAIN)),
        ({"head_commit": "5d6e7f8"}, PairBase(label=MAIN, commit="1a2b3c4", head_commit="5d6e7f8")),
        ({"environment": "other"}, PairBase(label=MAIN, commit="1a2b3c4", other_stack=True)),
    ],
)
def test_verdict_names_its_base_as_a_command_can(changes: dict[str, Any], expected: PairBase) -> None:
    """A base is named by its commit, or by its whole label if it is another stack."""
    run = pair_up(PairedCase())
    assert run.base is not None
    if "environment" in changes:
        changes = {"environment": replace(run.base.environment, torch="2.11.0")}
    run = replace(run, base=replace(run.base, **changes))
    assert expected == decide_side_by_side(run, POLICY).base


def test_slower_compiled_is_confirmed_with_its_speedup() -> None:
    """Compiled is 8 % slower and eager is not: latency and speedup regress."""
    verdict = ab(head={LATENCY: 0.0108})
    assert verdict.outcome is Outcome.REGRESSION
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert state(find_row(verdict, SPEEDUP)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert find_row(verdict, LATENCY).change.centre == pytest.approx(0.08, abs=0.005)  # type: ignore[union-attr] # judged
    reason = "Beyond the threshold of 3 % in 6 pairs side by side with the base"
    assert reason.lower() in describe_comparison(find_row(verdict, LATENCY)).lower()
    assert "(eager changed by 0.0 %)" in describe_comparison(find_row(verdict, LATENCY))
    opening = f"2 metrics slower in mlp: compiled latency 10.0 ms -> 10.8 ms (+8.3 %), against {MAIN}."
    assert write_opening(verdict) == f"{opening} Unexplained: nothing that was recorded explains it."


def test_both_slower_is_a_regression_of_what_they_share() -> None:
    """Eager and compiled 10 % slower regress, and the sentence says that both are."""
    verdict = ab(head={LATENCY: 0.011, EAGER: 0.022})
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert "eager changed by +10.0 %" in describe_comparison(find_row(verdict, LATENCY))
    assert find_row(verdict, SPEEDUP).status is Status.UNCHANGED
    assert not find_row(verdict, EAGER).decides


def test_faster_eager_is_no_regression() -> None:
    """A speedup that fell because eager got faster is UNCHANGED, with the reason."""
    verdict = ab(head={EAGER: 0.016})
    assert verdict.outcome is Outcome.PASS
    assert state(find_row(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.LEADER_STANDS)


def test_slower_eager_is_no_improvement() -> None:
    """A speedup that rose because eager got slower is no improvement."""
    verdict = ab(head={EAGER: 0.024})
    assert state(find_row(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.LEADER_STANDS)


def test_faster_compiled_has_improved() -> None:
    """8 % faster in six pairs."""
    verdict = ab(head={LATENCY: 0.010 / 1.08})
    assert state(find_row(verdict, LATENCY)) == (Status.IMPROVED, Reason.BEYOND_BAR)
    assert state(find_row(verdict, SPEEDUP)) == (Status.IMPROVED, Reason.BEYOND_BAR)


@pytest.mark.parametrize("busy", [0.2, 0.9])
def test_what_pairs_do_not_settle_says_if_the_host_is_in_it(busy: float) -> None:
    """The sentence says if the GPU computes for 20 % of a call only, not for 90 %."""
    verdict = ab(head={LATENCY: 0.01025}, base={Metric.DEVICE_UTILIZATION: busy})
    text = "The GPU computes for 20 % of a call; for the rest it waits for the host, which varies."
    assert (text in describe_comparison(find_row(verdict, LATENCY))) is (busy < 0.9)
    assert text not in describe_comparison(find_row(verdict, COLD))


def test_what_pairs_do_not_settle_says_what_they_could_see() -> None:
    """2.5 % after six pairs are open, with the interval, the detectable change and the pairs needed."""
    verdict = ab(head={LATENCY: 0.01025})
    row = find_row(verdict, LATENCY)
    assert state(row) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert row.more_pairs
    needed = f"inconclusive in 6 pairs side by side with the base (needs {row.more_pairs} more"
    assert needed in describe_comparison(row)
    assert "would have been noticed" in complete_sentence(row)
    assert any("compile-gate ab 1a2b3c4 --select mlp/x" in step for step in describe_steps(verdict))


def test_a_case_that_head_lacks_is_noted() -> None:
    """A case of the base that head does not define is noted."""
    run = pair_up(PairedCase(case_id="mlp/x"), PairedCase(case_id="mlp/gone"))
    kept = replace(run, cases=run.cases[:1], trials=tuple(t for t in run.trials if t.case_id == "mlp/x"))
    text = "main (1a2b3c4) has 1 case that head does not have: mlp/gone."
    assert text in write_notes(decide_side_by_side(kept, Policy(thresholds={})))
    assert not any(
        "head lacks" in note for note in write_notes(decide_side_by_side(run, Policy(thresholds={})))
    )


@pytest.mark.parametrize(("metric", "seconds"), [(COLD, 10.0), (WARM, 3.0)])
def test_a_longer_compile_is_convicted_by_the_clock_of_its_pairs(metric: Metric, seconds: float) -> None:
    """Half as long again with the same calls regresses where CPU time is unknown."""
    assert state(find_row(ab(head={metric: 1.5 * seconds}), metric)) == (Status.REGRESSED, Reason.BEYOND_BAR)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        pytest.param((1.0, 1.3, 1.0), (Status.REGRESSED, Reason.BEYOND_BAR), id="works more"),
        pytest.param((0.65, 1.5, 1.0), (Status.REGRESSED, Reason.BEYOND_BAR), id="on more cores"),
        pytest.param((2.0, 1.0, 1.0), (Status.INCONCLUSIVE, Reason.UNCORROBORATED), id="waits"),
        pytest.param((1.0, 0.7, 1.0), (Status.IMPROVED, Reason.BEYOND_BAR), id="works less"),
        pytest.param((2.0, 0.7, 1.0), (Status.INCONCLUSIVE, Reason.UNCORROBORATED), id="works less, waits"),
        pytest.param((1.0, 1.07, 1.0), (Status.UNCHANGED, Reason.BELOW_THRESHOLD), id="nothing else moved"),
        pytest.param((1.0, 1.07, 1.025), (Status.INCONCLUSIVE, Reason.UNSETTLED), id="more calls"),
    ],
)
def test_processor_time_judges_a_cold_compile(
    factors: tuple[float, float, float], expected: tuple[Status, Reason]
) -> None:
    """30 % more CPU time regresses; 7 % is clear unless Python calls rose too; only the clock is open."""
    row = find_row(ab_busy(*factors), COLD)
    assert state(row) == expected
    text = f"judged by CPU time, {100 * (factors[1] - 1):+.1f} %"
    assert text in describe_comparison(row) or factors[1] == 1.0


def test_an_acceptance_of_a_compile_is_compared_with_cpu_time() -> None:
    """5 % by the clock and 30 % by CPU time: 29 % are too few, and the suggestion covers it."""
    row = find_row(ab_busy(1.05, 1.3, 1.0), COLD)
    assert row.status is Status.REGRESSED
    limit = compute_acceptance_limit(row)
    for allowance, expected in ((0.29, Status.REGRESSED), (limit, Status.ACCEPTED)):
        accepted = make_acceptance(COLD, allowance, case=CASE, expires="2026-12-31")
        (judged,) = apply_acceptances((row,), replace(POLICY, acceptances=(accepted,), today="2026-01-01"))
        assert judged.status is expected
    assert 0.3 <= limit <= 0.6


@pytest.mark.parametrize(
    ("seconds", "calls", "pairs", "expected"),
    [
        pytest.param(3.42, 4e6, 3, Status.UNCHANGED, id="14 % longer"),
        pytest.param(3.42, 4e6, 2, Status.INCONCLUSIVE, id="in two pairs"),
        pytest.param(3.42, 4.1e6, 3, Status.INCONCLUSIVE, id="with more calls"),
        pytest.param(3.48, 4e6, 3, Status.INCONCLUSIVE, id="16 % longer"),
    ],
)
def test_a_compile_of_the_same_work_is_clear_where_it_looks_no_longer(
    seconds: float, calls: float, pairs: int, expected: Status
) -> None:
    """A compile of 3 s whose pairs vary by a tenth is clear after three pairs."""
    verdict = ab(pairs=pairs, head={WARM: seconds, CALLS: calls}, spread=(0.1, -0.1, 0.0))
    assert find_row(verdict, WARM).status is expected


def test_new_graph_break_must_be_seen_again() -> None:
    """A new break in one full pair is open, in two it regresses."""
    once, twice = (ab(head={BREAKS: 1.0}, full=full) for full in (1, 2))
    assert state(find_row(once, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert state(find_row(twice, BREAKS)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_memory_is_judged_against_the_base_and_drift_by_its_limit() -> None:
    """A tenth more memory regresses, and so does drift beyond its limit that the base lacks."""
    verdict = ab(head={MEMORY: 1.1e8, DRIFT: 1.2})
    assert find_row(verdict, MEMORY).status is Status.REGRESSED
    assert state(find_row(verdict, DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_causes_compare_head_with_the_base() -> None:
    """Causes compare head with the base's code and graph breaks."""
    run = pair_up(PairedCase(head={LATENCY: 0.0108}))
    trials = tuple(
        replace(
            trial,
            identity=CodeIdentity(digest=trial.arm),
            graph_breaks=(GraphBreak(reason="print", location="model.py:3"),) * (trial.arm == "head"),
        )
        for trial in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=trials), POLICY)
    sentences = describe_causes(verdict)
    assert "New graph break at model.py:3: print" in sentences
    assert "The generated code changed." in sentences


@pytest.mark.parametrize(("digests", "expected"), [(("p", "p", "p"), True), (("p", "q", "p"), False)])
def test_code_that_differs_between_the_bases_own_pairs_did_not_change(
    digests: Sequence[str], expected: bool
) -> None:
    """Code that differs between the base's own pairs is no cause."""
    run = pair_up(PairedCase(pairs=3, head={LATENCY: 0.012}))
    trials = tuple(
        replace(trial, identity=CodeIdentity(digest=digests[trial.index - 1] if trial.arm == "base" else "q"))
        for trial in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=trials), POLICY)
    assert any(cause.fact.code is Code.CODE_CHANGED for cause in verdict.causes) is expected


@pytest.mark.parametrize("judge", [decide_side_by_side, lambda run, rules: decide_verdict(run, (), rules)])
@pytest.mark.parametrize("definition", ["", "another"])
def test_what_failed_and_the_base_lacks_is_measured_alone(judge: Judge, definition: str) -> None:
    """The next step of a failed case that the base lacks measures it alone."""
    lost = PairedCase(pairs=0, failures=(fail("head"),), base_definition=definition)
    other = "other/inference-float32-smoke-default"
    paired_case = PairedCase(case_id=other, pairs=0, failures=(replace(fail("head"), case_id=other),))
    verdict = judge(pair_up(lost, paired_case), POLICY)
    fix = "Read the log of each failed case, fix it and"
    assert describe_steps(verdict)[:2] == (
        f"{fix} run: compile-gate ab 1a2b3c4 --select {other}",
        f"{fix} measure it (the base has nothing to compare with it): compile-gate measure --select {CASE}",
    )
    assert render_command([CASE], (), verdict) == f"compile-gate measure --select {CASE}"


def test_case_that_the_base_lacks_is_new() -> None:
    """A case that the base lacks is NEW, and the note names the base."""
    verdict = ab(pairs=0, base_definition="", alone=ALONE)
    assert state(find_row(verdict, LATENCY)) == (Status.NEW, Reason.NO_BASELINE)
    assert any(f"{MAIN} does not have them" in note for note in write_notes(verdict))
    assert verdict.outcome is Outcome.NOTHING_COMPARED


def test_case_that_the_base_defines_otherwise_is_stale() -> None:
    """Pairs of two definitions are not compared, nor is head alone."""
    row = find_row(ab(pairs=0, alone=ALONE, base_definition="d0"), LATENCY)
    assert state(row) == (Status.NOT_COMPARABLE, Reason.STALE_DEFINITION)
    verdict = ab(head={LATENCY: 0.02}, base_definition="d0")
    assert state(find_row(verdict, LATENCY)) == (Status.NOT_COMPARABLE, Reason.STALE_DEFINITION)
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert write_opening(verdict) == f"1 case measured, none judged: nothing of {MAIN} to compare with."


def test_what_the_base_does_not_measure_is_not_judged() -> None:
    """Memory that only head measured is not judged, and a note says so."""
    run = pair_up(PairedCase(head={MEMORY: 1e9}))
    lacking = tuple(
        replace(trial, samples={key: value for key, value in trial.samples.items() if key is not MEMORY})
        if trial.arm == "base"
        else trial
        for trial in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=lacking), POLICY)
    assert state(find_row(verdict, MEMORY)) == (Status.NOT_COMPARABLE, Reason.NOT_MEASURED)
    text = f"Not judged in 1 case: peak memory. {MAIN} did not measure these metrics."
    assert text in write_notes(verdict)


def test_base_that_failed_is_not_comparable() -> None:
    """Without the base head's values are shown and not judged; notes and steps say why."""
    verdict = ab(pairs=0, alone=ALONE, failures=(fail("base"),))
    assert state(find_row(verdict, LATENCY)) == (Status.NOT_COMPARABLE, Reason.UNPAIRED)
    assert f"{MAIN} failed in 1 case: mlp/x." in write_notes(verdict)
    assert any("log of the base" in step for step in describe_steps(verdict))


def test_head_that_failed_makes_it_incomplete() -> None:
    """FAILED, with the stage and message."""
    verdict = ab(pairs=0, failures=(fail("head"),))
    assert verdict.outcome is Outcome.INCOMPLETE
    sentence = describe_comparison(find_row(verdict, LATENCY))
    assert sentence == "Error in stage build of trial 1 of head: ImportError: x"


def test_a_case_that_failed_in_the_base_alone_needs_no_more_time() -> None:
    """Without a pair the next step is the base's log, not more time."""
    verdict = ab(pairs=0, failures=(fail("base"),))
    assert verdict.outcome is Outcome.INCOMPLETE
    (step,) = describe_steps(verdict)
    assert step.startswith("Read the log of the base's cases")


def test_case_without_a_trial_is_missing() -> None:
    """A planned case without a trial is MISSING and needs more time; it has no log."""
    verdict = ab(pairs=0)
    assert state(find_row(verdict, LATENCY)) == (Status.MISSING, Reason.NOT_RUN)
    (step,) = describe_steps(verdict)
    assert step.startswith("There was no time for mlp/x: run the same again, with --resume")


def test_threshold_of_the_policy_holds_for_pairs() -> None:
    """8 % are below a threshold of 10 %, of all cases or of this one."""
    ten = Threshold(relative=0.10, absolute=0.0)
    stated = replace(POLICY, thresholds={**POLICY.thresholds, LATENCY: ten})
    override = Override(case="mlp/*", metric=LATENCY, relative=0.10, reason="noisy")
    for rules in (stated, replace(POLICY, overrides=(override,))):
        verdict = ab(rules, pairs=16, head={LATENCY: 0.0108})
        assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


def test_accepted_change_is_accepted_side_by_side() -> None:
    """8 % worse within an acceptance of 10 %."""
    acceptance = make_acceptance(LATENCY, 0.1, case=CASE, reason="safer", author="me", expires="2026-04-01")
    verdict = ab(replace(POLICY, acceptances=(acceptance,)), head={LATENCY: 0.0108})
    assert find_row(verdict, LATENCY).status is Status.ACCEPTED


@pytest.mark.parametrize(
    ("expires", "outcome", "note"),
    [
        ("2026-04-01", Outcome.NOTHING_COMPARED, "Quarantined by ada until 2026-04-01, so it"),
        ("2026-02-01", Outcome.REGRESSION, "The quarantine of mlp/* by ada expired on 2026-02-01"),
    ],
)
def test_a_quarantine_is_noted_side_by_side(expires: str, outcome: Outcome, note: str) -> None:
    """Notes on quarantines are those without pairs."""
    entry = Quarantine(case="mlp/*", metric=None, owner="ada", reason="two speeds", expires=expires)
    verdict = ab(replace(POLICY, quarantine=(entry,)), head={LATENCY: 0.012})
    assert verdict.outcome is outcome
    assert any(text.startswith(note) for text in write_notes(verdict))


def test_drift_beyond_its_limit_in_both_arms_is_noted() -> None:
    """Drift beyond the limit in both arms passes, with a note."""
    verdict = ab(base={DRIFT: 3.0}, head={DRIFT: 3.0})
    ending = "and so is the base's: only the change counts."
    assert any(note.startswith(f"{CASE}: drift ") and note.endswith(ending) for note in write_notes(verdict))


def test_a_case_with_one_pair_is_not_judged_by_wild_cases() -> None:
    """Three of twelve cases have a process three times as slow; the case with one pair has no bound."""
    quiet = [PairedCase(case_id=f"quiet/{n}", pairs=3, spread=(0.0, 0.008, -0.008)) for n in range(8)]
    stray = [PairedCase(case_id=f"stray/{n}", pairs=3, spread=(0.0, 1.1, 0.0)) for n in range(3)]
    verdict = decide_side_by_side(pair_up(*quiet, *stray, PairedCase(case_id="one/x", pairs=1)), POLICY)
    change = find_row(verdict, LATENCY, "one/x").change
    assert change is not None
    assert change.low == change.centre == change.high
    assert change.detectable > 1e5
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_time_of_zero_in_a_pair_is_not_judged() -> None:
    """A time of 0 s is INCONCLUSIVE and counts its pairs."""
    row = find_row(ab(head={LATENCY: 0.0}), LATENCY)
    assert (state(row), row.pairs) == ((Status.INCONCLUSIVE, Reason.UNSETTLED), 6)


def test_one_time_of_zero_leaves_the_other_pairs() -> None:
    """Five of six pairs judge the latency; head's value is the base's 10 ms times their change."""
    run = pair_up(PairedCase(spread=(0.0,) * 6))
    *kept, last = run.trials
    run = replace(run, trials=(*kept, replace(last, samples={**last.samples, LATENCY: (0.0,)})))
    row = find_row(decide_side_by_side(run, POLICY), LATENCY)
    assert (state(row), row.pairs) == ((Status.UNCHANGED, Reason.BELOW_THRESHOLD), 5)
    assert row.candidate is not None
    assert row.candidate.centre == pytest.approx(0.010)


def test_a_memory_ratio_worsens_only_with_its_peak() -> None:
    """Twice the ratio is UNCHANGED if only eager uses less."""
    ratio = Metric.MEMORY_RATIO
    row = find_row(ab(base={ratio: 0.5}, head={ratio: 1.0}), ratio)
    assert state(row) == (Status.UNCHANGED, Reason.LEADER_STANDS)


@pytest.mark.parametrize(("shard", "expected"), [(None, ("m1/x",)), (Shard(number=1, of=2, cases=2), ())])
def test_a_shard_misses_no_case_of_the_others(shard: Shard | None, expected: tuple[str, ...]) -> None:
    """Cases of the base that other shards measure are not missing."""
    run = pair_up(*(PairedCase(case_id=f"m{n}/x") for n in range(2)))
    verdict = decide_side_by_side(replace(run, cases=run.cases[:1], shard=shard), POLICY)
    gone = [note.cases for note in verdict.notes if note.code is Code.CASES_GONE]
    assert gone == ([expected] if expected else [])
