"""Pull requests simulated from recorded trials, judged by the real decision."""

import random
from dataclasses import replace

import pytest

from gate.calibrate.calibrate import (
    calibrate_gate,
    draw_request,
    gather_recorded,
    judge_request,
    replay_requests,
    slow_case,
)
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Disturbance, Fact
from gate.records.run import Conditions, Pairing, Trial
from gate.records.verdict import Outcome, Reason
from tests.make import POLICY
from tests.told import tell_note

from .drawn import EFFORT, draw_paired_run, draw_run, make_paired_run, run_cases


def test_no_trial_is_dealt_twice() -> None:
    """Five of eight trials are stored, the other three are the candidate's, and the order is drawn."""
    run = draw_run(cases=2, trials=8, noise=0.02)
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    for case, baseline in zip(run.cases, request.baselines, strict=True):
        stored = baseline.trials[Metric.COLD_COMPILE_TIME]
        left = tuple(trial.samples[Metric.COLD_COMPILE_TIME][0] for trial in request.candidates[case.id])
        assert (len(stored), len(left)) == (5, 3)
        known = [trial.samples[Metric.COLD_COMPILE_TIME][0] for trial in recorded.trials[case.id]]
        dealt = (*stored, *(float(f"{seconds:.6g}") for seconds in left))  # stored ones are rounded
        assert sorted(dealt) == sorted(float(f"{seconds:.6g}") for seconds in known)


def test_seeds_repeat() -> None:
    """The same seed gives the same replay, another one another."""
    run = draw_run(cases=3, trials=8, noise=0.05)
    first = replay_requests(run, POLICY, EFFORT)
    assert first == replay_requests(run, POLICY, EFFORT)
    assert first != replay_requests(run, POLICY, replace(EFFORT, seed=1))


def test_trials_that_agree_never_alarm() -> None:
    """Without any noise no simulated pull request is anything but a pass, in one trial a case."""
    run = run_cases(*({Metric.COLD_COMPILE_TIME: [10.0] * 8} for _ in range(4)))
    replay = replay_requests(run, POLICY, EFFORT)
    assert replay is not None
    assert (replay.regressed.hits, replay.inconclusive.hits, replay.regressed.of) == (0, 0, 40)
    assert replay.trials == 4.0


def test_a_request_that_lacks_a_metric_fails_its_check() -> None:
    """As where a profiler counts nothing now and then: such a check is INCOMPLETE, and no quiet one."""
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0] * 8, Metric.GRAPH_BREAKS: [0.0] * 8})
    half = [
        trial if trial.index % 2 else replace(trial, samples={**trial.samples, Metric.GRAPH_BREAKS: ()})
        for trial in run.trials
    ]
    replay = replay_requests(replace(run, trials=tuple(half)), POLICY, EFFORT)
    assert replay is not None
    assert replay.regressed.hits > 0


def test_a_large_slowdown_is_always_caught() -> None:
    """Compiled latency up by half at 1 % noise is REGRESSED in each of 40 pull requests."""
    replay = replay_requests(draw_run(cases=4, trials=8, noise=0.01), POLICY, EFFORT, planted=0.5)
    assert replay is not None
    assert (replay.regressed.hits, replay.regressed.of, replay.planted) == (40, 40, 0.5)


def test_undecided_cases_get_more_trials() -> None:
    """A slowdown near the threshold is looked at with up to three trials, and only its own case."""
    run = draw_run(cases=4, trials=8, noise=0.005)
    replay = replay_requests(run, POLICY, EFFORT, planted=0.06)
    assert replay is not None
    assert 4.0 < replay.trials <= 6.0


def test_a_request_is_judged_as_a_check_is() -> None:
    """The verdict counts the trials it was given: one a case where nothing looks changed."""
    run = draw_run(cases=5, trials=8, noise=0.0001)
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    checked = judge_request(recorded.run, request, POLICY, EFFORT)
    assert (checked.verdict.outcome, checked.verdict.trials) == (Outcome.PASS, 5)
    assert all(trial.pairing is Pairing.ALONE for trial in checked.run.trials)


@pytest.mark.parametrize(("factor", "reason"), [(1.3, Reason.BEYOND_BAR), (1.0, Reason.UNCORROBORATED)])
def test_a_replayed_screen_knows_processor_time(factor: float, reason: Reason) -> None:
    """A cold compile that takes 30 % longer by the clock is red where its CPU time rose as much."""
    run = draw_run(cases=4, trials=8, noise=0.001)
    run = replace(run, trials=tuple(replace(one, phases_s={"cpu_self": 8.0}) for one in run.trials))
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    slower = [
        replace(
            one,
            samples={**one.samples, Metric.COLD_COMPILE_TIME: (12.0 * 1.3,)},
            phases_s={"cpu_self": 8.0 * factor},
        )
        for one in request.candidates["m0/x"]
    ]
    request = replace(request, candidates={**request.candidates, "m0/x": slower})
    verdict = judge_request(recorded.run, request, POLICY, EFFORT).verdict
    (found,) = (
        one for one in verdict.comparisons if one.case_id == "m0/x" and one.metric is Metric.COLD_COMPILE_TIME
    )
    assert found.reason is reason


@pytest.mark.parametrize(("trials", "replayed"), [(5, False), (6, True)])
def test_too_few_trials_are_not_replayed(trials: int, replayed: bool) -> None:
    """Three for a baseline and three for the candidate are the least."""
    run = draw_run(cases=2, trials=trials, noise=0.01)
    assert (replay_requests(run, POLICY, EFFORT) is not None) is replayed


def test_calibration_sums_up() -> None:
    """Noise of each case and metric, three replays of 40, 10 and 10 requests, and what to know."""
    run = draw_run(cases=2, trials=7, noise=0.01)
    calibration = calibrate_gate(run, POLICY, EFFORT)
    assert (calibration.case_ids, calibration.trials) == (("m0/x", "m1/x"), 14)
    assert len(calibration.noise) == 10  # four metrics and the speedup, of two cases
    assert [(one.planted, one.regressed.of) for one in calibration.replays] == [
        (0, 40),
        (0.05, 10),
        (0.1, 10),
    ]


def test_calibration_of_few_trials_says_so() -> None:
    """Nothing is replayed, and the note names the number of trials that it takes."""
    calibration = calibrate_gate(draw_run(cases=2, trials=3, noise=0.01), POLICY, EFFORT)
    assert calibration.replays == ()
    assert "2 of 2 cases were not replayed: that takes 6 trials of each (--trials 6)." in [
        *map(tell_note, calibration.notes)
    ]


def test_calibration_of_a_stopped_run_says_what_is_unknown() -> None:
    """Stopped after one trial of two cases and eight of a third: each limit of what is known has its note."""
    run = draw_run(cases=3, trials=8, noise=0.01)
    kept = tuple(one for one in run.trials if one.case_id == "m2/x" or one.index == 1)
    few = replace(EFFORT, requests=4)
    notes = tuple(
        map(tell_note, calibrate_gate(replace(run, trials=kept, finished=False), POLICY, few).notes)
    )
    assert notes[:3] == (
        "The run was stopped before its end.",
        "Not enough trials of m0/x and 1 more: it takes 2 trials of a case.",
        "2 of 3 cases were not replayed: that takes 6 trials of each (--trials 6).",
    )


def test_the_time_of_a_check_ends_its_trials() -> None:
    """Trials of 15 s near the threshold: in 20 s of a check there is no second one."""
    run = draw_run(cases=1, trials=8, noise=0.005)
    timed = replace(run, trials=tuple(replace(one, stages_s={"rounds": 15.0}) for one in run.trials))
    free, short = (
        replay_requests(timed, POLICY, replace(EFFORT, budget_s=limit), planted=0.06)
        for limit in (None, 20.0)
    )
    assert free is not None
    assert short is not None
    assert free.trials > 1.0
    assert short.trials == 1.0


def test_what_has_no_latency_is_not_slowed() -> None:
    """Compile times alone are replayed as they are, and nothing is planted."""
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0 + 0.01 * index for index in range(8)]})
    assert replay_requests(run, POLICY, EFFORT) is not None
    assert replay_requests(run, POLICY, EFFORT, planted=0.1) is None


def test_what_is_slowed_runs_other_code() -> None:
    """Head's own trials and its arm of each pair; the base's arm and the other case stay what they were."""
    run = draw_paired_run(cases=2, trials=8, pairs=8, noise=0.01)
    known = tuple(replace(one, identity=replace(one.identity, digest="c0de")) for one in run.trials)
    recorded = gather_recorded(replace(run, trials=known), EFFORT)
    drawn = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    slower = slow_case(drawn, "m0/x", 1.1)
    heads = [*slower.candidates["m0/x"], *(pair.head for pair in slower.pairs["m0/x"])]
    assert {trial.identity.digest for trial in heads} == {"c0de slower"}
    assert [pair.base for pair in slower.pairs["m0/x"]] == [pair.base for pair in drawn.pairs["m0/x"]]
    assert slower.candidates["m1/x"] == drawn.candidates["m1/x"]


def test_pairs_let_a_request_be_confirmed() -> None:
    """With pairs suspects go side by side: 10 % at 1 % of noise is caught each time, and 0 never is."""
    run = draw_paired_run(cases=4, trials=8, pairs=8, noise=0.01)
    null, slowed = replay_requests(run, POLICY, EFFORT), replay_requests(run, POLICY, EFFORT, planted=0.1)
    assert null is not None
    assert slowed is not None
    assert (null.regressed.hits, null.inconclusive.hits) == (0, 0)
    assert (slowed.regressed.hits, slowed.inconclusive.hits) == (40, 0)
    assert 3.0 <= slowed.pairs < 16.0  # three at the first look


def test_time_for_pairs_ends_in_a_replay_too() -> None:
    """In 36 s there is room for two pairs of latencies, or for one with compiles of 30 s.

    The first takes 12 s and 7 s to compile, the second 12 s.

    Pairs that vary by 4 % do not settle a slowdown of 10 % in two, and do in sixteen.
    """
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.03)
    timed = tuple(replace(one, stages_s={"rounds": 15.0}) for one in run.trials)
    free, short = (
        replay_requests(replace(run, trials=timed), POLICY, replace(EFFORT, pair_budget_s=limit), planted=0.1)
        for limit in (None, 36.0)
    )
    assert free is not None
    assert short is not None
    assert free.regressed.hits == 40
    assert 1.5 < short.pairs <= 2.0
    assert short.inconclusive.hits > 20


def test_without_enough_pairs_of_every_case_none_are_used() -> None:
    """A case with five pairs could not be confirmed in earnest, so all are judged without a base."""
    run = draw_paired_run(cases=3, trials=8, pairs=6, noise=0.01)
    kept = (
        one for one in run.trials if one.case_id != "m0/x" or one.pairing is Pairing.ALONE or one.index < 6
    )
    run = replace(run, trials=tuple(kept))
    replay = replay_requests(run, POLICY, EFFORT, planted=0.1)
    assert replay is not None
    assert replay.pairs == 0.0


def test_latencies_are_drawn_apart_from_compile_times() -> None:
    """Of eight pairs two have latencies alone: each simulated pair is whole, six compile times among them."""
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.01)
    trials = (
        _drop_compile_times(one) if one.pairing is Pairing.TURNS and one.index > 6 else one
        for one in run.trials
    )
    recorded = gather_recorded(replace(run, trials=tuple(trials)), EFFORT)
    generator = random.Random(0)  # noqa: S311 - repeatable
    drawn = [pair for _ in range(20) for pair in draw_request(recorded, EFFORT, generator).pairs["m0/x"]]
    found = {
        metric: {pair.head.samples[metric] for pair in drawn} | {pair.base.samples[metric] for pair in drawn}
        for metric in (Metric.COLD_COMPILE_TIME, Metric.COMPILED_LATENCY)
    }
    assert [len(values) for values in found.values()] == [2 * 6, 2 * 8]


def test_a_pair_of_latencies_alone_rehearses_no_compile() -> None:
    """With five whole pairs of eight nothing is confirmed, and the note says what it takes."""
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.01)
    trials = (
        _drop_compile_times(one) if one.pairing is Pairing.TURNS and one.index > 5 else one
        for one in run.trials
    )
    run = replace(run, trials=tuple(trials))
    assert not gather_recorded(run, EFFORT).pairs
    assert Fact(code=Code.REPLAYED_ALONE, numbers={"pairs": 6}) in calibrate_gate(run, POLICY, EFFORT).notes


def _drop_compile_times(trial: Trial) -> Trial:
    kept = {metric: values for metric, values in trial.samples.items() if "compile_time" not in metric}
    return replace(trial, samples=kept)


def test_calibration_describes_pairs() -> None:
    """Pairs are counted, and beside the noise of trials stands that of pairs."""
    calibration = calibrate_gate(draw_paired_run(cases=2, trials=6, pairs=5, noise=0.01), POLICY, EFFORT)
    assert (calibration.trials, calibration.pairs) == (12, 10)
    beside = [one.side_by_side for one in calibration.noise if one.metric is Metric.COLD_COMPILE_TIME]
    assert [one.pairs for one in beside if one is not None] == [5, 5]


def test_a_chance_deviation_of_few_pairs_is_no_change() -> None:
    """Recorded pairs that happen to lean by 8 % one way are drawn either way round."""
    leaning = make_paired_run(Metric.COLD_COMPILE_TIME, 10.0, (0.08, 0.081, 0.079) * 2)
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0 + 0.1 * index for index in range(8)]})
    beside = tuple(replace(trial, case_id="m0/x") for trial in leaning.trials)
    request = draw_request(
        gather_recorded(replace(run, trials=(*run.trials, *beside)), EFFORT),
        EFFORT,
        random.Random(0),  # noqa: S311 - repeatable
    )
    heads = [pair.head.samples[Metric.COLD_COMPILE_TIME][0] for pair in request.pairs["m0/x"]]
    assert {pair.base.arm for pair in request.pairs["m0/x"]} == {"base"}
    assert 0 < heads.count(10.0) < len(heads)


def test_calibration_tells_of_an_unfit_host() -> None:
    """Noise that was learned while others were at work is their noise too, so it is noted."""
    run = draw_run(cases=1, trials=4, noise=0.01)
    busy = Conditions(disturbances=(Disturbance.SWAPPED,), swapped_bytes=2 * 2**20)
    run = replace(run, trials=(replace(run.trials[0], conditions=busy), *run.trials[1:]))
    notes = tuple(map(tell_note, calibrate_gate(run, POLICY, EFFORT).notes))
    assert notes[0] == "The machine was disturbed during 1 of 4 trials: 2.00 MiB were swapped."


def test_the_noise_of_a_machine_is_no_cases() -> None:
    """Trials that vary by half blame both cases; only the one that was not disturbed where the other was."""
    run, few = draw_run(cases=2, trials=6, noise=0.5), replace(EFFORT, requests=4)
    assert {one.case_id for one in calibrate_gate(run, POLICY, few).unstable} == {"m0/x", "m1/x"}
    crowded = Conditions(foreign_cores=2.0, disturbances=(Disturbance.CROWDED,))
    trials = (replace(one, conditions=crowded) if one.case_id == "m0/x" else one for one in run.trials)
    calibration = calibrate_gate(replace(run, trials=tuple(trials)), POLICY, few)
    assert calibration.disturbed == ("m0/x",)
    assert {one.case_id for one in calibration.unstable} == {"m1/x"}


def test_a_replay_without_pairs_says_so() -> None:
    """The note names the pairs that it takes, and is not there when they are."""
    few = replace(EFFORT, requests=4)
    runs = (draw_run(cases=1, trials=8, noise=0.01), draw_paired_run(cases=1, trials=8, pairs=6, noise=0.01))
    told = [" ".join(map(tell_note, calibrate_gate(run, POLICY, few).notes)) for run in runs]
    assert "Replayed without a base: that takes 6 pairs of every case (--pairs 6)" in told[0]
    assert "Replayed without a base" not in told[1]
