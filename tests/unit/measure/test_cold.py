"""What a cold process makes of its calls, without compiling anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gate.devices import CPU, CUDA, DeviceKind
from gate.measure import cold
from gate.measure.compiler import graph
from gate.measure.compiler.graph import GraphReport
from gate.measure.context import WorkerContext
from gate.measure.device.device import CpuDevice
from gate.measure.process.logbook import Logbook
from gate.measure.timing import canary
from gate.measure.timing.rounds import PairedTimes, Rounds
from gate.measure.warm import measure_warm
from gate.records import FIRST_CALL, CacheUse, Case, Kind, Metric
from gate.records.protocol import Sampling, WorkerRole
from gate.workload import Workload


class PlayedDevice(CpuDevice):
    """The processor, as a device of another kind."""

    def __init__(self, kind: DeviceKind) -> None:
        super().__init__()
        self.kind = kind


def settle(kind: DeviceKind, monkeypatch: pytest.MonkeyPatch, wall_s: float) -> dict[str, float]:
    """Record a first call of 5 s and six after it, where a steady one takes 0.1 s; return the phases."""
    logbook = Logbook(None, WorkerRole.COLD)
    logbook.record(phases_s={"dynamo": 3.0, FIRST_CALL: 5.0})
    context = WorkerContext(
        case=Case(id="m/c", model="m"),
        device=PlayedDevice(kind),
        sampling=Sampling(),
        logbook=logbook,
        directory="",
    )
    # By now the compiler's clocks tell of the capture, and of what else went on after the first call.
    later = GraphReport(counts={}, cache=CacheUse(), phases_s={"dynamo": 3.5, "cudagraph_capture": 1.25})
    monkeypatch.setattr(graph, "observe_graphs", lambda _: later)
    times = PairedTimes(eager_s=(0.2, 0.2), compiled_s=(0.1, 0.1))
    rounds = Rounds(times=times, calls={}, order="", recompiled=0)
    cold._record_settling(context, 6, wall_s, rounds)
    return dict(logbook.result.phases_s)


def test_what_a_user_waits_for_after_the_first_call_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graphed case captures in its second call: of 2.6 s six steady calls would have taken 0.6 s.

    What the first call took stays as it was read after it.
    """
    assert settle(CUDA, monkeypatch, 2.6) == {
        "dynamo": 3.0,
        FIRST_CALL: 5.0,
        "cudagraph_capture": 1.25,
        "until_steady": pytest.approx(2.0),
    }


def test_calls_that_were_faster_than_steady_ones_took_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was captured, and the timed blocks were the slower ones."""
    assert settle(CUDA, monkeypatch, 0.5)["until_steady"] == 0.0


def test_a_processor_captures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does after the first call is running."""
    assert settle(CPU, monkeypatch, 2.6) == {"dynamo": 3.0, FIRST_CALL: 5.0}


def play_rounds(target: Callable[[], float | None], lead_in: Callable[[], None], rounds: int) -> list[float]:
    """Run the blocks, of a millisecond each."""
    for _ in range(rounds):
        lead_in()
        target()
    return [0.001] * rounds


@pytest.mark.parametrize("is_there", [False, True])
def test_a_process_that_finds_no_artifacts_saves_them_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """A second pair finds empty caches after an interruption; else the first one has left some there."""
    loaded: list[bytes] = []
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: (b"saved", None))
    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", loaded.append)
    monkeypatch.setattr(canary, "run_canaries", lambda _: {})
    if is_there:
        (tmp_path / "artifacts.bin").write_bytes(b"of the first pair")
    logbook = Logbook(None, WorkerRole.ROUNDS)
    context = WorkerContext(
        case=Case(id="m/c", model="m", kind=Kind.CACHE, backend="eager"),
        device=CpuDevice(),
        sampling=Sampling(super_blocks=2, warmup_s=0.0, min_warmup_calls=1, drift_seeds=1),
        logbook=logbook,
        directory="",
        skips_calls=True,
    )
    workload = Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),))
    cold.measure_again(context, workload, play_rounds)
    assert Metric.PACKAGE_BYTES not in logbook.result.samples
    torch.compiler.reset()
    measure_warm(context, workload)
    assert loaded == [b"of the first pair" if is_there else b"saved"]
    assert len(logbook.result.samples[Metric.WARM_COMPILE_TIME]) == 1
