"""Launches: that the profiler lists what the host launches, by the names that are counted."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gate.contact.assumptions import CUDA, Place, assume
from gate.contact.clocks import make_product
from gate.contact.findings import AssumptionResult, claim, expect_range, tell
from gate.contact.memory import make_graphed
from gate.measure.compiler import graph
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
