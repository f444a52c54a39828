"""Each planted fault does in a real worker what its name says, by the requested amount."""

import statistics
from dataclasses import replace

import pytest

from gate.records.cases import Case, DType, Metric, Task
from gate.records.protocol import WorkerResult
from gate.records.studies import FaultKind
from gate.selftest.catalog import Fault, FaultSize, list_faults, plant_case
from tests.integration.measure.conftest import Workshop

Both = tuple[WorkerResult, WorkerResult]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MIB = 1024 * 1024
CASE = Case(id="layers/planted", model="layers", factory="made_up:build", arguments={"fault": ""})
TRAINING = Case(
    id="layers/trained", model="layers", factory="made_up:build", arguments={}, task=Task.TRAINING
)
HALF = Case(
    id="layers/half",
    model="layers",
    factory="made_up:build",
    arguments={},
    dtype=DType.BFLOAT16,
    backend="eager",
)
# Whatever shows in what Dynamo traces needs no code to be generated.
TRACED = replace(CASE, id="layers/traced", backend="eager")


def plant(kind: FaultKind, amount: float = 0.0, case: Case = CASE) -> Case:
    """Make the case that carries a fault."""
    return plant_case(case, find_fault(kind), FaultSize(amount=amount))


def find_fault(kind: FaultKind) -> Fault:
    """Find a fault of a kind, of any size."""
    return next(fault for fault in list_faults("cpu") if fault.kind is kind)


def read_one(result: WorkerResult, metric: Metric) -> float:
    """Return the median of a metric's samples; the worker must not have failed."""
    assert result.failure is None
    return statistics.median(result.samples[metric])


@pytest.fixture(scope="module")
def healthy(workshop: Workshop) -> Both:
    """The results of both processes with nothing planted, but through the same seam."""
    return workshop.measure_both(plant(FaultKind.NOTHING, case=TRACED))


def test_nothing_planted_is_no_fault(healthy: Both) -> None:
    """The seam itself leaves no trace in any counter."""
    cold, warm = healthy
    counters = (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.EAGER_FALLBACKS)
    assert [0.0, 0.0, 0.0] == [read_one(cold, metric) for metric in counters]
    assert (1, 4) == (read_one(cold, Metric.UNIQUE_GRAPHS), read_one(cold, Metric.CAPTURED_OPS))
    assert abs(read_one(warm, Metric.DRIFT)) < 0.5


def test_slowdown_of_a_training_step(workshop: Workshop) -> None:
    """0.1 s more in every compiled step, none in eager; and the graphs are found in the cache again.

    Other tests may slow any block down, but never speed one up: with them an eager step took 76 ms.
    """
    cold, warm = workshop.measure_both(plant(FaultKind.SLOWDOWN, 0.1, TRAINING))
    assert cold.failure is None
    assert min(cold.samples[Metric.COMPILED_LATENCY]) >= 0.1
    assert min(cold.samples[Metric.EAGER_LATENCY]) < 0.1
    assert (0, 0) == (read_one(cold, Metric.GRAPH_BREAKS), read_one(warm, Metric.CACHE_MISSES))


def test_graph_break(workshop: Workshop) -> None:
    """At least one."""
    cold = workshop.measure_cold(plant(FaultKind.GRAPH_BREAK, case=TRACED))
    assert read_one(cold, Metric.GRAPH_BREAKS) >= 1


def test_recompile_at_every_call(workshop: Workshop) -> None:
    """Dynamo compiles anew until its limit of 8 and then leaves the frame to eager."""
    cold = workshop.measure_cold(plant(FaultKind.RECOMPILE, case=TRACED))
    assert read_one(cold, Metric.RECOMPILES) >= 7
    assert read_one(cold, Metric.EAGER_FALLBACKS) == 1


def test_cold_compile(healthy: Both, workshop: Workshop) -> None:
    """A second more of tracing, which shows in the Python calls as well."""
    cold, warm = workshop.measure_both(plant(FaultKind.COLD_COMPILE, 1.0, TRACED))
    assert read_one(cold, Metric.COLD_COMPILE_TIME) > 1.0
    assert read_one(warm, Metric.COMPILE_CALLS) > 1.5 * read_one(healthy[1], Metric.COMPILE_CALLS)


def test_memory(healthy: Both, workshop: Workshop) -> None:
    """32 MiB more at the peak, within two of them."""
    warm = workshop.measure_warm(plant(FaultKind.MEMORY, 32.0 * MIB, TRACED))
    more = read_one(warm, Metric.PEAK_MEMORY) - read_one(healthy[1], Metric.PEAK_MEMORY)
    assert more == pytest.approx(32 * MIB, abs=2 * MIB)


def test_wrong_epsilon_shows_through_bfloat16(workshop: Workshop) -> None:
    """Rounding to bfloat16 hides it, and the float32 twin shows it."""
    warm = workshop.measure_warm(plant(FaultKind.WRONG_EPS, 0.0, HALF))
    assert read_one(warm, Metric.DRIFT_FLOAT32) > 3


def test_lost_cache_hit(workshop: Workshop) -> None:
    """The second process finds nothing."""
    _, warm = workshop.measure_both(plant(FaultKind.LOST_CACHE))
    assert read_one(warm, Metric.CACHE_MISSES) >= 1
