"""How a settled case uses its device, and how fast that is now: measured outside of the timed rounds.

A profile shows which kernels take the time, NVML's energy counter the joules, and single calls how far they
are from each other. Canaries are fixed micro-workloads without measured code.

Kept bytes are in use after some calls and after as many again. A bounded cache fills up and then stays: while
calls keep something, there are more of them, twice as many each time. What is kept after that grows without
end.
"""

import gc
import math
import re
import sysconfig
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from gate.measure.context import Prepared, WorkerContext
from gate.measure.device.device import Device
from gate.measure.graph import find_cache, format_location
from gate.measure.logbook import describe_error
from gate.measure.rounds import Step, compute_percentile, time_calls
from gate.measure.workload.build import has_cudagraphs
from gate.programs import read_free_bytes
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
    context.logbook.record(kernels_s=_name_longest(kernels_s))
    if Metric.LAUNCHES not in launches:
        context.logbook.note_unmeasured(Metric.LAUNCHES, "calls differ, or the profiler tells none")
    if launches.get(Metric.CUDAGRAPH_LAUNCHES) == 0 and has_cudagraphs(context.case):
        context.logbook.note(Code.NO_CUDA_GRAPH)


def count_host_launches(events: Iterable[Any], calls: int) -> dict[Metric, int]:
    """Count what the host asks the driver for in a call, from averages over several calls.

    Empty where a number differs between calls: then it is no property of the program.
    """
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


def _name_longest(device_s: Mapping[str, float]) -> dict[str, float]:
    names = sorted(device_s, key=lambda name: device_s[name], reverse=True)
    named = {name: device_s[name] for name in names[:MAX_KERNELS]}
    if len(names) > MAX_KERNELS:
        named[OTHERS] = sum(device_s[name] for name in names[MAX_KERNELS:])
    return {name: float(f"{seconds:.{_DIGITS}g}") for name, seconds in named.items()}


REPEATS = 5  # the median leaves out two disturbances
_LOOP_STEPS = 50_000
_LAUNCHES = 500


def run_canaries(device: Device) -> dict[str, tuple[float, ...]]:
    canaries = _make_canaries(device)
    begun = time.perf_counter()
    while time.perf_counter() - begun < device.kind.canaries.waking_s:  # until an idle clock has risen
        canaries["matmul"]()
        device.synchronize()
    calls = dict.fromkeys(("matmul", "copy"), device.kind.canaries.calls)
    return {name: _time_canary(run, device, calls.get(name, 1)) for name, run in canaries.items()}


def _make_canaries(device: Device) -> dict[str, Callable[[], object]]:
    left, source = _make_operands(device)
    product, target = torch.empty_like(left), torch.empty_like(source)
    canaries: dict[str, Callable[[], object]] = {
        "matmul": lambda: torch.mm(left, left, out=product),
        "copy": lambda: target.copy_(source),
        "python": _loop,
    }
    if device.kind.is_gpu:
        counter = torch.zeros(1, device=device.name)
        canaries["launch"] = lambda: [counter.add_(1) for _ in range(_LAUNCHES)]
    return canaries


def _make_operands(device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a matrix and the bytes to copy; on a GPU random, since constants run faster and cooler."""
    sizes, name = device.kind.canaries, device.name
    shape, copied = (sizes.matmul_size, sizes.matmul_size), (sizes.copy_bytes,)
    if not device.kind.is_gpu:
        return torch.full(shape, 0.5, device=name), torch.ones(copied, dtype=torch.uint8, device=name)
    generator = torch.Generator(name)  # the workload's random numbers stay as they are
    generator.manual_seed(0)
    matrix = torch.randn(shape, generator=generator, device=name, dtype=torch.bfloat16)
    return matrix, torch.randint(0, 256, copied, generator=generator, device=name, dtype=torch.uint8)


def _time_canary(run: Callable[[], object], device: Device, calls: int) -> tuple[float, ...]:
    run()
    return tuple(time_calls(run, device, calls) / calls for _ in range(REPEATS))


def _loop() -> int:
    total = 0
    for step in range(_LOOP_STEPS):
        total ^= step
    return total


# Calls of which nothing is kept differ by less: up to 10 of Python's small objects, 220 bytes of libraries.
LEAST_BYTES = 1024
# What a few calls have not settled yet, all of them together; of a slow step there are no more.
_UNSETTLED_BYTES = 16 * 1024
_FIRST_S = 0.25  # of the calls that are to keep nothing; two at least
_MIN_CALLS, _FIRST_CALLS = 2, 16
# What still grows after so much keeps growing, as far as a check can wait: a history of 1000 is full by then.
_MOST_CALLS = 2048
_MOST_S = 10.0
_DOUBTFUL_S = 2.0  # while all of the last calls keep no more than calls that have not settled
_MOST_BYTES = 2**30
_MOST_SHARE = 0.25  # of what the host has free
_TRACED_CALLS, _MORE_TRACED_CALLS = 8, 13
_GATE = Path(__file__).resolve().parents[1]  # the package: its reference models are measured code
_FRAMES = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    bytes: float  # a call; 0 where that is less than any two calls may differ by
    calls: int


def measure_kept(step: Callable[[], object], device: Device) -> Kept:
    """Measure how many bytes each further call of a warm step keeps.

    Raises:
        OSError: The device does not report what is in use.
    """
    device.hold_memory()  # a block with pages of its own is counted by whole pages, others to the byte
    with _watch_new_garbage():
        begun = time.perf_counter()
        _call(step, 1)
        before = device.read_used()
        call_s = max(time.perf_counter() - begun, 1e-6)
        calls = int(min(max(_FIRST_S / call_s, _MIN_CALLS), _FIRST_CALLS))
        total, most_bytes = 1, min(_MOST_BYTES, _MOST_SHARE * read_free_bytes())
        first = before
        while True:
            _call(step, calls)
            after, total = device.read_used(), total + calls
            kept = (after - before) / calls
            if kept < LEAST_BYTES:
                return Kept(bytes=0.0, calls=total)
            is_sure = after - before >= _UNSETTLED_BYTES
            is_late = time.perf_counter() - begun > (_MOST_S if is_sure else _DOUBTFUL_S)
            if is_late or after - first > most_bytes or total > _MOST_CALLS:
                rounded = LEAST_BYTES * round(kept / LEAST_BYTES)  # to as much as calls differ by
                return Kept(bytes=float(rounded) if is_sure else 0.0, calls=total)
            before, calls = after, 2 * calls


def find_keeper(step: Callable[[], object], directory: str) -> str:
    """Find the line that makes what is kept, ``file.py:12``; empty where none of Python's objects is.

    Among the lines that make one object a call, or several of a size, it is the one with the most bytes.
    Their number must be the same multiple of the calls twice: what the interpreter keeps for later is of any
    number.
    """
    counts = []
    with _watch_new_garbage():
        tracemalloc.start(_FRAMES)
        try:
            for calls in (1, _TRACED_CALLS, _MORE_TRACED_CALLS):
                _call(step, calls)
                counts.append(_count(tracemalloc.take_snapshot()))
        finally:
            tracemalloc.stop()
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    grown = {
        trace: more
        for trace, more in first.items()
        if not more % _TRACED_CALLS and second[trace] == more // _TRACED_CALLS * _MORE_TRACED_CALLS
    }
    for (frames, _), _ in sorted(grown.items(), key=lambda item: item[0][1] * item[1], reverse=True):
        asker = next((frame for frame in reversed(frames) if not _is_library(frame.filename)), None)
        if asker is not None and not _is_of_gate(asker.filename):
            return format_location(asker.filename, asker.lineno, directory)
    return ""


def _count(snapshot: tracemalloc.Snapshot) -> Counter[tuple[tracemalloc.Traceback, int]]:
    return Counter((trace.traceback, trace.size) for trace in snapshot.traces)


def _is_library(file: str) -> bool:
    path = Path(file)
    if not path.is_file() or path.is_relative_to(find_cache()):
        return True
    in_packages = "site-packages" in path.parts or not path.is_relative_to(sysconfig.get_path("stdlib"))
    return not in_packages or path.is_relative_to(Path(torch.__file__).parent)


def _is_of_gate(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_GATE) and not path.is_relative_to(_GATE / "models")


def _call(step: Callable[[], object], calls: int) -> None:
    for _ in range(calls):
        step()
    gc.collect()


@contextmanager
def _watch_new_garbage() -> Iterator[None]:
    """Let collections look at what is new alone: at all of torch's objects each takes a tenth of a second."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
