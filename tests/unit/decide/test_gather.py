"""Which stored baseline a metric is compared with, and why there is none."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.evidence.gather import Evidence, Stored, gather_evidence, list_short
from gate.records.cases import Case, Metric
from gate.records.run import Environment, Extent, Provenance, Trial
from gate.records.verdict import Reason
from tests.hosts import CPU_HOST
from tests.make import make_baseline, make_failure, make_run, make_trial, make_trials

CASE = Case(id="mlp/x", model="mlp", factory="m:build", definition="d1")
LATENCY, DRIFT, BREAKS, CALLS = (
    Metric.COMPILED_LATENCY,
    Metric.DRIFT,
    Metric.GRAPH_BREAKS,
    Metric.COMPILE_CALLS,
)


def store(*metrics: Metric, **fields: Any) -> Stored:
    """What is stored of these metrics, alike in all that ``fields`` do not name."""
    alike = {"same_host": True, "same_stack": True, "same_codegen": True, "same_definition": True, **fields}
    return Stored(baseline=make_baseline(CASE.id, dict.fromkeys(metrics, (1.0,))), **alike)


def make_evidence(*stored: Stored, trials: Sequence[Trial] = ()) -> Evidence:
    return Evidence(case=CASE, trials=tuple(trials), failures=(), values={}, stored=stored)


STACK = {"same_host": False}
OTHER_ISA = {**STACK, "same_codegen": False}
OTHER_STACK = {**OTHER_ISA, "same_stack": False}
REDEFINED = {"same_definition": False}
DRIFTED = {"same_drift": False}


@pytest.mark.parametrize(
    ("metric", "fields", "expected"),
    [
        (LATENCY, {}, True),
        (LATENCY, STACK, False),
        (BREAKS, STACK, True),
        (BREAKS, OTHER_ISA, True),
        (BREAKS, OTHER_STACK, False),
        (CALLS, STACK, True),
        (CALLS, OTHER_ISA, False),
        (LATENCY, REDEFINED, False),
        (DRIFT, DRIFTED, False),
        (BREAKS, DRIFTED, True),
    ],
)
def test_a_metric_is_compared_within_its_scope(
    metric: Metric, fields: dict[str, Any], *, expected: bool
) -> None:
    """Times need this host, counts this stack, some of them its code generation; the first counts."""
    stored = store(LATENCY, DRIFT, BREAKS, CALLS, **fields)
    assert make_evidence(stored).find_baseline(metric) is (stored.baseline if expected else None)
    without, last = store(Metric.PEAK_MEMORY), store(LATENCY, DRIFT, BREAKS, CALLS)
    chosen = stored if expected else last
    assert make_evidence(without, stored, last).find_baseline(metric) is chosen.baseline


@pytest.mark.parametrize(
    ("metric", "stored", "expected"),
    [
        (LATENCY, [], Reason.NO_BASELINE),
        (LATENCY, [store(LATENCY, **STACK)], Reason.OTHER_ENVIRONMENT),
        (LATENCY, [store(BREAKS)], Reason.NOT_MEASURED),
        (LATENCY, [store(LATENCY, **REDEFINED)], Reason.STALE_DEFINITION),
        (LATENCY, [store(LATENCY, **REDEFINED), store(BREAKS)], Reason.NOT_MEASURED),
        (DRIFT, [store(DRIFT, **DRIFTED)], Reason.MEASURED_OTHERWISE),
        (DRIFT, [store(DRIFT, **DRIFTED), store(DRIFT, **REDEFINED)], Reason.MEASURED_OTHERWISE),
        (DRIFT, [store(DRIFT, **DRIFTED, **REDEFINED)], Reason.STALE_DEFINITION),
        (DRIFT, [store(DRIFT, **DRIFTED, **OTHER_STACK)], Reason.OTHER_ENVIRONMENT),
    ],
)
def test_a_metric_without_a_baseline_says_why(
    metric: Metric, stored: Sequence[Stored], expected: Reason
) -> None:
    """The reason is of the baseline that comes nearest."""
    assert make_evidence(*stored).explain_lack(metric) is expected


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([], False),
        ([store(LATENCY)], False),
        ([store(BREAKS)], True),
        ([store(BREAKS), store(LATENCY)], False),
        ([store(BREAKS), store(LATENCY, **REDEFINED)], True),
        ([store(BREAKS), store(LATENCY, **STACK)], True),
        ([store(BREAKS, **STACK)], False),
        ([store(BREAKS, **REDEFINED)], False),
    ],
)
def test_a_metric_is_unknown_here_where_this_host_has_only_others(
    stored: Sequence[Stored], *, expected: bool
) -> None:
    """Baselines of this host and definition know others of its metrics."""
    assert make_evidence(*stored).is_unknown_here(LATENCY) is expected


UPGRADED = {**STACK, "upgrade": ("driver 1 -> 2",)}


@pytest.mark.parametrize(
    ("metric", "fields", "expected"),
    [
        (LATENCY, UPGRADED, True),
        (LATENCY, STACK, False),
        (LATENCY, {**UPGRADED, **REDEFINED}, False),
        (Metric.EAGER_LATENCY, UPGRADED, False),
    ],
)
def test_times_that_decide_are_compared_across_an_upgrade(
    metric: Metric, fields: dict[str, Any], *, expected: bool
) -> None:
    """The newest of the same hardware that has the metric is compared, and no control is."""
    stored = store(LATENCY, Metric.EAGER_LATENCY, **fields)
    without = store(BREAKS, **UPGRADED)
    assert make_evidence(without, stored).find_upgraded(metric) is (stored if expected else None)


def test_what_a_compile_made_is_compared_with_the_same_code_generation() -> None:
    """Canaries are the newest of this host, code and workload of this definition and code generation."""
    redefined, isa = store(LATENCY, **REDEFINED), store(LATENCY, **OTHER_ISA)
    stored, other = store(LATENCY, **STACK), store(LATENCY, **OTHER_STACK)
    evidence = make_evidence(isa, redefined, stored, store(LATENCY))
    assert evidence.host_baseline is redefined.baseline
    assert evidence.code_baseline is stored.baseline
    assert make_evidence(other).host_baseline is None
    assert make_evidence(other).code_baseline is None


OTHER_CORES = replace(CPU_HOST, cores=CPU_HOST.cores + 1)
OTHER_VECTORS = replace(OTHER_CORES, isa="other")
OTHER_TORCH = replace(OTHER_CORES, torch="0.1")


def test_the_most_comparable_baseline_comes_first() -> None:
    """This host, then its code generation, then its stack, then any; of each the newest."""
    hosts: list[tuple[Environment, str]] = [
        (OTHER_TORCH, "2026-06-01T00:00:00Z"),
        (OTHER_VECTORS, "2026-05-01T00:00:00Z"),
        (OTHER_CORES, "2026-04-01T00:00:00Z"),
        (CPU_HOST, "2026-02-01T00:00:00Z"),
        (CPU_HOST, "2026-03-01T00:00:00Z"),
    ]
    baselines = [
        make_baseline(CASE.id, {}, environment=host, provenance=Provenance(created=created))
        for host, created in hosts
    ]
    run = make_run(make_trial(CASE.id, {LATENCY: 1.0}), cases=(CASE,))
    (evidence,) = gather_evidence(run, baselines)
    ranked = [baselines.index(stored.baseline) for stored in evidence.stored]
    assert ranked == [4, 3, 2, 1, 0]
    assert [(match.same_host, match.same_codegen, match.same_stack) for match in evidence.stored] == [
        (True, True, True),
        (True, True, True),
        (False, True, True),
        (False, False, True),
        (False, False, False),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("x", ("x", "x"), True),
        ("x", ("y", "y"), False),
        ("x", ("x", "y"), False),
        ("", ("x",), False),
        ("x", ("",), False),
    ],
)
def test_a_case_whose_gradients_are_of_other_inputs_is_defined_otherwise(
    before: str, after: Sequence[str], *, expected: bool
) -> None:
    """Inference takes gradients of the inputs that the model wants them of."""
    trials = [
        make_trial(CASE.id, {LATENCY: 1.0}, index, workload={"inputs": "8", "gradients": gradients})
        for index, gradients in enumerate(after)
    ]
    baseline = make_baseline(CASE.id, {LATENCY: (1.0,)}, workload={"gradients": before} if before else {})
    (evidence,) = gather_evidence(make_run(*trials, cases=(CASE,)), [baseline])
    assert evidence.stored[0].same_definition is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (2, (1, 2), True),
        (2, (2, 1), True),
        (1, (1, 2), False),
        (2, (1, 1), False),
        (1, (), True),
        (2, (), False),
    ],
)
def test_drift_is_compared_with_what_was_measured_in_the_newest_way_of_the_trials(
    before: int, after: Sequence[int], *, expected: bool
) -> None:
    """A trial that measured none knows no other way than the first, and no trial at all neither."""
    trials = [
        make_trial(CASE.id, {DRIFT: 1.0}, index, drift_definition=way) for index, way in enumerate(after)
    ]
    baseline = make_baseline(CASE.id, {DRIFT: (1.0,)}, drift_definition=before)
    (evidence,) = gather_evidence(make_run(*trials, cases=(CASE,)), [baseline])
    assert evidence.stored[0].same_drift is expected


def test_the_fullest_trial_is_the_last_that_compiled_all() -> None:
    """Of those that measured all, the last with phases; else the last of all."""
    blank, other = make_trials(CASE.id, [{}, {}])
    cold = replace(other, extent=Extent.COLD, phases_s={"dynamo": 1.0})
    compiled = replace(blank, phases_s={"dynamo": 1.0})
    assert make_evidence(trials=[compiled, other, cold]).fullest is compiled
    assert make_evidence(trials=[blank, other, cold]).fullest is other
    assert make_evidence(trials=[cold]).fullest is cold
    assert make_evidence().fullest is None


def test_a_case_is_short_of_trials_where_fewer_came_than_were_planned() -> None:
    """What failed is not short of trials: it would fail again."""
    cases = tuple(replace(CASE, id=name) for name in ("one", "two", "none", "failed"))
    trials = [make_trial("one", {}, 1), *make_trials("two", [{}, {}]), make_trial("failed", {})]
    run = make_run(*trials, cases=cases, failures=(make_failure("failed"),), trials_planned=2)
    assert [evidence.case.id for evidence in list_short(run)] == ["one", "none"]
