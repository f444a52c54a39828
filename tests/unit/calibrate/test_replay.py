"""Pull requests simulated from recorded trials, with the real decision."""

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
from tests.make import POLICY, find_row
from tests.words import write_note

from .drawn import EFFORT, draw_paired_run, draw_run, make_paired_run, run_cases


def test_no_trial_is_dealt_twice() -> None:
    """Five of eight trials are stored and the other three are the candidate's, in a random order."""
    run = draw_run(cases=2, trials=8, noise=0.02)
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    for case, baseline in zip(run.cases, request.baselines, strict=True):
        stored = baseline.trials[Metric.COLD_COMPILE_TIME]
        left = tuple(trial.samples[Metric.COLD_COMPILE_TIME][0] for trial in request.candidates[case.id])
        assert (len(stored), len(left)) == (5, 3)
        recorded_s = [trial.samples[Metric.COLD_COMPILE_TIME][0] for trial in recorded.trials[case.id]]
        dealt = (*stored, *(float(f"{seconds:.6g}") for seconds in left))  # stored ones are rounded
        assert sorted(dealt) == sorted(float(f"{seconds:.6g}") for seconds in recorded_s)


def test_seeds_repeat() -> None:
    """The same seed gives the same replay, another one does not."""
    run = draw_run(cases=3, trials=8, noise=0.05)
    first = replay_requests(run, POLICY, EFFORT)
    assert first == replay_requests(run, POLICY, EFFORT)
    assert first != replay_requests(run, POLICY, replace(EFFORT, seed=1))


def test_trials_that_agree_never_alarm() -> None:
    """Without noise every simulated pull request passes, with one trial a case."""
    run = run_cases(*({Metric.COLD_COMPILE_TIME: [10.0] * 8} for _ in range(4)))
    replay = replay_requests(run, POLICY, EFFORT)
    assert replay is not None
    assert (replay.regressed.hits, replay.inconclusive.hits, replay.regressed.of) == (0, 0, 40)
    assert replay.trials == 4.0


def test_a_request_that_lacks_a_metric_fails_its_check() -> None:
    """A simulated check that lacks a profiler's count has failed."""
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0] * 8, Metric.GRAPH_BREAKS: [0.0] * 8})
    half = [
        trial if trial.index % 2 else replace(trial, samples={**trial.samples, Metric.GRAPH_BREAKS: ()})
        for trial in run.trials
    ]
    replay = replay_requests(replace(run, trials=tuple(half)), POLICY, EFFORT)
    assert replay is not None
    assert replay.regressed.hits > 0


def test_a_large_slowdown_is_always_caught() -> None:
    """Half as slow again with 1 % of noise regresses in all 40 pull requests."""
    replay = replay_requests(draw_run(cases=4, trials=8, noise=0.01), POLICY, EFFORT, planted=0.5)
    assert replay is not None
    assert (replay.regressed.hits, replay.regressed.of, replay.planted) == (40, 40, 0.5)


def test_undecided_cases_get_more_trials() -> None:
    """Only the case near the threshold gets up to three trials."""
    run = draw_run(cases=4, trials=8, noise=0.005)
    replay = replay_requests(run, POLICY, EFFORT, planted=0.06)
    assert replay is not None
    assert 4.0 < replay.trials <= 6.0


def test_a_request_is_judged_as_a_check_is() -> None:
    """An unchanged case is judged by one trial."""
    run = draw_run(cases=5, trials=8, noise=0.0001)
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    checked = judge_request(recorded.run, request, POLICY, EFFORT)
    assert (checked.verdict.outcome, checked.verdict.trials) == (Outcome.PASS, 5)
    assert all(trial.pairing is Pairing.ALONE for trial in checked.run.trials)


@pytest.mark.parametrize(("factor", "reason"), [(1.3, Reason.BEYOND_BAR), (1.0, Reason.UNCORROBORATED)])
def test_a_replayed_screen_knows_processor_time(factor: float, reason: Reason) -> None:
    """A cold compile 30 % longer regresses if its CPU time is as well."""
    run = draw_run(cases=4, trials=8, noise=0.001)
    run = replace(run, trials=tuple(replace(trial, phases_s={"cpu_self": 8.0}) for trial in run.trials))
    recorded = gather_recorded(run, EFFORT)
    request = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    slower = [
        replace(
            trial,
            samples={**trial.samples, Metric.COLD_COMPILE_TIME: (12.0 * 1.3,)},
            phases_s={"cpu_self": 8.0 * factor},
        )
        for trial in request.candidates["m0/x"]
    ]
    request = replace(request, candidates={**request.candidates, "m0/x": slower})
    verdict = judge_request(recorded.run, request, POLICY, EFFORT).verdict
    row = find_row(verdict, Metric.COLD_COMPILE_TIME, "m0/x")
    assert row.reason is reason


@pytest.mark.parametrize(("trials", "replayed"), [(5, False), (6, True)])
def test_too_few_trials_are_not_replayed(trials: int, replayed: bool) -> None:
    """A replay needs three trials for the baseline and three for the candidate."""
    run = draw_run(cases=2, trials=trials, noise=0.01)
    assert (replay_requests(run, POLICY, EFFORT) is not None) is replayed


def test_calibration_sums_up() -> None:
    """A calibration has the noise of each case and metric, three replays and notes."""
    run = draw_run(cases=2, trials=7, noise=0.01)
    calibration = calibrate_gate(run, POLICY, EFFORT)
    assert (calibration.case_ids, calibration.trials) == (("m0/x", "m1/x"), 14)
    assert len(calibration.noise) == 10  # four metrics and the speedup, of two cases
    assert [(replay.planted, replay.regressed.of) for replay in calibration.replays] == [
        (0, 40),
        (0.05, 10),
        (0.1, 10),
    ]


def test_calibration_of_few_trials_says_so() -> None:
    """Without a replay the note has the number of trials needed."""
    calibration = calibrate_gate(draw_run(cases=2, trials=3, noise=0.01), POLICY, EFFORT)
    assert calibration.replays == ()
    assert "2 of 2 cases were not replayed: that takes 6 trials of each (--trials 6)." in [
        *map(write_note, calibration.notes)
    ]


def test_calibration_of_a_stopped_run_says_what_is_unknown() -> None:
    """One trial of two cases and eight of a third: a note for each limit."""
    run = draw_run(cases=3, trials=8, noise=0.01)
    kept = tuple(trial for trial in run.trials if trial.case_id == "m2/x" or trial.index == 1)
    few = replace(EFFORT, requests=4)
    notes = tuple(
        map(write_note, calibrate_gate(replace(run, trials=kept, finished=False), POLICY, few).notes)
    )
    assert notes[:3] == (
        "The run was stopped before its end.",
        "Not enough trials of m0/x and 1 more: it takes 2 trials of a case.",
        "2 of 3 cases were not replayed: that takes 6 trials of each (--trials 6).",
    )


def test_the_time_of_a_check_ends_its_trials() -> None:
    """In 20 s there is no second trial of 15 s."""
    run = draw_run(cases=1, trials=8, noise=0.005)
    timed = replace(run, trials=tuple(replace(trial, stages_s={"rounds": 15.0}) for trial in run.trials))
    free, short = (
        replay_requests(timed, POLICY, replace(EFFORT, budget_s=limit), planted=0.06)
        for limit in (None, 20.0)
    )
    assert free is not None
    assert short is not None
    assert free.trials > 1.0
    assert short.trials == 1.0


def test_what_has_no_latency_is_not_slowed() -> None:
    """Compile times alone are replayed without a fault."""
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0 + 0.01 * index for index in range(8)]})
    assert replay_requests(run, POLICY, EFFORT) is not None
    assert replay_requests(run, POLICY, EFFORT, planted=0.1) is None


def test_what_is_slowed_runs_other_code() -> None:
    """Head's trials and pairs have other code; the base and the other case do not."""
    run = draw_paired_run(cases=2, trials=8, pairs=8, noise=0.01)
    trials = tuple(replace(trial, identity=replace(trial.identity, digest="c0de")) for trial in run.trials)
    recorded = gather_recorded(replace(run, trials=trials), EFFORT)
    drawn = draw_request(recorded, EFFORT, random.Random(0))  # noqa: S311 - repeatable
    slower = slow_case(drawn, "m0/x", 1.1)
    heads = [*slower.candidates["m0/x"], *(pair.head for pair in slower.pairs["m0/x"])]
    assert {trial.identity.digest for trial in heads} == {"c0de slower"}
    assert [pair.base for pair in slower.pairs["m0/x"]] == [pair.base for pair in drawn.pairs["m0/x"]]
    assert slower.candidates["m1/x"] == drawn.candidates["m1/x"]


def test_pairs_let_a_request_be_confirmed() -> None:
    """With pairs 10 % at 1 % of noise always regresses, and 0 % never."""
    run = draw_paired_run(cases=4, trials=8, pairs=8, noise=0.01)
    null, slowed = replay_requests(run, POLICY, EFFORT), replay_requests(run, POLICY, EFFORT, planted=0.1)
    assert null is not None
    assert slowed is not None
    assert (null.regressed.hits, null.inconclusive.hits) == (0, 0)
    assert (slowed.regressed.hits, slowed.inconclusive.hits) == (40, 0)
    assert 3.0 <= slowed.pairs < 16.0  # three at the first look


def test_time_for_pairs_ends_in_a_replay_too() -> None:
    """36 s are enough for two pairs of latencies, or one with compiles of 30 s.

    The first takes 12 s and 7 s to compile, the second 12 s. Pairs that vary by 4 % do not settle a
    slowdown of 10 % in two, and do in sixteen.
    """
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.03)
    timed = tuple(replace(trial, stages_s={"rounds": 15.0}) for trial in run.trials)
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
    """If one case has five pairs only, all are judged without a base."""
    run = draw_paired_run(cases=3, trials=8, pairs=6, noise=0.01)
    kept = (
        trial
        for trial in run.trials
        if trial.case_id != "m0/x" or trial.pairing is Pairing.ALONE or trial.index < 6
    )
    run = replace(run, trials=tuple(kept))
    replay = replay_requests(run, POLICY, EFFORT, planted=0.1)
    assert replay is not None
    assert replay.pairs == 0.0


def test_latencies_are_drawn_apart_from_compile_times() -> None:
    """Two of eight pairs have latencies only: each simulated pair is still whole."""
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.01)
    trials = (
        _drop_compile_times(trial) if trial.pairing is Pairing.TURNS and trial.index > 6 else trial
        for trial in run.trials
    )
    recorded = gather_recorded(replace(run, trials=tuple(trials)), EFFORT)
    generator = random.Random(0)  # noqa: S311 - repeatable
    drawn = [pair for _ in range(20) for pair in draw_request(recorded, EFFORT, generator).pairs["m0/x"]]
    latencies = {
        metric: {pair.head.samples[metric] for pair in drawn} | {pair.base.samples[metric] for pair in drawn}
        for metric in (Metric.COLD_COMPILE_TIME, Metric.COMPILED_LATENCY)
    }
    assert [len(values) for values in latencies.values()] == [2 * 6, 2 * 8]


def test_a_pair_of_latencies_alone_rehearses_no_compile() -> None:
    """Five whole pairs of eight are too few, and the note has the number needed."""
    run = draw_paired_run(cases=1, trials=8, pairs=8, noise=0.01)
    trials = (
        _drop_compile_times(trial) if trial.pairing is Pairing.TURNS and trial.index > 5 else trial
        for trial in run.trials
    )
    run = replace(run, trials=tuple(trials))
    assert not gather_recorded(run, EFFORT).pairs
    assert Fact(code=Code.REPLAYED_ALONE, numbers={"pairs": 6}) in calibrate_gate(run, POLICY, EFFORT).notes


def _drop_compile_times(trial: Trial) -> Trial:
    kept = {metric: values for metric, values in trial.samples.items() if "compile_time" not in metric}
    return replace(trial, samples=kept)


def test_calibration_describes_pairs() -> None:
    """The noise of pairs is listed with that of trials."""
    calibration = calibrate_gate(draw_paired_run(cases=2, trials=6, pairs=5, noise=0.01), POLICY, EFFORT)
    assert (calibration.trials, calibration.pairs) == (12, 10)
    paired = [noise.side_by_side for noise in calibration.noise if noise.metric is Metric.COLD_COMPILE_TIME]
    assert [noise.pairs for noise in paired if noise is not None] == [5, 5]


def test_a_chance_deviation_of_few_pairs_is_no_change() -> None:
    """The sign of recorded pairs that deviate by 8 % is drawn."""
    leaning = make_paired_run(Metric.COLD_COMPILE_TIME, 10.0, (0.08, 0.081, 0.079) * 2)
    run = run_cases({Metric.COLD_COMPILE_TIME: [10.0 + 0.1 * index for index in range(8)]})
    copies = tuple(replace(trial, case_id="m0/x") for trial in leaning.trials)
    request = draw_request(
        gather_recorded(replace(run, trials=(*run.trials, *copies)), EFFORT),
        EFFORT,
        random.Random(0),  # noqa: S311 - repeatable
    )
    heads = [pair.head.samples[Metric.COLD_COMPILE_TIME][0] for pair in request.pairs["m0/x"]]
    assert {pair.base.arm for pair in request.pairs["m0/x"]} == {"base"}
    assert 0 < heads.count(10.0) < len(heads)


def test_calibration_notes_an_unfit_host() -> None:
    """A calibration with disturbed trials has a note."""
    run = draw_run(cases=1, trials=4, noise=0.01)
    busy = Conditions(disturbances=(Disturbance.SWAPPED,), swapped_bytes=2 * 2**20)
    run = replace(run, trials=(replace(run.trials[0], conditions=busy), *run.trials[1:]))
    notes = tuple(map(write_note, calibrate_gate(run, POLICY, EFFORT).notes))
    assert notes[0] == "The machine was disturbed during 1 of 4 trials: 2.00 MiB were swapped."


def test_the_noise_of_a_machine_is_not_a_cases() -> None:
    """Both cases that vary by half are unstable; if one was disturbed, only the other is."""
    run, few = draw_run(cases=2, trials=6, noise=0.5), replace(EFFORT, requests=4)
    assert {instability.case_id for instability in calibrate_gate(run, POLICY, few).unstable} == {
        "m0/x",
        "m1/x",
    }
    crowded = Conditions(foreign_cores=2.0, disturbances=(Disturbance.CROWDED,))
    trials = (
        replace(trial, conditions=crowded) if trial.case_id == "m0/x" else trial for trial in run.trials
    )
    calibration = calibrate_gate(replace(run, trials=tuple(trials)), POLICY, few)
    assert calibration.disturbed == ("m0/x",)
    assert {instability.case_id for instability in calibration.unstable} == {"m1/x"}


def test_a_replay_without_pairs_says_so() -> None:
    """The note has the number of pairs needed, and is absent with pairs."""
    few = replace(EFFORT, requests=4)
    runs = (draw_run(cases=1, trials=8, noise=0.01), draw_paired_run(cases=1, trials=8, pairs=6, noise=0.01))
    notes = [" ".join(map(write_note, calibrate_gate(run, POLICY, few).notes)) for run in runs]
    assert "Replayed without a base: that takes 6 pairs of every case (--pairs 6)" in notes[0]
    assert "Replayed without a base" not in notes[1]
