"""What a call makes of its device, seen once and outside of the timed rounds.

Operations and bytes show how fast this machine could be at best, a profile which kernels take the time,
NVML's energy counter the joules, and single calls how far they are from each other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from torch.utils.flop_counter import FlopCounterMode

from gate.measure.context import Prepared, WorkerContext
from gate.measure.device.device import Device
from gate.measure.process.logbook import describe_error
from gate.measure.timing.canary import measure_bytes_per_s, measure_flops_per_s
from gate.measure.timing.rounds import Step, compute_percentile, time_calls
from gate.measure.workload.build import Subject, has_cudagraphs
from gate.measure.workload.tensors import compute_bytes, iterate_tensors
from gate.records import Code, DType, Metric
from gate.records.protocol import Stage

_ENERGY_S = 2.0  # the counter moves ten times a second or more: 5 % of two seconds at most
_BATCH_S = 0.1  # of calls between two looks at the clock
SINGLE_CALLS = 100  # the 99th percentile is the second slowest
_LONGEST_CALL_S = 0.1  # a hundred of longer ones would take too long
_PERCENTILES: Mapping[Metric, float] = {Metric.CALL_P50: 0.50, Metric.CALL_P95: 0.95, Metric.CALL_P99: 0.99}


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What one eager call computes, and the bytes that it cannot do without."""

    flops: int  # in matrix products, convolutions and attention, as torch counts them
    moved_bytes: int  # of parameters, buffers, inputs and outputs, each once


def record_usage(context: WorkerContext, prepared: Prepared, call_s: float) -> None:
    """Look once at a settled case whose compiled call takes ``call_s`` seconds; the logbook gets it all."""
    context.logbook.enter(Stage.PROFILE)
    _record_work(context, prepared)
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


def measure_work(subject: Subject, step: Step) -> Work:
    """Count what one call of ``step`` computes; what a model makes of being watched passes through."""
    with FlopCounterMode(display=False) as counter:
        returned = step()
    outputs = [tensor for _, tensor in iterate_tensors(returned)]
    return Work(
        flops=int(counter.get_total_flops()), moved_bytes=compute_bytes([*subject.list_state(), *outputs])
    )


def measure_limits(work: Work, device: Device, dtype: DType) -> dict[str, float]:
    """Measure the seconds that such work takes at least, by each of the device's rates that it needs."""
    limits_s = {}
    if work.flops:
        limits_s["arithmetic"] = work.flops / measure_flops_per_s(device, dtype)
    if work.moved_bytes:
        limits_s["memory"] = work.moved_bytes / measure_bytes_per_s(device)
    return limits_s


def measure_energy_j(step: Step, device: Device, call_s: float) -> float | None:
    """Measure the joules of a call over two seconds of them; None where the device does not count."""
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


def _record_work(context: WorkerContext, prepared: Prepared) -> None:
    try:
        work = measure_work(prepared.subject, prepared.eager_step)
    except Exception as error:  # noqa: BLE001 - whatever a model does where its operators are watched
        context.logbook.note_unmeasured(Metric.FLOPS, describe_error(error))
        return
    context.logbook.add_samples({Metric.FLOPS: (work.flops,)})
    context.logbook.record(limits_s=measure_limits(work, context.device, context.case.dtype))


def _record_profile(context: WorkerContext, step: Step, call_s: float) -> None:
    profile = context.device.profile(step, call_s)
    if profile is None:
        return
    values = {
        Metric.DEVICE_UTILIZATION: profile.utilization,
        Metric.DEVICE_TIME: profile.device_s,
        Metric.LAUNCHES: profile.launches,
        Metric.CUDAGRAPH_LAUNCHES: profile.graph_launches,
        Metric.COPIES: profile.copies,
    }
    context.logbook.add_samples({metric: (value,) for metric, value in values.items() if value is not None})
    context.logbook.record(kernels_s=profile.kernels_s)
    if profile.launches is None:
        context.logbook.note_unmeasured(Metric.LAUNCHES, "calls differ, or the profiler tells none")
    if profile.graph_launches == 0 and has_cudagraphs(context.case):
        context.logbook.note(Code.NO_CUDA_GRAPH)
