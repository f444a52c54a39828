"""The warm process: both sides' memory by one definition."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gate.measure import graph, kept, trial
from gate.measure.calls import CompileCalls
from gate.measure.context import WorkerContext
from gate.measure.device.cpu import CpuDevice
from gate.measure.device.device import Call
from gate.measure.logbook import Logbook
from gate.measure.trial import measure_warm
from gate.records.cases import Case, Metric, Task
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import WorkerRole
from gate.records.run import CacheUse
from gate.workload import Workload

from .contexts import make_context

MIB = 2**20


class DeviceWithWorkspace(CpuDevice):
    """A device whose libraries hold 32 MiB once they were called, as cuBLAS does on an H100."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Return the tensors and the workspace."""
        return tensor_bytes + 32 * MIB

    def measure_growth(self, run: Call) -> int:
        """Return 4 MiB for any call."""
        run()
        return 4 * MIB

    def measure_tensor_growth(self, run: Call) -> int:
        """Return the same for either side."""
        return self.measure_growth(run)


def make_warm(device: CpuDevice) -> WorkerContext:
    """Make the context of a second process that compiles nothing."""
    return make_context(
        Logbook(None, WorkerRole.WARM), Case(id="m/c", model="m", backend="eager"), device=device
    )


def test_workspaces_of_libraries_count_on_both_sides() -> None:
    """If compiled needs no more than eager, the ratio is 1, and not 12 for a small model."""
    context = make_warm(DeviceWithWorkspace())
    logbook = context.logbook
    graph.start_observation()  # a worker is a fresh process: no other test's compiles are counted in it
    measure_warm(context, Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),)))
    assert logbook.result.samples[Metric.MEMORY_RATIO] == (pytest.approx(1.0),)
    assert logbook.result.samples[Metric.MEMORY_GROWTH] == (0.0,)
    assert not logbook.result.warnings
    (peak,) = logbook.result.samples[Metric.PEAK_MEMORY]
    assert peak == pytest.approx(36 * MIB, rel=0.01)


class Counted(torch.nn.Linear):
    """Computes with the number of its call, which is a constant to Dynamo."""

    calls = 0

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(value) + self.calls


def test_a_model_that_compiles_at_each_call_is_noted() -> None:
    """Warming up ends after 64 calls, with a note that the model has not settled."""
    context = make_warm(CpuDevice())
    graph.start_observation()
    with torch._dynamo.config.patch(recompile_limit=80, accumulated_recompile_limit=80):
        measure_warm(context, Workload(forward=Counted(8, 8), inputs=(torch.randn(4, 8),)))
    assert Fact(code=Code.NEVER_SETTLES, numbers={"calls": 64}) in context.logbook.result.warnings


class Watched(torch.nn.Linear):
    """Keeps its inputs in a list that nothing empties."""

    def __init__(self) -> None:
        super().__init__(128, 128)
        self.seen: list[torch.Tensor] = []

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Keep 64 KiB."""
        self.keep(value)
        return super().forward(value)

    @torch.compiler.disable  # type: ignore[untyped-decorator] # torch's
    def keep(self, value: torch.Tensor) -> None:
        self.seen.append(value.detach().clone())


def test_memory_that_calls_keep_is_reported_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each compiled call keeps 64 KiB, and eager's as well.

    It is rounded to 1 KiB: with the objects of a tensor, less than 1 KiB, it reads as 64 or 65 KiB.
    """
    monkeypatch.setattr(kept, "_MOST_CALLS", 64)
    case, logbook = Case(id="m/c", model="m", backend="eager"), Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case, directory="/nowhere")
    measure_warm(context, Workload(forward=Watched(), inputs=(torch.randn(128, 128),)))
    (growth,) = logbook.result.samples[Metric.MEMORY_GROWTH]
    assert growth in {64 * 1024, 65 * 1024}
    (fact,) = [fact for fact in logbook.result.warnings if fact.code is Code.MEMORY_KEPT]
    assert fact.numbers["bytes"] == growth
    assert fact.numbers["eager"] in {64 * 1024, 65 * 1024}
    line = inspect.getsourcelines(Watched.keep)[1] + 2
    assert fact.name("location").endswith(f"test_warm.py:{line}")


class Dropping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(self.layer(value), 0.5, training=True)


def test_steps_of_random_training_are_not_compared() -> None:
    """Ten steps draw ten times: the drift of one is judged, and a note replaces that of ten."""
    case = Case(id="m/c", model="m", backend="eager", task=Task.TRAINING)
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case, device=DeviceWithWorkspace(), skips_calls=True)
    workload = Workload(
        forward=Dropping(),
        inputs=(torch.randn(4, 8),),
        loss=torch.sum,
        optimizer=torch.optim.SGD,
    )
    measure_warm(context, workload)
    assert logbook.result.samples[Metric.DRIFT] == (0.0,)
    assert Metric.DRIFT_STEPS not in logbook.result.samples
    assert (Code.UNMEASURED, (Metric.DRIFT_STEPS,)) in [
        (fact.code, fact.metrics) for fact in logbook.result.warnings
    ]


@pytest.mark.parametrize(
    ("use", "is_counted"),
    [
        (CacheUse(misses=2), True),
        (CacheUse(hits=2, misses=4), True),  # the second of two equal blocks, behind a graph break
        (CacheUse(hits=2), False),
    ],
)
def test_a_graph_that_repeats_within_a_model_is_counted(
    use: CacheUse, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph is found once the same call has compiled it; only if all were found was something left over."""
    context = make_warm(CpuDevice())
    logbook = context.logbook
    monkeypatch.setattr(trial, "count_compile_calls", lambda *_, **__: CompileCalls(total=7))
    observed = SimpleNamespace(cache=use, caches={}, unknown=())
    monkeypatch.setattr(graph, "observe_graphs", lambda _: observed)
    prepared: Any = SimpleNamespace(compiled_step=lambda: None)
    trial._count_calls(context, prepared, Path())
    assert logbook.result.samples.get(Metric.COMPILE_CALLS) == ((7,) if is_counted else None)
