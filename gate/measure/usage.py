"""How a settled case uses its device, measured outside of the timed rounds."""

import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

from gate.measure.context import Prepared, WorkerContext
from gate.measure.device.device import Device
from gate.measure.failures import describe_error
from gate.measure.rounds import Step, compute_percentile, time_calls
from gate.measure.workload.build import has_cudagraphs
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.protocol import Stage

_ENERGY_S = 2.0  # the counter moves ten times a second or more: 5 % of two seconds at most
_BATCH_S = 0.1  # of calls between two looks at the clock
SINGLE_CALLS = 100  # the 99th percentile is the second slowest
_LONGEST_CALL_S = 0.1  # a hundred of longer ones would take too long
PROFILED_CALLS = 5  # untimed; as many show whether each call launches the same
MAX_KERNELS = 16  # named, those that take longest; the rest is summed
OTHERS = "others"
_MAX_NAME = 120  # characters: names of library kernels have all their template's arguments in them
_US = 1e-6
_DIGITS = 4
# Of CUDA's runtime and driver: cudaLaunchKernel, cuLaunchKernelEx, cudaMemcpyAsync, cudaGraphLaunch, ...
_ASKED_FOR = {
    Metric.LAUNCHES: re.compile(r"cu(da)?(Launch|GraphLaunch|Memcpy|Memset)"),  # a CUDA graph as one
    Metric.CUDAGRAPH_LAUNCHES: re.compile(r"cu(da)?GraphLaunch"),
    Metric.COPIES: re.compile(r"cu(da)?Memcpy"),
}
_PERCENTILES: Mapping[Metric, float] = {Metric.CALL_P50: 0.50, Metric.CALL_P95: 0.95, Metric.CALL_P99: 0.99}


def record_usage(context: WorkerContext, prepared: Prepared, call_s: float) -> None:
    context.logbook.enter(Stage.PROFILE)
    _record_flops(context, prepared.eager_step)
    if not context.device.kind.is_gpu:
        return
    step, device = prepared.compiled_step, context.device
    _record_profile(context, step, call_s)
    energy_j = measure_energy_j(step, device, call_s)
    times_s = time_single_calls(step, device, call_s)
    if energy_j is not None:
        context.logbook.add_samples({Metric.ENERGY: (energy_j,)})
    if times_s:
        shares = _PERCENTILES.items()
        samples = {metric: (compute_percentile(times_s, share),) for metric, share in shares}
        context.logbook.add_samples(samples)


def count_flops(step: Step) -> int:
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def measure_energy_j(step: Step, device: Device, call_s: float) -> float | None:
    """Measure the joules of a call over two seconds of calls; None where the device does not count."""
    before = device.read_energy_j()
    if before is None:
        return None
    batch, calls, begun = max(1, math.ceil(_BATCH_S / call_s)), 0, time.perf_counter()
    while not calls or time.perf_counter() - begun < _ENERGY_S:
        time_calls(step, device, batch)
        calls += batch
    after = device.read_energy_j()
    return None if after is None or after <= before else (after - before) / calls


def time_single_calls(step: Step, device: Device, call_s: float) -> tuple[float, ...]:
    """Time calls one by one, each waited for; none where that would take too long."""
    if call_s > _LONGEST_CALL_S:
        return ()
    return tuple(time_calls(step, device, 1) for _ in range(SINGLE_CALLS))


def _record_flops(context: WorkerContext, step: Step) -> None:
    try:
        context.logbook.add_samples({Metric.FLOPS: (count_flops(step),)})
    except Exception as error:  # noqa: BLE001 - whatever a model does where its operators are watched
        context.logbook.note_unmeasured(Metric.FLOPS, describe_error(error))


def _record_profile(context: WorkerContext, step: Step, call_s: float) -> None:
    events = context.device.profile(step, PROFILED_CALLS)
    launches, kernels_s = count_host_launches(events, PROFILED_CALLS), sum_kernels(events, PROFILED_CALLS)
    context.logbook.add_samples({metric: (count,) for metric, count in launches.items()})
    if total_s := sum(kernels_s.values()):
        share = min(1.0, total_s / call_s)
        context.logbook.add_samples({Metric.DEVICE_TIME: (total_s,), Metric.DEVICE_UTILIZATION: (share,)})
    context.logbook.record(kernels_s=_keep_longest(kernels_s))
    if Metric.LAUNCHES not in launches:
        context.logbook.note_unmeasured(Metric.LAUNCHES, "calls differ, or the profiler tells none")
    if launches.get(Metric.CUDAGRAPH_LAUNCHES) == 0 and has_cudagraphs(context.case):
        context.logbook.note(Code.NO_CUDA_GRAPH)


def count_host_launches(events: Iterable[Any], calls: int) -> dict[Metric, int]:
    """Count what the host asks the driver for in a call, from averages over several calls."""
    host = [event for event in events if event.device_type.name == "CPU"]
    totals = {
        metric: sum(event.count for event in host if kind.match(event.key))
        for metric, kind in _ASKED_FOR.items()
    }
    counts = {metric: total // calls for metric, total in totals.items() if total % calls == 0}
    return counts if counts.get(Metric.LAUNCHES) and Metric.CUDAGRAPH_LAUNCHES in counts else {}


def sum_kernels(events: Iterable[Any], calls: int) -> dict[str, float]:
    device_s: dict[str, float] = {}
    for event in events:
        if event.device_type.name != "CPU" and event.self_device_time_total:  # the host's side repeats it
            name = event.key[:_MAX_NAME]
            device_s[name] = device_s.get(name, 0.0) + event.self_device_time_total * _US / calls
    return device_s


def _keep_longest(device_s: Mapping[str, float]) -> dict[str, float]:
    names = sorted(device_s, key=lambda name: device_s[name], reverse=True)
    named = {name: device_s[name] for name in names[:MAX_KERNELS]}
    if len(names) > MAX_KERNELS:
        named[OTHERS] = sum(device_s[name] for name in names[MAX_KERNELS:])
    return {name: float(f"{seconds:.{_DIGITS}g}") for name, seconds in named.items()}
