"""Whole verdicts by pairs, without anything stored."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.accept import apply_acceptances, compute_acceptance_limit
from gate.decide.constants import LIVE_PAIR_SD, PRIOR_DF
from gate.decide.side_by_side import decide_side_by_side, gather_judged
from gate.decide.verdict import decide_verdict
from gate.records.cases import Acceptance, Metric, Override, Policy, Quarantine, Threshold
from gate.records.codes import Code
from gate.records.run import CodeIdentity, GraphBreak, Provenance, Shard
from gate.records.verdict import Outcome, PairBase, Reason, Status, Verdict
from gate.report.case_blocks import render_command
from gate.report.words.comparisons import complete_sentence
from gate.report.words.facts import describe_cause
from tests.make import POLICY, PairedCase, find_row, pair_up, state
from tests.told import tell_headline, tell_notes, tell_row, tell_steps

from .one_case import BREAKS, CASE, COLD, EAGER, LATENCY, SPEEDUP, WARM, fail

CALLS, MEMORY, DRIFT = Metric.COMPILE_CALLS, Metric.PEAK_MEMORY, Metric.DRIFT
MAIN = "main (1a2b3c4)"
ALONE = {LATENCY: (0.010,), EAGER: (0.020,)}

Judge = Callable[..., Verdict]


def ab(rules: Policy = POLICY, **changes: Any) -> Verdict:
    """The verdict on one case that ran in pairs."""
    return decide_side_by_side(pair_up(PairedCase(**changes)), rules)


def ab_busy(clock: float, processor: float, calls: float) -> Verdict:
    """The verdict of six pairs whose cold compile takes other times and makes other calls in head."""
    run = pair_up(PairedCase(head={COLD: 10.0 * clock, CALLS: 4e6 * calls}))
    spent_s = {"base": 1.0, "head": processor}
    trials = tuple(
        replace(one, phases_s={"cpu_self": 2.0 * spent_s[one.arm], "cpu_children": 6.0 * spent_s[one.arm]})
        for one in run.trials
    )
    return decide_side_by_side(replace(run, trials=trials), POLICY)


@pytest.mark.parametrize(
    ("cases", "expected", "df"), [(4, LIVE_PAIR_SD**2, PRIOR_DF), (5, 0.03**2 / (8 / 9) ** 3, 4.0)]
)
def test_noise_of_pairs_is_learned_from_the_first_of_each_case(
    cases: int, expected: float, df: float
) -> None:
    """3, 0 and -3 % have the variance 0.03^2 with 2 df, whatever comes later; four others teach 4 df."""
    wild = (0.03, 0.0, -0.03, 0.5, -0.5, 0.3)
    run = pair_up(*(PairedCase(case_id=f"m{number}/x", spread=wild) for number in range(cases)))
    prior = gather_judged(run, POLICY)[1].priors[LATENCY, True]["m0/x"]
    assert (prior.value, prior.df) == (pytest.approx(expected), df)


def test_equal_arms_pass() -> None:
    """Nothing differs: PASS, every noisy metric acquitted by six pairs, counters equal."""
    verdict = ab()
    assert verdict.outcome is Outcome.PASS
    assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert state(find_row(verdict, BREAKS)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
    assert find_row(verdict, LATENCY).pairs == 6
    assert tell_headline(verdict).startswith("Nothing got worse: ")
    assert tell_headline(verdict).endswith(f", against {MAIN}.")
    assert tell_notes(verdict) == ()
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
    """By its commit, unless that does not tell all of it; another stack is told apart."""
    run = pair_up(PairedCase())
    assert run.base is not None
    if "environment" in changes:
        changes = {"environment": replace(run.base.environment, torch="2.11.0")}
    run = replace(run, base=replace(run.base, **changes))
    assert expected == decide_side_by_side(run, POLICY).base


def test_slower_compiled_is_confirmed_with_its_speedup() -> None:
    """Compiled 8 % slower under the same eager: both have regressed, and eager did not move."""
    verdict = ab(head={LATENCY: 0.0108})
    assert verdict.outcome is Outcome.REGRESSION
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert state(find_row(verdict, SPEEDUP)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert find_row(verdict, LATENCY).change.centre == pytest.approx(0.08, abs=0.005)  # type: ignore[union-attr] # judged
    beside = "Beyond the threshold of 3 % in 6 pairs side by side with the base"
    assert beside.lower() in tell_row(find_row(verdict, LATENCY)).lower()
    assert "(eager changed by 0.0 %)" in tell_row(find_row(verdict, LATENCY))
    told = f"2 metrics slower in mlp: compiled latency 10.0 ms -> 10.8 ms (+8.3 %), against {MAIN}."
    assert tell_headline(verdict) == f"{told} Unexplained: nothing that was recorded explains it."


def test_both_slower_is_a_regression_of_what_they_share() -> None:
    """Eager and compiled 10 % slower in the same moments: the code did it, and the sentence says so."""
    verdict = ab(head={LATENCY: 0.011, EAGER: 0.022})
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert "eager changed by +10.0 %" in tell_row(find_row(verdict, LATENCY))
    assert find_row(verdict, SPEEDUP).status is Status.UNCHANGED
    assert not find_row(verdict, EAGER).decides


def test_faster_eager_is_no_regression() -> None:
    """The speedup falls by a fifth because eager got faster: told, not failed."""
    verdict = ab(head={EAGER: 0.016})
    assert verdict.outcome is Outcome.PASS
    assert state(find_row(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.LEADER_STANDS)


def test_slower_eager_is_no_improvement() -> None:
    """The speedup rises because eager got slower: compiled did not improve."""
    verdict = ab(head={EAGER: 0.024})
    assert state(find_row(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.LEADER_STANDS)


def test_faster_compiled_has_improved() -> None:
    """8 % faster in six pairs."""
    verdict = ab(head={LATENCY: 0.010 / 1.08})
    assert state(find_row(verdict, LATENCY)) == (Status.IMPROVED, Reason.BEYOND_BAR)
    assert state(find_row(verdict, SPEEDUP)) == (Status.IMPROVED, Reason.BEYOND_BAR)


@pytest.mark.parametrize("busy", [0.2, 0.9])
def test_what_pairs_do_not_settle_says_if_the_host_is_in_it(busy: float) -> None:
    """2.5 % after six pairs, of calls of which a GPU computes for a fifth, or for nine tenths."""
    verdict = ab(head={LATENCY: 0.01025}, base={Metric.DEVICE_UTILIZATION: busy})
    told = "The GPU computes for 20 % of a call; for the rest it waits for the host, which varies."
    assert (told in tell_row(find_row(verdict, LATENCY))) is (busy < 0.9)
    assert told not in tell_row(find_row(verdict, COLD))


def test_what_pairs_do_not_settle_says_what_they_could_see() -> None:
    """2.5 % after six pairs: open, with the interval, what would have been seen and the pairs it takes."""
    verdict = ab(head={LATENCY: 0.01025})
    found = find_row(verdict, LATENCY)
    assert state(found) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert found.more_pairs
    needed = f"inconclusive in 6 pairs side by side with the base (needs {found.more_pairs} more"
    assert needed in tell_row(found)
    assert "would have been noticed" in complete_sentence(found)
    assert any("compile-gate ab 1a2b3c4 --select mlp/x" in step for step in tell_steps(verdict))


def test_case_that_head_lacks_is_told() -> None:
    """A case that only the base defines cannot be measured in head, and does not vanish in silence."""
    run = pair_up(PairedCase(case_id="mlp/x"), PairedCase(case_id="mlp/gone"))
    kept = replace(run, cases=run.cases[:1], trials=tuple(t for t in run.trials if t.case_id == "mlp/x"))
    told = "main (1a2b3c4) has 1 case that head does not have: mlp/gone."
    assert told in tell_notes(decide_side_by_side(kept, Policy(thresholds={})))
    assert not any(
        "head lacks" in note for note in tell_notes(decide_side_by_side(run, Policy(thresholds={})))
    )


@pytest.mark.parametrize(("metric", "seconds"), [(COLD, 10.0), (WARM, 3.0)])
def test_a_longer_compile_is_convicted_by_the_clock_of_its_pairs(metric: Metric, seconds: float) -> None:
    """Half as long again in six pairs with the same calls: only CPU time would tell that it waited."""
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
    """By clock, CPU time and Python calls: 30 % more work is convicted, however soon it was done.

    7 % more is cleared, unless Python calls rose too; what took longer and worked no more is open.
    """
    row = find_row(ab_busy(*factors), COLD)
    assert state(row) == expected
    told = f"judged by CPU time, {100 * (factors[1] - 1):+.1f} %"
    assert told in tell_row(row) or factors[1] == 1.0


def test_an_acceptance_of_a_compile_is_held_against_what_judged_it() -> None:
    """By the clock 5 % longer, by CPU time 30 %: 29 % are too few, and what is suggested covers it."""
    row = find_row(ab_busy(1.05, 1.3, 1.0), COLD)
    assert row.status is Status.REGRESSED
    limit = compute_acceptance_limit(row)
    for allowance, expected in ((0.29, Status.REGRESSED), (limit, Status.ACCEPTED)):
        accepted = Acceptance(
            case=CASE, metric=COLD, allowance=allowance, reason="r", author="ada", expires="2026-12-31"
        )
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
    """3 s in the base, 15 % of which may pass, in pairs that vary by a tenth: three at least."""
    verdict = ab(pairs=pairs, head={WARM: seconds, CALLS: calls}, spread=(0.1, -0.1, 0.0))
    assert find_row(verdict, WARM).status is expected


def test_new_graph_break_must_be_seen_again() -> None:
    """A break more in the only full pair is open, in two it has regressed."""
    once, twice = (ab(head={BREAKS: 1.0}, full=full) for full in (1, 2))
    assert state(find_row(once, BREAKS)) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert state(find_row(twice, BREAKS)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_memory_is_judged_against_the_base_and_drift_by_its_limit() -> None:
    """A tenth more memory; and drift beyond its limit, which the base did not measure."""
    verdict = ab(head={MEMORY: 1.1e8, DRIFT: 1.2})
    assert find_row(verdict, MEMORY).status is Status.REGRESSED
    assert state(find_row(verdict, DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_causes_hold_head_against_the_base() -> None:
    """The base's generated code and graph breaks are the stored side."""
    run = pair_up(PairedCase(head={LATENCY: 0.0108}))
    trials = tuple(
        replace(
            one,
            identity=CodeIdentity(digest=one.arm),
            graph_breaks=(GraphBreak(reason="print", location="model.py:3"),) * (one.arm == "head"),
        )
        for one in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=trials), POLICY)
    sentences = [describe_cause(one.fact) for one in verdict.causes]
    assert "New graph break at model.py:3: print" in sentences
    assert "The generated code changed." in sentences


@pytest.mark.parametrize(("digests", "told"), [(("p", "p", "p"), True), (("p", "q", "p"), False)])
def test_code_that_differs_between_the_bases_own_pairs_did_not_change(
    digests: Sequence[str], told: bool
) -> None:
    """Where the base generates now this and now that, as tuning does, head's code is not called another."""
    run = pair_up(PairedCase(pairs=3, head={LATENCY: 0.012}))
    trials = tuple(
        replace(one, identity=CodeIdentity(digest=digests[one.index - 1] if one.arm == "base" else "q"))
        for one in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=trials), POLICY)
    assert any(one.fact.code is Code.CODE_CHANGED for one in verdict.causes) is told


@pytest.mark.parametrize("judge", [decide_side_by_side, lambda run, rules: decide_verdict(run, (), rules)])
@pytest.mark.parametrize("definition", ["", "another"])
def test_what_failed_and_the_base_lacks_is_measured_alone(judge: Judge, definition: str) -> None:
    """Compared with the base it would end without a result, however well it is fixed."""
    lost = PairedCase(pairs=0, failures=(fail("head"),), base_definition=definition)
    other = "other/inference-float32-smoke-default"
    known = PairedCase(case_id=other, pairs=0, failures=(replace(fail("head"), case_id=other),))
    verdict = judge(pair_up(lost, known), POLICY)
    fix = "Read the log of each failed case, fix it and"
    assert tell_steps(verdict)[:2] == (
        f"{fix} run: compile-gate ab 1a2b3c4 --select {other}",
        f"{fix} measure it (the base has nothing to compare with it): compile-gate measure --select {CASE}",
    )
    assert render_command([CASE], (), verdict) == f"compile-gate measure --select {CASE}"


def test_case_that_the_base_lacks_is_new() -> None:
    """Nothing to hold it against: NEW, and the note names the base."""
    verdict = ab(pairs=0, base_definition="", alone=ALONE)
    assert state(find_row(verdict, LATENCY)) == (Status.NEW, Reason.NO_BASELINE)
    assert any(f"{MAIN} does not have them" in note for note in tell_notes(verdict))
    assert verdict.outcome is Outcome.NOTHING_COMPARED


def test_case_that_the_base_defines_otherwise_is_stale() -> None:
    """Pairs of two different workloads say nothing, whatever they measured."""
    verdict = ab(head={LATENCY: 0.02}, base_definition="d0")
    assert state(find_row(verdict, LATENCY)) == (Status.NOT_COMPARABLE, Reason.STALE_DEFINITION)
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert tell_headline(verdict) == f"1 case measured, none judged: nothing of {MAIN} to compare with."


def test_what_the_base_does_not_measure_is_not_judged() -> None:
    """Its second process gave no memory, and head's did: the note says so, and the rest is judged."""
    run = pair_up(PairedCase(head={MEMORY: 1e9}))
    lacking = tuple(
        replace(one, samples={key: value for key, value in one.samples.items() if key is not MEMORY})
        if one.arm == "base"
        else one
        for one in run.trials
    )
    verdict = decide_side_by_side(replace(run, trials=lacking), POLICY)
    assert state(find_row(verdict, MEMORY)) == (Status.NOT_COMPARABLE, Reason.NOT_MEASURED)
    told = f"Not judged in 1 case: peak memory. {MAIN} did not measure these metrics."
    assert told in tell_notes(verdict)


def test_base_that_failed_is_not_comparable() -> None:
    """The head's measurements are shown and not judged; the notes and steps say why."""
    verdict = ab(pairs=0, alone=ALONE, failures=(fail("base"),))
    assert state(find_row(verdict, LATENCY)) == (Status.NOT_COMPARABLE, Reason.UNPAIRED)
    assert f"{MAIN} failed in 1 case: mlp/x." in tell_notes(verdict)
    assert any("log of the base" in step for step in tell_steps(verdict))


def test_head_that_failed_makes_it_incomplete() -> None:
    """FAILED, with the stage and message."""
    verdict = ab(pairs=0, failures=(fail("head"),))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert tell_row(find_row(verdict, LATENCY)) == "Error in stage build of trial 1 of head: ImportError: x"


def test_a_case_that_failed_in_the_base_alone_needs_no_more_time() -> None:
    """No pair came back and head has no trial of its own: the base's log says why."""
    verdict = ab(pairs=0, failures=(fail("base"),))
    assert verdict.outcome is Outcome.INCOMPLETE
    (step,) = tell_steps(verdict)
    assert step.startswith("Read the log of the base's cases")


def test_case_without_a_trial_is_missing() -> None:
    """Planned and not run: MISSING. There is no log to read: what it needs is more time."""
    verdict = ab(pairs=0)
    assert state(find_row(verdict, LATENCY)) == (Status.MISSING, Reason.NOT_RUN)
    (step,) = tell_steps(verdict)
    assert step.startswith("There was no time for mlp/x: run the same again, with --resume")


def test_threshold_of_the_policy_holds_for_pairs() -> None:
    """8 % is below a threshold of 10 %, stated for all or for this case."""
    ten = Threshold(relative=0.10, absolute=0.0)
    stated = replace(POLICY, thresholds={**POLICY.thresholds, LATENCY: ten})
    override = Override(case="mlp/*", metric=LATENCY, relative=0.10, reason="noisy")
    for rules in (stated, replace(POLICY, overrides=(override,))):
        verdict = ab(rules, pairs=16, head={LATENCY: 0.0108})
        assert state(find_row(verdict, LATENCY)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


def test_accepted_change_is_accepted_side_by_side() -> None:
    """8 % worse within an acceptance of 10 %."""
    known = Acceptance(
        case=CASE, metric=LATENCY, allowance=0.10, reason="safer", author="me", expires="2026-04-01"
    )
    verdict = ab(replace(POLICY, acceptances=(known,)), head={LATENCY: 0.0108})
    assert find_row(verdict, LATENCY).status is Status.ACCEPTED


@pytest.mark.parametrize(
    ("expires", "outcome", "note"),
    [
        ("2026-04-01", Outcome.NOTHING_COMPARED, "Quarantined by ada until 2026-04-01, so it"),
        ("2026-02-01", Outcome.REGRESSION, "The quarantine of mlp/* by ada expired on 2026-02-01"),
    ],
)
def test_a_quarantine_is_told_side_by_side(expires: str, outcome: Outcome, note: str) -> None:
    """What it keeps from deciding, or that it expired, as without pairs."""
    entry = Quarantine(case="mlp/*", metric=None, owner="ada", reason="two speeds", expires=expires)
    verdict = ab(replace(POLICY, quarantine=(entry,)), head={LATENCY: 0.012})
    assert verdict.outcome is outcome
    assert any(told.startswith(note) for told in tell_notes(verdict))


def test_drift_beyond_its_limit_in_both_arms_is_told() -> None:
    """Only the change counts where the base is beyond the threshold as well, and a note says so."""
    verdict = ab(base={DRIFT: 3.0}, head={DRIFT: 3.0})
    told = "and so is the base's: only the change counts."
    assert any(note.startswith(f"{CASE}: drift ") and note.endswith(told) for note in tell_notes(verdict))


def test_a_case_with_one_pair_is_judged_beside_cases_that_differ_wildly() -> None:
    """Eight quiet cases, three with a process three times as slow, one with one pair, which has no bound."""
    quiet = [PairedCase(case_id=f"quiet/{n}", pairs=3, spread=(0.0, 0.008, -0.008)) for n in range(8)]
    stray = [PairedCase(case_id=f"stray/{n}", pairs=3, spread=(0.0, 1.1, 0.0)) for n in range(3)]
    verdict = decide_side_by_side(pair_up(*quiet, *stray, PairedCase(case_id="one/x", pairs=1)), POLICY)
    change = find_row(verdict, LATENCY, "one/x").change
    assert change is not None
    assert change.low == change.centre == change.high
    assert change.detectable > 1e5
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_time_of_zero_in_a_pair_is_not_judged() -> None:
    """There is no ratio to zero seconds: INCONCLUSIVE, with the pairs that came back."""
    found = find_row(ab(head={LATENCY: 0.0}), LATENCY)
    assert (state(found), found.pairs) == ((Status.INCONCLUSIVE, Reason.UNSETTLED), 6)


def test_one_time_of_zero_leaves_the_other_pairs() -> None:
    """Five of six pairs judge the latency; head's mean is then the base's, 10 ms, times their change."""
    run = pair_up(PairedCase(spread=(0.0,) * 6))
    *kept, last = run.trials
    run = replace(run, trials=(*kept, replace(last, samples={**last.samples, LATENCY: (0.0,)})))
    found = find_row(decide_side_by_side(run, POLICY), LATENCY)
    assert (state(found), found.pairs) == ((Status.UNCHANGED, Reason.BELOW_THRESHOLD), 5)
    assert found.candidate is not None
    assert found.candidate.centre == pytest.approx(0.010)


def test_a_memory_ratio_worsens_only_with_its_peak() -> None:
    """Compiled over eager memory doubles while compiled stays: eager got leaner."""
    ratio = Metric.MEMORY_RATIO
    found = find_row(ab(base={ratio: 0.5}, head={ratio: 1.0}), ratio)
    assert state(found) == (Status.UNCHANGED, Reason.LEADER_STANDS)


@pytest.mark.parametrize(("shard", "expected"), [(None, ("m1/x",)), (Shard(number=1, of=2, cases=2), ())])
def test_a_shard_misses_no_case_of_the_others(shard: Shard | None, expected: tuple[str, ...]) -> None:
    """The base has them all, and head's other shards measure them."""
    run = pair_up(*(PairedCase(case_id=f"m{n}/x") for n in range(2)))
    verdict = decide_side_by_side(replace(run, cases=run.cases[:1], shard=shard), POLICY)
    gone = [note.cases for note in verdict.notes if note.code is Code.CASES_GONE]
    assert gone == ([expected] if expected else [])
