"""Baselines: which trials they are made of, and what is shared by all of them."""

from dataclasses import replace

import pytest

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.disturbed import note_kept_disturbed
from gate.decide.verdict import decide_verdict
from gate.records.cases import Metric
from gate.records.facts import Disturbance
from gate.records.run import (
    CacheUse,
    CodeIdentity,
    Conditions,
    GraphBreak,
    Pairing,
    Provenance,
    Recompile,
    Trial,
)
from gate.records.verdict import Reason
from tests import make
from tests.make import POLICY, make_failure, make_run
from tests.words import write_note

CASE, OTHER = "mlp/x", "vit/x"
IDENTITY = CodeIdentity(digest="f00", kernels={"k": "1"})


def make_trial(index: int, case_id: str = CASE, **samples: float) -> Trial:
    """Make a trial with one sample a metric."""
    return Trial(
        case_id=case_id,
        index=index,
        samples={Metric(name): (value,) for name, value in samples.items()},
        identity=IDENTITY,
        workload={"parameters": "10", "checksum": "1.5"},
        graph_breaks=(GraphBreak(reason="print", location="a.py:1"),),
        conditions=Conditions(canaries_s={"matmul": 0.0012345678}),
    )


def test_a_baseline_holds_a_value_a_metric_and_trial() -> None:
    """Times are rounded to six digits, bytes are not; shared fields are stored once."""
    run = make_run(
        make_trial(0, compiled_latency=0.00123456789, peak_memory=123456789.0),
        make_trial(1, compiled_latency=0.002, peak_memory=123456789.0),
    )
    (baseline,) = make_baselines(run, Provenance())
    assert baseline == make.make_baseline(
        CASE,
        {Metric.COMPILED_LATENCY: (0.00123457, 0.002), Metric.PEAK_MEMORY: (123456789.0,) * 2},
        provenance=Provenance(),
        identity=IDENTITY,
        workload={"parameters": "10", "checksum": "1.5"},
        graph_breaks=(GraphBreak(reason="print", location="a.py:1"),),
        canaries_s={"matmul": (0.00123457,) * 2},
    )


def test_what_explains_a_baseline_is_of_the_fullest_trials() -> None:
    """Of the one that measured most; what flickers is of those that have most of it."""
    lesser, fullest = make_trial(1, peak_memory=1.0), make_trial(2, peak_memory=1.0, compiled_latency=0.002)
    breaks = (*lesser.graph_breaks, GraphBreak(reason="log", location="b.py:2"))
    recompiles, caches = (Recompile(guard="n == 1"),), {"fx_graph": CacheUse(hits=1)}
    run = make_run(
        replace(lesser, recompile_reasons=recompiles),
        replace(fullest, caches=caches),
        replace(lesser, index=3, graph_breaks=breaks),
    )
    (baseline,) = make_baselines(run, Provenance())
    assert baseline.graph_breaks == breaks
    assert (baseline.recompile_reasons, baseline.caches) == (recompiles, caches)


def test_what_is_known_of_a_compile_is_of_trials_that_timed_its_phases() -> None:
    """A trial that measured more, but no phase, did not record what was compiled."""
    blank = replace(make_trial(0, peak_memory=1.0, drift=0.1), caches={"fx_graph": CacheUse(hits=1)})
    compiled = replace(make_trial(1, drift=0.1), phases_s={"dynamo": 1.0}, workload={"parameters": "11"})
    (baseline,) = make_baselines(make_run(blank, compiled), Provenance())
    assert (baseline.caches, baseline.workload) == ({}, {"parameters": "11"})


def test_pairs_are_no_baseline() -> None:
    """Only trials outside of pairs are stored; a run of pairs alone has no baseline."""
    alone = make_trial(1, graph_breaks=1.0)
    pair = tuple(replace(alone, arm=arm, pairing=Pairing.LIVE) for arm in ("base", "head"))
    (stored,) = make_baselines(make_run(alone, *pair), Provenance())
    assert stored.trials[Metric.GRAPH_BREAKS] == (1.0,)
    assert make_baselines(make_run(*pair), Provenance()) == ()


def test_phases_are_stored_as_medians() -> None:
    """A phase that a trial lacks took no time."""
    phases = ({"dynamo": 2.0, "inductor": 3.00000004}, {"dynamo": 4.0}, {"dynamo": 2.5, "inductor": 5.0})
    trials = [
        replace(make_trial(index, drift=0.1), phases_s=phases_s) for index, phases_s in enumerate(phases, 1)
    ]
    (baseline,) = make_baselines(make_run(*trials), Provenance())
    assert baseline.phases_s == {"dynamo": 2.5, "inductor": 3.0}


def test_what_can_repeat_exactly_is_not_rounded() -> None:
    """Counters, calls and bytes are compared for equality."""
    same = {"guards": 1234567.0, "compile_calls": 1234567.0, "peak_memory": 123456789.0}
    trials = [make_trial(index, CASE, **same) for index in range(3)]
    (baseline,) = make_baselines(make_run(*trials), Provenance())
    assert baseline.trials == {Metric(name): (value,) * 3 for name, value in same.items()}
    verdict = decide_verdict(make_run(*trials), (baseline,), POLICY)
    assert {row.reason for row in verdict.comparisons} == {Reason.BELOW_THRESHOLD}


def test_a_baseline_lists_its_tables_in_a_fixed_order() -> None:
    """Metrics, phases and canaries by name and kernels by their time, as trials came in any order."""
    trial = replace(
        make_trial(0, peak_memory=1.0, drift=0.1),
        phases_s={"inductor": 3.0, "dynamo": 4.0},
        kernels_s={"add": 1.0, "mul": 2.0},
        conditions=Conditions(canaries_s={"matmul": 1.0, "loop": 1.0}),
        workload={"parameters": "10", "checksum": "1.5"},
    )
    (baseline,) = make_baselines(make_run(trial), Provenance())
    assert list(baseline.trials) == [Metric.DRIFT, Metric.PEAK_MEMORY]
    assert list(baseline.phases_s) == ["dynamo", "inductor"]
    assert list(baseline.kernels_s) == ["mul", "add"]
    assert list(baseline.canaries_s) == ["loop", "matmul"]
    assert list(baseline.workload) == ["checksum", "parameters"]


def disturb(trial: Trial) -> Trial:
    """The same trial, measured while other programs ran."""
    return replace(trial, conditions=replace(trial.conditions, disturbances=(Disturbance.CROWDED,)))


def test_disturbed_trials_are_left_out_of_what_depends_on_the_host() -> None:
    """Of five trials the disturbed one, 40 % slower, is no part of the latency, and its counter stays."""
    seconds = (0.010, 0.0101, 0.014, 0.0099, 0.010)
    trials = [make_trial(index, compiled_latency=value, guards=7.0) for index, value in enumerate(seconds)]
    trials[2] = disturb(trials[2])
    (baseline,) = make_baselines(make_run(*trials), Provenance())
    assert baseline.trials[Metric.COMPILED_LATENCY] == (0.010, 0.0101, 0.0099, 0.010)
    assert baseline.trials[Metric.GUARDS] == (7.0,) * 5
    head = make_run(make_trial(0, compiled_latency=0.0105, guards=7.0))
    rows = decide_verdict(head, (baseline,), POLICY).comparisons
    (row,) = (row for row in rows if row.metric is Metric.COMPILED_LATENCY)
    assert row.change is not None
    assert row.change.centre == pytest.approx(0.05, abs=1e-4)


def test_disturbed_trials_stay_where_too_few_others_are_left() -> None:
    """With two undisturbed ones of the three that it needs, all are kept, with a note."""
    trials = [make_trial(index, compiled_latency=0.010) for index in range(3)]
    run = make_run(*trials[:2], disturb(trials[2]))
    (baseline,) = make_baselines(run, Provenance())
    assert len(baseline.trials[Metric.COMPILED_LATENCY]) == 3
    (note,) = note_kept_disturbed(run, MIN_BASELINE_TRIALS)
    assert write_note(note).startswith(
        f"Disturbed trials are recorded too of {CASE}: fewer than 3 others came back."
    )
    assert note_kept_disturbed(make_run(*trials, disturb(make_trial(3))), MIN_BASELINE_TRIALS) == ()


def test_what_differs_between_trials_is_not_stored_as_shared() -> None:
    """Code that differs from trial to trial has no identity."""
    other = replace(make_trial(1), identity=CodeIdentity(digest="bar"), workload={"parameters": "10"})
    (baseline,) = make_baselines(make_run(make_trial(0), other), Provenance())
    assert baseline.identity == CodeIdentity(digest="")
    assert baseline.workload == {"parameters": "10"}


def test_code_that_each_trial_tuned_otherwise_is_the_same_code() -> None:
    """Tuning differs in each trial and has no identity; the code keeps its own."""
    code = CodeIdentity(digest="foo", kernels={"k": "1"}, tuned="a")
    trials = [replace(make_trial(index), identity=code) for index in range(2)]
    (baseline,) = make_baselines(make_run(*trials), Provenance())
    assert baseline.identity == code
    other = replace(make_trial(2), identity=replace(code, tuned="b"))
    for mixed in ([*trials, other], [other, *trials]):
        (baseline,) = make_baselines(make_run(*mixed), Provenance())
        assert baseline.identity == replace(code, tuned="")


def test_code_that_some_trials_do_not_know_is_that_of_the_others() -> None:
    """An unknown digest contradicts none."""
    blank = replace(make_trial(2), identity=CodeIdentity(digest=""))
    (baseline,) = make_baselines(make_run(blank, make_trial(0), make_trial(1)), Provenance())
    assert baseline.identity == IDENTITY


@pytest.mark.parametrize("definitions", [(1, 2), (2, 1)])
def test_a_baseline_has_the_newest_way_in_which_drift_was_measured(definitions: tuple[int, int]) -> None:
    """A trial that measured none knows no other than the first."""
    trials = [replace(make_trial(index), drift_definition=way) for index, way in enumerate(definitions)]
    (baseline,) = make_baselines(make_run(*trials), Provenance())
    assert baseline.drift_definition == 2


def test_cases_without_a_full_measurement_have_no_baseline() -> None:
    """A failure in one trial spoils the case; a case without trials has nothing to store."""
    cases = make_run(make_trial(1), make_trial(1, OTHER), make_trial(1, "idle/x")).cases
    run = make_run(make_trial(1), make_trial(1, OTHER), cases=cases, failures=(make_failure(OTHER),))
    assert [baseline.case_id for baseline in make_baselines(run, Provenance())] == [CASE]
