"""The order of trials and the time they take."""

from dataclasses import replace

import pytest

from gate.check.schedule import (
    EXTENT_SHARES,
    Pace,
    Slot,
    awaits_count,
    compute_pair_s,
    compute_trial_s,
    fit_slot,
    plan_content,
    predict_pair_s,
    want_whole,
)
from gate.check.work import PairWork, count_done, make_trial_schedule
from gate.decide.suspects import Suspect
from gate.metrics import INTERLEAVED, OF_WARM
from gate.records.cases import Case, Metric, Mode
from gate.records.facts import Disturbance
from gate.records.protocol import Stage
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Conditions, Extent, Pairing, Trial
from tests.make import make_failure, make_pair, make_run

A = Case(id="a/x", model="a", expected_s=10.0)
B = Case(id="b/x", model="b", expected_s=20.0)
WHOLE = want_whole([A.id, B.id])


def make_trial(case: Case, index: int, seconds: float) -> Trial:
    """A trial of so many seconds, a tenth of them overhead, which contains the start-up."""
    stages = {"start": 0.05 * seconds, "compile": 0.5 * seconds, "rounds": 0.4 * seconds}
    return Trial(case_id=case.id, index=index, stages_s=stages, overhead_s=0.1 * seconds)


def test_round_robin() -> None:
    """All first trials come before any second one."""
    expected = (
        Slot(case=A, index=1),
        Slot(case=B, index=1),
        Slot(case=A, index=2),
        Slot(case=B, index=2),
    )
    assert expected == make_trial_schedule((A, B), 2, (), WHOLE)


def test_taken_trials_are_left_out() -> None:
    """Trials of a stopped run are not scheduled again."""
    taken = [make_trial(A, 1, 1.0), make_trial(A, 2, 1.0), make_trial(B, 2, 1.0)]
    assert (Slot(case=B, index=1),) == make_trial_schedule((A, B), 2, taken, WHOLE)


def test_pairs_replace_no_trial() -> None:
    """A case with pairs still gets the second trial of a moved counter."""
    taken = [make_trial(A, 1, 1.0), replace(make_trial(A, 2, 1.0), pairing=Pairing.LIVE)]
    assert (Slot(case=A, index=2),) == make_trial_schedule((A,), 2, taken, WHOLE)


def test_what_is_done_are_trials_that_were_measured_or_failed_and_pairs() -> None:
    """Trial 2 failed after its first process, and trial 3 altogether; both sides of a pair are one."""
    failures = tuple(make_failure(A.id, trial=index) for index in (2, 3))
    run = make_run(make_trial(A, 1, 1.0), make_trial(A, 2, 1.0), *make_pair(A.id, 2), failures=failures)
    assert (count_done(run, paired=False), count_done(run, paired=True)) == (3, 1)


def test_trial_time_counts_start_up_once() -> None:
    """Wall time is stages and overhead, which contains the start-up."""
    assert pytest.approx(compute_trial_s(make_trial(A, 1, 40.0))) == 40.0


def test_prediction_without_trials_is_what_the_case_expects() -> None:
    """The first prediction is the expected time."""
    assert Pace((A, B), ()).predict_s(B) == 20.0


def test_prediction_follows_the_machine() -> None:
    """If A took three times the expected time, so does B."""
    assert pytest.approx(Pace((A, B), (make_trial(A, 1, 30.0),)).predict_s(B)) == 60.0


def test_prediction_prefers_the_case_itself() -> None:
    """A case that ran is predicted by its own mean."""
    trials = (make_trial(A, 1, 30.0), make_trial(B, 1, 8.0), make_trial(B, 2, 10.0))
    assert pytest.approx(Pace((A, B), trials).predict_s(B)) == 9.0


def test_light_trial_is_predicted_by_its_like() -> None:
    """The first light trial is a share of a whole one, and light ones do not shorten whole ones."""
    whole, light = make_trial(A, 1, 30.0), replace(make_trial(A, 2, 5.0), extent=Extent.COLD)
    assert Pace((A, B), (whole,)).predict_s(A, Extent.COLD) == pytest.approx(
        30.0 * EXTENT_SHARES[Extent.COLD]
    )
    assert Pace((A, B), (whole, light)).predict_s(A, Extent.COLD) == pytest.approx(5.0)
    assert Pace((A, B), (whole, light)).predict_s(A) == pytest.approx(30.0)
    assert Pace((A, B), (whole, light)).predict_s(B) == pytest.approx(60.0)


def test_a_cold_pair_after_a_whole_one_takes_a_share_of_it() -> None:
    """Both sides of the whole pair took 20 s; the next one loads nothing from caches."""
    samples: dict[Metric, tuple[float, ...]] = {Metric.COLD_COMPILE_TIME: (9.0,)}
    pair = make_pair(A.id, samples=samples, stages_s={Stage.COMPILE: 20.0}, extent=Extent.WHOLE)
    slot = Slot(case=A, index=2, metrics=(Metric.COLD_COMPILE_TIME,))
    seconds = predict_pair_s(Pace((A,), pair), slot, "cpu")
    assert seconds == pytest.approx(40.0 * EXTENT_SHARES[Extent.COLD])
    cold = make_pair(A.id, 2, samples=samples, stages_s={Stage.COMPILE: 9.0}, extent=Extent.COLD)
    assert predict_pair_s(Pace((A,), (*pair, *cold)), slot, "cpu") == pytest.approx(18.0)


@pytest.mark.parametrize(
    ("mode", "index", "warm_s", "seconds"),
    [
        (Mode.DEFAULT, 1, 2.0, 24.0),
        (Mode.MAX_AUTOTUNE, 1, 2.0, 32.0),
        (Mode.DEFAULT, 2, 2.0, 16.0),
        (Mode.DEFAULT, 1, 11.0, 16.0),
    ],
)
def test_a_first_pair_of_latencies_compiles_untimed(
    mode: Mode, index: int, warm_s: float, seconds: float
) -> None:
    """40 % of two trials of 20 s, and the 8 s that caches save, or 16 s where kernels are tuned.

    Where caches save nothing, nothing is added.
    """
    case = replace(A, mode=mode)
    samples = {Metric.COLD_COMPILE_TIME: (10.0,), Metric.WARM_COMPILE_TIME: (warm_s,)}
    trial = Trial(case_id=A.id, index=1, samples=samples, stages_s={Stage.COMPILE: 20.0})
    slot = Slot(case=case, index=index, metrics=(Metric.COMPILED_LATENCY,))
    assert predict_pair_s(Pace((case,), [trial]), slot, "cpu") == pytest.approx(seconds)


@pytest.mark.parametrize("unit_s", [1.0, 0.01])
def test_a_pace_learns_the_share_of_a_further_pair_of_latencies(unit_s: float) -> None:
    """6 s instead of the 40 s of two whole trials, and 40 % before there was one; no trial alone counts."""
    samples: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    alone = [make_trial(A, index, 20.0 * unit_s) for index in (1, 2)]
    alone.append(replace(make_trial(A, 3, 5.0 * unit_s), samples=samples, extent=Extent.COLD))
    stages_s = {Stage.ROUNDS: 3.0 * unit_s}
    light = make_pair(A.id, 2, samples=samples, stages_s=stages_s, extent=Extent.COLD)
    assert Pace((A,), alone).light_share == 0.4
    assert Pace((A,), (*alone, *light)).light_share == pytest.approx(0.15)


def test_a_further_trial_finds_the_server_of_its_case() -> None:
    """Of 30 s of the first trial 6 were for the server."""
    first = make_trial(A, 1, 30.0)
    stages_s = {**first.stages_s, Stage.COMPILE: 9.0, Stage.SERVER: 6.0}
    assert Pace((A,), [replace(first, stages_s=stages_s)]).predict_s(A) == pytest.approx(24.0)


def test_no_pair_takes_less_than_no_time() -> None:
    """A first pair compiled untimed for 8 s, as trials say, and took 6: the next one finds its code."""
    samples = {Metric.COLD_COMPILE_TIME: (10.0,), Metric.WARM_COMPILE_TIME: (2.0,)}
    alone = Trial(case_id=A.id, index=1, samples=samples, stages_s={Stage.COMPILE: 20.0})
    latencies: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    pair = make_pair(A.id, 1, samples=latencies, stages_s={Stage.ROUNDS: 3.0})
    slot = Slot(case=A, index=2, metrics=(Metric.COMPILED_LATENCY,))
    assert predict_pair_s(Pace((A,), (alone, *pair)), slot, "cpu") == 0.0


@pytest.mark.parametrize(
    ("metric", "pairs", "awaits"),
    [
        (Metric.GRAPH_BREAKS, 1, True),
        (Metric.GRAPH_BREAKS, 2, False),
        (Metric.COMPILED_LATENCY, 1, False),
    ],
)
def test_what_is_counted_is_counted_twice(metric: Metric, pairs: int, *, awaits: bool) -> None:
    """A second pair says the same of a count; of a time it says little."""
    suspect = Suspect(case_id=A.id, metrics=(Metric.COLD_COMPILE_TIME, metric))
    assert awaits_count(suspect, pairs) is awaits


def test_a_further_pair_for_all_but_a_cold_compile_times_none() -> None:
    """Calls and what a second process measures need caches alone."""
    assert not plan_content({*INTERLEAVED, *OF_WARM}, 2, "cpu").compiles
    assert plan_content({*INTERLEAVED, *OF_WARM, Metric.COLD_COMPILE_TIME}, 2, "cpu").compiles


@pytest.mark.parametrize(
    ("pairing", "metric", "seconds"),
    [
        (Pairing.LIVE, Metric.COLD_COMPILE_TIME, 43.0),
        (Pairing.TURNS, Metric.COLD_COMPILE_TIME, 48.0),
        (Pairing.LIVE, Metric.LAUNCHES, 48.0),  # of a GPU
    ],
)
def test_what_both_arms_do_at_once_counts_once(pairing: Pairing, metric: Metric, seconds: float) -> None:
    """19 s of one arm, of which 5 for building and calls, and 29 of the other, with 7: 48 s less 5."""
    shared: list[dict[str, float]] = [
        {Stage.BUILD: 3.0, Stage.MEMORY: 1.0, Stage.CALLS: 2.0, Stage.DRIFT: 3.0},
        {Stage.BUILD: 1.0, Stage.MEMORY: 3.0, Stage.CALLS: 6.0, Stage.DRIFT: 9.0},
    ]
    trials = [
        Trial(
            case_id=A.id,
            index=1,
            arm=arm,
            pairing=pairing,
            samples={metric: (1.0,), Metric.COLD_COMPILE_TIME: (9.0,)},
            stages_s={Stage.COMPILE: 10.0, **stages_s},
        )
        for arm, stages_s in zip((BASE_ARM, CANDIDATE_ARM), shared, strict=True)
    ]
    assert compute_pair_s(A, trials) == seconds


@pytest.mark.parametrize(
    ("metrics", "index", "seconds"),
    [
        ((Metric.COMPILED_LATENCY,), 1, 22.0),
        ((Metric.COMPILED_LATENCY,), 2, 30.0),
        ((Metric.COMPILED_LATENCY, Metric.PEAK_MEMORY), 1, 30.0),
    ],
)
def test_both_arms_of_a_first_pair_of_calls_compile_at_once(
    metrics: tuple[Metric, ...], index: int, seconds: float
) -> None:
    """Of twice 15 s the 8 for eager calls and the compile count once; a second process does them in turn."""
    stages_s = {Stage.EAGER: 2.0, Stage.COMPILE: 6.0, Stage.ROUNDS: 7.0}
    samples: dict[Metric, tuple[float, ...]] = dict.fromkeys(metrics, (1.0,))
    pair = make_pair(A.id, index, pairing=Pairing.LIVE, samples=samples, stages_s=stages_s)
    assert compute_pair_s(A, pair) == pytest.approx(seconds)


def test_a_pace_knows_what_most_trials_lost_to_the_hypervisor() -> None:
    """Two of three trials lost 4 and 6 %; of four they are not most. One was repeated."""
    stolen = (0.04, 0.06, 0.01, 0.01)
    trials = [
        Trial(
            case_id="a",
            index=index,
            conditions=Conditions(
                stolen=share,
                disturbances=(Disturbance.STOLEN,) if share > 0.02 else (),
                repeated=index == 1,
            ),
        )
        for index, share in enumerate(stolen, start=1)
    ]
    assert Pace((), trials[:3]).own_steal == pytest.approx(0.05)
    assert Pace((), trials).own_steal == 0.0
    assert Pace((), trials).repeated == 1


@pytest.mark.parametrize(
    ("index", "left_s", "compiles"),
    [
        *((1, 17.9, False), (1, 18.0, True)),
        *((2, 8.9, False), (2, 9.0, True)),
        *((3, 4.9, False), (3, 5.0, True)),
        *((5, 4.9, False), (5, 5.0, True)),
    ],
)
def test_a_compile_leaves_time_for_the_pairs_that_settle_slower_calls(
    index: int, left_s: float, *, compiles: bool
) -> None:
    """10 s of a first pair with a compile, 5 s of a further one, and 4 s of latencies up to the third."""
    latencies: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    both = {**latencies, Metric.COLD_COMPILE_TIME: (3.0,)}
    pairs = (
        *make_pair(A.id, 1, samples=both, stages_s={Stage.ROUNDS: 5.0}),
        *make_pair(A.id, 2, samples=latencies, stages_s={Stage.ROUNDS: 2.0}),
    )
    slot = Slot(case=A, index=index, metrics=(*both,), slower=True)
    fitting = fit_slot(Pace((A,), pairs), slot, "cpu", left_s)
    assert fitting is not None
    assert set(fitting.metrics) == set(both if compiles else latencies)
    assert [fit_slot(Pace((A,), pairs), slot, "cpu", left) is None for left in (3.9, 4.0)] == [True, False]


def test_cold_processes_are_left_of_a_pair_that_ends_too_late() -> None:
    """10 s of a whole pair, 5 s of cold processes, 4 s of latencies."""
    latencies: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    cold = {**latencies, Metric.COLD_COMPILE_TIME: (3.0,)}
    pairs = (
        *make_pair(A.id, 1, samples=cold, stages_s={Stage.ROUNDS: 5.0}),
        *make_pair(A.id, 2, samples=latencies, stages_s={Stage.ROUNDS: 2.0}),
    )
    slot = Slot(case=A, index=2, metrics=(*cold, Metric.WARM_COMPILE_TIME))
    fitting = [fit_slot(Pace((A,), pairs), slot, "cpu", left_s) for left_s in (10.0, 9.9, 5.0, 4.9)]
    assert [set(part.metrics) for part in fitting if part] == [
        set(slot.metrics),
        *[set(cold)] * 2,
        {*latencies},
    ]


@pytest.mark.parametrize(
    ("metric", "seconds"), [(Metric.COLD_COMPILE_TIME, 10.0), (Metric.COMPILED_LATENCY, 4.0)]
)
def test_a_pair_that_compiles_is_predicted_by_latencies(metric: Metric, seconds: float) -> None:
    """4 s of latencies are 40 % of it."""
    latencies: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    pair = make_pair(A.id, 1, samples=latencies, stages_s={Stage.ROUNDS: 2.0})
    slot = Slot(case=A, index=2, metrics=(metric,))
    assert predict_pair_s(Pace((A,), pair), slot, "cpu") == pytest.approx(seconds)


def test_a_pair_that_finds_its_code_compiles_nothing_untimed() -> None:
    """A first one takes 16 s, 40 % of two trials; and none is shorter than the one before by a compile."""
    samples = {Metric.COLD_COMPILE_TIME: (10.0,), Metric.WARM_COMPILE_TIME: (2.0,)}
    alone = Trial(case_id=A.id, index=1, samples=samples, stages_s={Stage.COMPILE: 20.0})
    latencies: dict[Metric, tuple[float, ...]] = {Metric.COMPILED_LATENCY: (0.01,)}
    pair = make_pair(A.id, 1, samples=latencies, stages_s={Stage.ROUNDS: 6.0})
    slot = Slot(case=A, index=1, metrics=(Metric.COMPILED_LATENCY,), unchanged_code=True)
    assert predict_pair_s(Pace((A,), [alone]), slot, "cpu") == pytest.approx(16.0)
    further = replace(slot, index=2)
    assert predict_pair_s(Pace((A,), (alone, *pair)), further, "cpu") == pytest.approx(12.0)
    other = replace(further, unchanged_code=False)
    assert predict_pair_s(Pace((A,), (alone, *pair)), other, "cpu") == pytest.approx(4.0)


@pytest.mark.parametrize(("limit_s", "fits"), [(79.0, False), (81.0, True)])
def test_the_first_pair_of_a_case_is_planned_by_what_others_took(limit_s: float, *, fits: bool) -> None:
    """Trials of another case took twice what was expected, so two of this one will take 80 s, not 40."""
    suspect = Suspect(case_id=B.id, metrics=(Metric.COLD_COMPILE_TIME,))
    work = PairWork(wanted={B.id: suspect}, targets={B.id: 1}, limit_s=limit_s)
    pace = Pace((A, B), [make_trial(A, 1, 2 * A.expected_s)])
    case_run = make_run(cases=(B,), base=(B,))
    slot = Slot(case=B, index=1, metrics=suspect.metrics)
    assert (work.plan(case_run, slot, case_run, pace) is not None) is fits
