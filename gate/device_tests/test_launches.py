"""Code and launches: that kernels are generated the same again, and listed by the names that are counted."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from gate.device_tests.plugin import DeviceReport
from gate.device_tests.test_clocks import make_graphed, make_product
from gate.measure import graph, identity
from gate.measure.device.choice import open_device
from gate.measure.device.device import Device
from gate.measure.precision import without_tf32
from gate.measure.rounds import call_until_quiet, time_calls
from gate.measure.usage import PROFILED_CALLS, count_host_launches, sum_kernels
from gate.programs import ask_program
from gate.records.cases import Metric

_ADDS = 200
_QUIET_CALLS = 5
_TIMED_CALLS = 20
_ROWS, _NAME_CHARS = 40, 200  # of a table that the profiler prints
_PRINT = (
    "import sys; from gate.device_tests.test_launches import print_identity; print_identity(*sys.argv[1:])"
)
_LIMIT_S = 140  # of one process that imports torch and compiles one graph
_EDGE = 512
_STEPS = 5


def _count_launches(device: Device, run: Callable[[], object]) -> dict[Metric, int]:
    run()
    return count_host_launches(device.profile(run, PROFILED_CALLS), PROFILED_CALLS)


def _measure_utilization(device: Device, run: Callable[[], object]) -> float:
    run()
    call_s = time_calls(run, device, _TIMED_CALLS) / _TIMED_CALLS
    return sum(sum_kernels(device.profile(run, PROFILED_CALLS), PROFILED_CALLS).values()) / call_s


def _keep_table(report: DeviceReport, file: str, run: Callable[[], object]) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    events = profile.key_averages()
    table = events.table(sort_by="self_device_time_total", row_limit=_ROWS, max_name_column_width=_NAME_CHARS)
    report.keep(f"{file}.txt", table)


def test_the_profiler_lists_every_launch(device: Device, report: DeviceReport) -> None:
    """A kernel, a copy and a fill of known number are counted exactly: 3 additions, 2 copies, 1 fill."""
    source = torch.ones(1 << 20, device=device.name)
    target = torch.empty_like(source)

    def run() -> None:
        for _ in range(3):
            source.add_(1)
        target.copy_(source)
        source.copy_(target)
        target.view(torch.uint8).zero_()

    run()
    _keep_table(report, "profile-launches", run)
    report.check_range(_count_launches(device, run).get(Metric.LAUNCHES, -1), 6, 6)


def test_utilization_separates_launch_bound_from_busy(device: Device, report: DeviceReport) -> None:
    """The device is busy for more than 0.8 of a product's time, and for less than 0.6 of tiny additions'."""
    tiny = torch.ones(8, device=device.name)
    busy = _measure_utilization(device, make_product(device))
    launch_bound = _measure_utilization(device, lambda: [tiny.add_(1) for _ in range(_ADDS)])
    report.check_range(min(1.0, busy), 0.8, 1.0, part="busy")
    report.check_range(launch_bound, 0.01, 0.6, part="launch-bound")


@pytest.mark.timeout(300)
def test_compiled_kernels_are_listed_by_name(device: Device, report: DeviceReport) -> None:
    """The profiler names a generated kernel as Inductor does, so that a report can say which one changed."""
    value = torch.randn(1 << 24, device=device.name)
    compiled = torch.compile(lambda tensor: tensor.sin().cos().exp().sum())
    compiled(value)
    _keep_table(report, "profile-kernels", lambda: compiled(value))
    names = list(sum_kernels(device.profile(lambda: compiled(value), PROFILED_CALLS), PROFILED_CALLS))
    report.check(any(name.startswith("triton_") for name in names), names)


@pytest.mark.timeout(300)
def test_a_graph_is_one_launch(device: Device, report: DeviceReport) -> None:
    """A call that was captured whole launches one CUDA graph, and nothing else but copies of its inputs."""
    step = make_graphed(device)
    graph.start_observation()
    call_until_quiet(step, device, _QUIET_CALLS)
    counts = graph.observe_graphs("").counts
    for metric in (Metric.CUDAGRAPH_SKIPS, Metric.RECOMPILES):
        report.check_range(counts.get(metric, -1), 0, 0, part=str(metric))
    _keep_table(report, "profile-graph", step)
    launches = _count_launches(device, step)
    report.check_range(launches.get(Metric.CUDAGRAPH_LAUNCHES, 0), 1, 1, part="graphs")
    report.check_range(launches.get(Metric.LAUNCHES, -1), 1, 2, part="launches")


@pytest.mark.timeout(300)
def test_a_cut_graph_shows(device: Device, report: DeviceReport) -> None:
    """An operator of the processor's within a graph shows: as a skip, as pieces, or as no graph at all."""
    value = torch.randn(1024, device=device.name)

    def mixed(tensor: torch.Tensor) -> torch.Tensor:
        host = (tensor[:4].cpu() * 2).to(device.name)
        return tensor.sin().cos() + host.sum()

    compiled = torch.compile(mixed, mode="reduce-overhead")

    def step() -> None:
        device.mark_step()
        with torch.no_grad():
            compiled(value)

    graph.start_observation()
    call_until_quiet(step, device, _QUIET_CALLS)
    counts = graph.observe_graphs("").counts
    graphs = _count_launches(device, step).get(Metric.CUDAGRAPH_LAUNCHES, 0)
    skips, pieces = (
        counts.get(metric, -1) for metric in (Metric.CUDAGRAPH_SKIPS, Metric.CUDAGRAPH_PARTITIONS)
    )
    shows = skips > 0 or pieces > 1 or graphs == 0
    report.check(shows, f"{skips} skips, {pieces} pieces, {graphs} graphs launched")


def print_identity(device: str) -> None:
    """Compile a small graph in this process, and print the identity of its code as JSON, last."""
    opened = open_device(device)
    value = torch.randn(_EDGE, _EDGE, device=opened.name)
    compiled = torch.compile(lambda matrix: (matrix @ matrix).sin().softmax(-1).sum())
    call_until_quiet(lambda: compiled(value), opened, _STEPS)
    code = identity.read_identity(graph.get_cache_directory())
    sys.stdout.write(f"{json.dumps(asdict(code))}\n")


@pytest.mark.cpu(judged=True)
@pytest.mark.timeout(300)
def test_identity_is_the_same_twice(device_name: str, report: DeviceReport) -> None:
    """Two processes with caches of their own generate the same code for one program, kernel by kernel."""
    first, second = (_compile_apart(device_name, number) for number in (1, 2))
    report.keep("identities.json", [first, second])
    digest = first["digest"]
    report.check(bool(digest) and digest == second["digest"], digest, "digest")
    report.check(first["kernels"] == second["kernels"], first["kernels"], "kernels")
    report.note("the same" if first["tuned"] == second["tuned"] else "otherwise", "tuned")


def _compile_apart(device_name: str, number: int) -> dict[str, object]:
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent / f"identity-{number}"
    directories = {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
    }
    command, variables = (sys.executable, "-P", "-c", _PRINT, device_name), {**os.environ, **directories}
    return ask_program(command, limit_s=_LIMIT_S, variables=variables).read_record()


@pytest.mark.cpu(judged=True)
def test_without_tf32_means_float32(device: Device, report: DeviceReport) -> None:
    """Where the gate turns TF32 off, a product of float32 is as good as float32 is: 1e-6 of its size.

    Whichever of torch's two interfaces a user has set before.
    """
    torch.set_float32_matmul_precision("high")
    with without_tf32():
        report.check_range(_measure_error(device), 0.0, 1e-6, part="by the older interface")
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with without_tf32():
        report.check_range(_measure_error(device), 0.0, 1e-6, part="by the newer")


def test_tf32_shows_in_drift(device: Device, report: DeviceReport) -> None:
    """With TF32 a product of float32 is worse by far: 1e-5 of its size at least, on a card that has it."""
    torch.set_float32_matmul_precision("high")
    error = _measure_error(device)
    capability = tuple(map(int, device.identify().traits["capability"].split(".")))
    if capability >= (8, 0):
        report.check_range(error, 1e-5, 1e-2)
    else:
        report.note(f"{error:.2g}: this card has none")


def _measure_error(device: Device) -> float:
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(_EDGE, _EDGE, generator=generator).to(device.name)
    exact = left.double() @ left.double()
    return float(((left @ left).double() - exact).norm() / exact.norm())
