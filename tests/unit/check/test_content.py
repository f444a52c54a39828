"""How much of its case a further trial or pair measures."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from gate.check.procedure import check_against_baselines
from gate.check.rehearsal import Rehearsal, drop_unmeasured
from gate.check.schedule import (
    EVERY_METRIC,
    WHOLE,
    Content,
    Slot,
    has_other_code,
    is_base_first,
    plan_content,
    plan_trial,
)
from gate.decide.evidence.pairs import Pair
from gate.decide.evidence.values import collect_values
from gate.records.cases import Metric
from gate.records.facts import Disturbance
from gate.records.run import CodeIdentity, Conditions, Extent, Pairing, Trial
from gate.records.verdict import Outcome

from .conftest import TYPICAL, Subject, make_run, make_terms, make_trial

LATENCY, COLD, WARM = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME
FIRST = Trial(case_id="a/x", index=1, identity=CodeIdentity(digest="c0de"))
LIGHT = replace(FIRST, index=2, extent=Extent.COLD)
DISTURBED = Conditions(disturbances=(Disturbance.CROWDED,))
NOTHING = Content(compiles=False, warm=False)
COMPILE = Content(compiles=True, warm=False)
BOTH = Content(compiles=True, warm=True)
CACHED = Content(compiles=False, warm=True, skips_calls=True)
RECOUNTED = Content(compiles=False, warm=True)
RETUNED = Content(compiles=True, warm=True, skips_calls=True)


@pytest.mark.parametrize(
    ("metrics", "device", "expected"),
    [
        ({LATENCY}, "cpu", Extent.COLD),
        ({Metric.WARM_SPEEDUP, LATENCY, Metric.EAGER_LATENCY}, "cpu", Extent.COLD),
        ({LATENCY}, "cuda", Extent.COLD),
        ({COLD, LATENCY}, "cpu", Extent.COLD),
        ({Metric.BREAK_EVEN_CALLS}, "cpu", Extent.COLD),
        ({WARM}, "cpu", Extent.WHOLE),
        ({Metric.GRAPH_BREAKS, LATENCY}, "cpu", Extent.WHOLE),
        ({Metric.PEAK_MEMORY}, "cpu", Extent.WHOLE),
        ({Metric.DRIFT}, "cpu", Extent.WHOLE),
        ({LATENCY}, "cuda:sm_90", Extent.WHOLE),  # of a target all is exact
        (EVERY_METRIC, "cpu", Extent.WHOLE),
    ],
)
def test_a_further_trial_measures_what_is_open(
    metrics: Collection[Metric], device: str, expected: Extent
) -> None:
    """A further trial compiles, and runs a warm process only for metrics that need one; that counts calls."""
    content = plan_trial(metrics, [FIRST], device)
    assert (content.extent, content.skips_calls) == (expected, False)


@pytest.mark.parametrize(
    "trials",
    [
        [],
        [replace(FIRST, pairing=Pairing.LIVE)],
        [LIGHT],
        [replace(FIRST, conditions=DISTURBED)],
        [replace(FIRST, conditions=DISTURBED), LIGHT],
        [FIRST, replace(LIGHT, identity=CodeIdentity(digest="other"))],
        [FIRST, replace(LIGHT, identity=CodeIdentity(digest=""))],
    ],
    ids=["first", "only a pair", "no whole one", "disturbed", "disturbed at first", "other code", "unknown"],
)
def test_without_a_whole_trial_of_the_same_code_all_is_measured(trials: list[Trial]) -> None:
    """A light trial needs an undisturbed whole one, and the same code in all trials."""
    assert plan_trial({LATENCY}, trials, "cpu") == WHOLE


@pytest.mark.parametrize(("own_steal", "expected"), [(0.06, Extent.COLD), (0.0, Extent.WHOLE)])
def test_what_the_hypervisor_takes_of_this_case_alone_disturbs_it(own_steal: float, expected: Extent) -> None:
    """Both trials of the case lost 6 %: no disturbance if most trials of the run did, too."""
    stolen = Conditions(stolen=0.06, disturbances=(Disturbance.STOLEN,))
    trials = [replace(FIRST, index=index, conditions=stolen) for index in (1, 2)]
    assert plan_trial({LATENCY}, trials, "cpu", own_steal).extent is expected


def test_code_that_was_only_tuned_otherwise_is_the_same() -> None:
    """Code that was tuned differently, or is unknown in all trials, is the same."""
    assert not has_other_code([FIRST, replace(FIRST, identity=CodeIdentity(digest="c0de", tuned="t"))])
    assert not has_other_code([replace(FIRST, identity=CodeIdentity(digest=""))] * 2)


def test_content_leaves_out_what_it_does_not_measure() -> None:
    """Without a compile latencies are left, without a warm process all but what needs one."""
    metrics = (LATENCY, Metric.EAGER_LATENCY, COLD, WARM, Metric.PEAK_MEMORY, Metric.GRAPH_BREAKS)
    whole = replace(FIRST, samples=dict.fromkeys(metrics, (1.0,)), phases_s={"cpu_self": 1.0})
    cold = drop_unmeasured(whole, Content(compiles=True, warm=False))
    light = drop_unmeasured(whole, Content(compiles=False, warm=False))
    assert set(cold.samples) == {LATENCY, Metric.EAGER_LATENCY, COLD, Metric.GRAPH_BREAKS}
    assert (set(light.samples), light.phases_s) == ({LATENCY, Metric.EAGER_LATENCY}, {})
    assert drop_unmeasured(whole, WHOLE) == whole
    counted = replace(FIRST, samples=dict.fromkeys((WARM, Metric.COMPILE_CALLS), (1.0,)))
    assert set(drop_unmeasured(counted, RETUNED).samples) == {WARM}


@pytest.mark.parametrize(
    ("metric", "index", "device", "expected"),
    [
        pytest.param(LATENCY, 1, "cpu", NOTHING, id="latency"),
        pytest.param(COLD, 1, "cpu", BOTH, id="compile_time_is_corroborated_once"),
        pytest.param(COLD, 2, "cpu", COMPILE, id="compile_time"),
        pytest.param(WARM, 1, "cpu", BOTH, id="warm_compile_time_is_corroborated_once"),
        pytest.param(WARM, 2, "cpu", CACHED, id="warm_compile_time"),
        pytest.param(WARM, 2, "cuda", RETUNED, id="warm_compile_time_of_code_that_is_tuned_anew"),
        pytest.param(Metric.PEAK_MEMORY, 1, "cpu", CACHED, id="memory"),
        pytest.param(Metric.PEAK_MEMORY, 2, "cpu", CACHED, id="further_memory"),
        pytest.param(Metric.PEAK_MEMORY, 1, "cuda", RETUNED, id="memory_of_code_that_is_tuned_anew"),
        pytest.param(Metric.COMPILE_CALLS, 1, "cpu", BOTH, id="calls_of_a_first_compile"),
        pytest.param(Metric.COMPILE_CALLS, 2, "cpu", RECOUNTED, id="calls"),
        pytest.param(LATENCY, 1, "cuda", COMPILE, id="tuning_is_drawn_anew"),
        pytest.param(LATENCY, 2, "cuda:sm_90", COMPILE, id="target"),
    ],
)
def test_a_compile_is_timed_for_what_it_decides_alone(
    metric: Metric, index: int, device: str, expected: Content
) -> None:
    """A pair of latencies or memory times no compile; a target compiles only."""
    assert plan_content([metric], index, device) == expected


@pytest.mark.parametrize(
    ("metric", "device", "expected"),
    [
        pytest.param(WARM, "cpu", RECOUNTED, id="warm_compile_time"),
        pytest.param(Metric.PEAK_MEMORY, "cpu", CACHED, id="memory"),
        pytest.param(COLD, "cpu", BOTH, id="cold_compile_time"),
        pytest.param(Metric.GRAPH_BREAKS, "cpu", COMPILE, id="counter"),
        pytest.param(WARM, "cuda", BOTH, id="tuning_is_drawn_anew"),
    ],
)
def test_a_first_pair_that_finds_its_code_compiles_only_for_what_a_compile_shows(
    metric: Metric, device: str, expected: Content
) -> None:
    """A second process on full caches needs no compile before it."""
    assert plan_content([metric], 1, device, finds_code=True) == expected


def take_no_pair(slot: Slot) -> Pair:
    """Fail, since a check without a base needs no pair."""
    raise AssertionError(slot)


def check_doubtful(metric: Metric, value: float) -> tuple[Outcome, list[Extent], dict[Metric, int]]:
    """Check four slow cases: the outcome, and the first case's extents and counts of values."""
    subjects = {f"{name}/x": Subject(name=name, alone=[{metric: value}, {}, {}]) for name in "abcd"}
    run = replace(make_run(list(subjects.values())), base=None)
    measurer = Rehearsal(
        take_trial=lambda slot: make_trial(subjects[slot.case.id], slot.index), take_pair=take_no_pair
    )
    checked = check_against_baselines(measurer, run, make_terms(run))
    trials = [trial for trial in checked.run.trials if trial.case_id == "a/x"]
    counts = {name: len(values) for name, values in collect_values(trials).items()}
    return checked.verdict.outcome, [trial.extent for trial in trials], counts


@pytest.mark.parametrize(("metric", "value"), [(LATENCY, 0.01055), (COLD, 11.1)])
def test_open_time_of_a_cold_process_is_settled_without_a_warm_one(metric: Metric, value: float) -> None:
    """A cold compile is settled by cold processes, and the other metrics keep their values."""
    outcome, extents, counts = check_doubtful(metric, value)
    assert (outcome, set(extents[1:])) == (Outcome.PASS, {Extent.COLD})
    assert counts[COLD] == counts[LATENCY] == counts[Metric.GRAPH_BREAKS] == len(extents)
    assert set(TYPICAL) <= set(counts)


def test_a_rehearsed_trial_knows_those_before_it() -> None:
    """After a whole one of 10 s latencies need 5 s each; the sixth would end after the budget's 32 s."""
    subject = Subject(name="a", alone=({},) * 6)
    measurer = Rehearsal(
        take_trial=lambda slot: replace(make_trial(subject, slot.index), stages_s={"rounds": 10.0}),
        take_pair=take_no_pair,
        budget_s=32.0,
    )
    run = replace(make_run([subject]), trials=())
    rehearsed = measurer.add_trials(run, {"a/x": {LATENCY}}, 6)
    assert [trial.extent for trial in rehearsed.trials] == [Extent.WHOLE, *[Extent.COLD] * 4]
    assert rehearsed.wall_s == 30.0


def test_graph_break_is_seen_again_in_a_whole_trial() -> None:
    """A graph break needs a whole trial, whatever else is open."""
    _, extents, _ = check_doubtful(Metric.GRAPH_BREAKS, 1.0)
    assert extents[1:] == [Extent.WHOLE]


def test_the_base_starts_first_in_half_of_all_pairs() -> None:
    """Arms alternate within a case, and half of the cases begin with the base."""
    orders = [[is_base_first(f"m{number}/x", index) for index in (1, 2, 3, 4)] for number in range(200)]
    assert {tuple(order) for order in orders} == {(True, False, True, False), (False, True, False, True)}
    assert 75 <= sum(order[0] for order in orders) <= 125
