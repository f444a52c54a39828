"""Code and launches: that kernels are generated the same again, and listed by the names that are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from gate.contact.assumptions import CPU, CUDA, Place, assume
from gate.contact.clocks import make_product
from gate.contact.findings import AssumptionResult, claim, expect_range, tell
from gate.contact.memory import make_graphed
from gate.measure.compiler import graph, identity
from gate.measure.device import torch_settings
from gate.measure.device.opening import open_device
from gate.measure.device.profile import DeviceProfile
from gate.measure.timing.rounds import settle_step, time_calls
from gate.records.metric import Metric

_ADDS = 200
_QUIET_CALLS = 5
_TIMED_CALLS = 20
_ROWS = 40  # of a table that the profiler prints


def _profile(place: Place, run: Callable[[], object]) -> DeviceProfile:
    run()
    found = place.device.profile(run, time_calls(run, place.device, _TIMED_CALLS) / _TIMED_CALLS)
    if found is None:
        raise TypeError(f"{place.name} is not profiled")
    return found


def _keep_table(place: Place, file: str, run: Callable[[], object]) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        place.device.synchronize()
    events = profile.key_averages()
    place.keep(f"{file}.txt", events.table(sort_by="self_device_time_total", row_limit=_ROWS))
    rows = [
        {
            "key": one.key,
            "count": one.count,
            "device_type": one.device_type.name,
            "self_device_time_total": one.self_device_time_total,
        }
        for one in events
    ]
    place.keep(f"{file}.json", rows)


@assume(CUDA)
def the_profiler_lists_every_launch(place: Place) -> AssumptionResult:
    """A kernel, a copy and a fill of known number are counted exactly: 3 additions, 2 copies, 1 fill."""
    one = torch.ones(1 << 20, device=place.device.name)
    other = torch.empty_like(one)

    def run() -> None:
        for _ in range(3):
            one.add_(1)
        other.copy_(one)
        one.copy_(other)
        other.view(torch.uint8).zero_()

    run()
    _keep_table(place, "profile-launches", run)
    return expect_range(_profile(place, run).launches or -1, 6, 6)


@assume(CUDA)
def utilization_tells_launch_bound_from_busy(place: Place) -> dict[str, AssumptionResult]:
    """The device is busy for more than 0.8 of a product's time, and for less than 0.6 of tiny additions'."""
    tiny = torch.ones(8, device=place.device.name)
    return {
        "busy": expect_range(_profile(place, make_product(place)).utilization or -1, 0.8, 1.0),
        "launch-bound": expect_range(
            _profile(place, lambda: [tiny.add_(1) for _ in range(_ADDS)]).utilization or -1, 0.01, 0.6
        ),
    }


@assume(CUDA, limit_s=300)
def compiled_kernels_are_listed_by_name(place: Place) -> AssumptionResult:
    """The profiler names a generated kernel as Inductor does, so that a report can say which one changed."""
    value = torch.randn(1 << 24, device=place.device.name)
    compiled = torch.compile(lambda one: one.sin().cos().exp().sum())
    compiled(value)
    _keep_table(place, "profile-kernels", lambda: compiled(value))
    names = list(_profile(place, lambda: compiled(value)).kernels_s)
    return claim(any(name.startswith("triton_") for name in names), names)


@assume(CUDA, limit_s=300)
def a_graph_is_one_launch(place: Place) -> dict[str, AssumptionResult]:
    """A call that was captured whole launches one CUDA graph, and nothing else but copies of its inputs."""
    step = make_graphed(place)
    settle_step(step, place.device, _QUIET_CALLS)
    _keep_table(place, "profile-graph", step)
    found = _profile(place, step)
    return {
        "graphs": expect_range(found.graph_launches or 0, 1, 1),
        "launches": expect_range(found.launches or -1, 1, 2),
    }


@assume(CUDA, limit_s=300)
def a_cut_graph_is_told(place: Place) -> AssumptionResult:
    """An operator of the processor's within a graph shows: as a skip, as pieces, or as no graph at all."""
    value = torch.randn(1024, device=place.device.name)

    def mixed(one: torch.Tensor) -> torch.Tensor:
        host = (one[:4].cpu() * 2).to(place.device.name)
        return one.sin().cos() + host.sum()

    compiled = torch.compile(mixed, mode="reduce-overhead")

    def step() -> None:
        place.device.mark_step()
        with torch.no_grad():
            compiled(value)

    graph.start_observation()
    settle_step(step, place.device, _QUIET_CALLS)
    counts = graph.observe_graphs("").counts
    graphs = _profile(place, step).graph_launches or 0
    skips, pieces = (counts.get(one, -1) for one in (Metric.CUDAGRAPH_SKIPS, Metric.CUDAGRAPH_PARTITIONS))
    shows = skips > 0 or pieces > 1 or graphs == 0
    return claim(shows, f"{skips} skips, {pieces} pieces, {graphs} graphs launched")


@assume(CUDA, limit_s=300)
def three_calls_until_a_graph_is_replayed(place: Place) -> AssumptionResult:
    """The first call compiles, the second captures, later ones replay: their times tell."""
    step = make_graphed(place)
    times_s = [place.device.measure_device_s(step, 1) or 0.0 for _ in range(6)]
    return tell(f"{', '.join(f'{1e3 * time_s:.1f}' for time_s in times_s)} ms")


_ASK = "import sys; from gate.contact.launches import print_identity; print_identity(*sys.argv[1:])"
_LIMIT_S = 140  # of one process that imports torch and compiles one graph
_EDGE = 512
_STEPS = 5


def print_identity(device: str) -> None:
    """Compile a small graph in this process, and print the identity of its code as JSON, last."""
    opened = open_device(device)
    value = torch.randn(_EDGE, _EDGE, device=opened.name)
    compiled = torch.compile(lambda one: (one @ one).sin().softmax(-1).sum())
    settle_step(lambda: compiled(value), opened, _STEPS)
    found = identity.read_identity(graph.find_cache())
    sys.stdout.write(f"{json.dumps(asdict(found))}\n")


@assume(judged=(CPU, CUDA), limit_s=300)
def identity_is_the_same_twice(place: Place) -> dict[str, AssumptionResult]:
    """Two processes with caches of their own generate the same code for one program, kernel by kernel."""
    first, second = (_ask_identity(place, number) for number in (1, 2))
    place.keep("identities.json", [first, second])
    return {
        "digest": claim(bool(first["digest"]) and first["digest"] == second["digest"], first["digest"]),
        "kernels": claim(first["kernels"] == second["kernels"], first["kernels"]),
        "tuned": tell("the same" if first["tuned"] == second["tuned"] else "otherwise"),
    }


def _ask_identity(place: Place, number: int) -> dict[str, object]:
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent / f"identity-{number}"
    places = {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _ASK, place.name],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=True,
        timeout=_LIMIT_S,
    )
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


@assume(judged=(CPU, CUDA))
def without_tf32_means_float32(place: Place) -> dict[str, AssumptionResult]:
    """Where the gate turns TF32 off, a product of float32 is as good as float32 is: 1e-6 of its size.

    Whichever of torch's two interfaces a user has set before.
    """
    found = {}
    for name, allow in _ALLOWING.items():
        allow()
        with torch_settings.without_tf32():
            found[name] = expect_range(_measure_error(place), 0.0, 1e-6)
    torch.set_float32_matmul_precision("highest")
    return found


def _allow_by_word() -> None:
    torch.set_float32_matmul_precision("high")


def _allow_by_property() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


_ALLOWING = {"by the older interface": _allow_by_word, "by the newer": _allow_by_property}


@assume(CUDA)
def tf32_shows_in_drift(place: Place) -> AssumptionResult:
    """With TF32 a product of float32 is worse by far: 1e-5 of its size at least, on a card that has it."""
    torch.set_float32_matmul_precision("high")
    error = _measure_error(place)
    torch.set_float32_matmul_precision("highest")
    capability = tuple(map(int, place.device.identify().traits["capability"].split(".")))
    return (
        expect_range(error, 1e-5, 1e-2) if capability >= (8, 0) else tell(f"{error:.2g}: this card has none")
    )


def _measure_error(place: Place) -> float:
    """Measure the error of a product in float32 against float64, relative to its size."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(_EDGE, _EDGE, generator=generator).to(place.device.name)
    exact = left.double() @ left.double()
    return float(((left @ left).double() - exact).norm() / exact.norm())
