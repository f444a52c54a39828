"""What only a CUDA device can show, beside the tests of gate/device_tests. Skipped where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import distributions
from typing import Any

import pytest
import torch

from gate.measure import usage
from gate.measure.compiler import graph
from gate.measure.device.device import CudaDevice
from gate.measure.device.opening import open_device
from gate.measure.environment import capture_environment
from gate.measure.rounds import run_rounds, settle_step, size_blocks, time_calls, warm_up
from gate.measure.workload.build import Subject, compile_function, make_compiled_step, make_step, make_subject
from gate.records import Case, DType, Metric, Mode
from gate.records.protocol import Sampling, Side, WorkerRequest, WorkerRole
from gate.suite.session import SynchronizedTimer
from gate.workload import Workload

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.alone,  # other tests beside would be strangers on the device, and move its clocks
    # Inductor warns of every float32 graph with matrix products while TF32 is off, as it is by default.
    pytest.mark.filterwarnings("ignore:TensorFloat32:UserWarning"),
    # Torch captures an empty graph to make the pool of its graphs, and then warns of it.
    pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture
def device() -> CudaDevice:
    """Return the first CUDA device."""
    opened = open_device("cuda")
    assert isinstance(opened, CudaDevice)
    return opened


def make_case(mode: Mode = Mode.DEFAULT) -> Case:
    """Return a case of a made-up model."""
    return Case(id="m/c", model="m", factory="m:f", dtype=DType.FLOAT32, mode=mode)


def make_layers(device: CudaDevice, mode: Mode = Mode.DEFAULT) -> Subject:
    """Return a small stack of layers on the device."""
    layers = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
    workload = Workload(forward=layers, inputs=(torch.randn(256, 512),))
    return make_subject(workload, make_case(mode), device)


def time_with(timer: Callable[[], float]) -> Callable[..., list[float]]:
    """Return what times blocks with ``timer``."""

    def time_blocks(target: Callable[[], object], lead_in: Callable[[], None], rounds: int) -> list[float]:
        times_s = []
        for _ in range(rounds):
            lead_in()
            begun = timer()
            target()
            times_s.append(timer() - begun)
        return times_s

    return time_blocks


def test_timer_waits_for_the_device(device: CudaDevice) -> None:
    """A launch returns at once; the timer's second reading comes after the work."""
    left = torch.ones(8192, 8192, device=device.name)
    torch.mm(left, left)
    timer = SynchronizedTimer()
    timer.synchronize = device.synchronize
    begun = timer()
    launched = time.perf_counter()
    torch.mm(left, left)
    launched_s = time.perf_counter() - launched
    assert timer() - begun > 2 * launched_s


def test_environment_names_the_device(device: CudaDevice) -> None:
    """The fingerprint has the GPU's name and UUID, and the CUDA and Triton versions."""
    environment = capture_environment(
        device,
        WorkerRequest(role=WorkerRole.PRIME, case=None, device="cuda", threads=1, directory="", result=""),
    )
    assert environment.device_kind == "cuda"
    assert environment.device_model == torch.cuda.get_device_name(device.name)
    assert environment.device_uuid.startswith(("GPU-", "MIG-"))
    assert environment.cuda == torch.version.cuda
    assert environment.triton
    assert environment.device_traits["capability"] == "{}.{}".format(*torch.cuda.get_device_capability())
    assert environment.device_traits["compute_mode"]
    installed = {found.name for found in distributions() if found.name.startswith("nvidia-cublas")}
    assert installed <= environment.libraries.keys()  # a container's torch may have it from elsewhere


def test_canaries_have_a_launch(device: CudaDevice) -> None:
    """On a GPU, the cost of launching is a canary of its own."""
    assert {"matmul", "copy", "python", "launch"} == usage.run_canaries(device).keys()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.REDUCE_OVERHEAD])
def test_rounds_run_without_recompiles(device: CudaDevice, mode: Mode) -> None:
    """Eager and compiled alternate; CUDA graphs are used, not skipped, and nothing is recompiled."""
    subject, sampling = make_layers(device, mode), Sampling(super_blocks=3, warmup_s=0.05)
    timer = SynchronizedTimer()
    timer.synchronize = device.synchronize
    torch.compiler.reset()  # the other mode compiled the same function
    graph.start_observation()
    with torch.no_grad():
        steps: dict[Side, Callable[[], Any]] = {
            Side.EAGER: make_step(subject, subject.function),
            Side.COMPILED: make_compiled_step(subject, compile_function(subject.function, subject.case)),
        }
        settle_step(steps[Side.COMPILED], device, 5)
        calls = {side: warm_up(step, device, sampling) for side, step in steps.items()}
        sizes, _ = size_blocks(steps, calls, device)
        rounds = run_rounds(steps, sizes, sampling.super_blocks, time_with(timer))
        counts = graph.observe_graphs("").counts
        launches = usage.count_host_launches(device.profile(steps[Side.COMPILED], 5), 5)
    assert (0, 0) == (rounds.recompiled, counts[Metric.RECOMPILES])
    assert counts[Metric.CUDAGRAPH_SKIPS] == 0
    graphs = 1 if mode is Mode.REDUCE_OVERHEAD else 0
    assert launches[Metric.CUDAGRAPH_LAUNCHES] == graphs
    assert launches[Metric.LAUNCHES] >= 1
    assert len(rounds.times[Side.COMPILED]) == 6


@pytest.mark.slow
def test_warm_latency_agrees_with_do_bench(device: CudaDevice) -> None:
    """For device-bound work, triton's own benchmark sees the same time within 3 %."""
    do_bench = pytest.importorskip("triton.testing").do_bench
    left = torch.randn(8192, 8192, device=device.name)

    def run() -> object:
        return torch.mm(left, left)

    pairs = [(time_calls(run, device, 10) / 10, do_bench(run, return_mode="median") * 1e-3) for _ in range(7)]
    ratios = sorted(own / other for own, other in pairs)
    assert ratios[3] == pytest.approx(1, abs=0.03)
