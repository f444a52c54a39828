"""The warm process: the first compiled call on full caches, then memory, kept bytes, Python calls, drift.

Kept bytes are in use after some calls and after as many again. A bounded cache fills up and then stays: while
calls keep something, there are more of them, twice as many each time. What is kept after that has no end that
is seen.
"""

import gc
import math
import statistics
import sysconfig
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from gate.kinds import has_metric
from gate.measure.compiler import graph
from gate.measure.compiler.graph import find_cache, format_location
from gate.measure.compiler.identity import count_compile_calls, list_graph_keys
from gate.measure.context import Prepared, WorkerContext, open_case
from gate.measure.device.device import Device
from gate.measure.numerics.state import copy_state
from gate.measure.process.logbook import describe_error
from gate.measure.rounds import compute_compile_time, settle_step, time_calls, time_first_call
from gate.measure.seed_drift import (
    CompiledSubject,
    compute_step_drift,
    has_steps,
    measure_drift,
    record_drift,
)
from gate.programs import read_free_bytes
from gate.records import Code, Metric
from gate.records.protocol import Stage
from gate.workload import Workload

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
    """What each of the last calls kept, and how many calls there were before the end."""

    bytes: float  # a call; 0 where that is less than any two calls may differ by
    calls: int


def measure_kept(step: Callable[[], object], device: Device) -> Kept:
    """Measure how many bytes each further call keeps; a warm step.

    Raises:
        OSError: The device does not report what is in use.
    """
    with _watch_new_garbage():
        begun = time.perf_counter()
        _call(step, 1)
        before = device.read_used()
        call_s = max(time.perf_counter() - begun, 1e-6)
        calls = int(min(max(_FIRST_S / call_s, _MIN_CALLS), _FIRST_CALLS))
        total, most_bytes = 1, min(_MOST_BYTES, _MOST_SHARE * (read_free_bytes() or math.inf))
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

    Of the lines that make one object a call, or several of a size, that with the most bytes. What the
    interpreter keeps for later is of any number: it would have to be the same multiple of the calls twice,
    of which there are more the second time.
    What no measured code has asked for, as what is counted here, has no line.
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
    """Count the objects of each size that each line has made; afterwards nothing holds the snapshot."""
    return Counter((trace.traceback, trace.size) for trace in snapshot.traces)


def _is_library(file: str) -> bool:
    """Whether a file belongs to torch or Python, or to what the compiler generates."""
    path = Path(file)
    if not path.is_file() or path.is_relative_to(find_cache()):
        return True
    in_packages = "site-packages" in path.parts or not path.is_relative_to(sysconfig.get_path("stdlib"))
    return not in_packages or path.is_relative_to(Path(torch.__file__).parent)


def _is_of_gate(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_GATE) and not path.is_relative_to(_GATE / "models")


def _call(step: Callable[[], object], calls: int) -> None:
    """Call so many times; what they leave in cycles is garbage, and no one keeps it."""
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


STEADY_CALLS = 5  # the median of these is subtracted from the first call


def measure_warm(context: WorkerContext, workload: Workload | None) -> None:
    """Measure a case in a second process on the caches of its cold one; the logbook gets it all.

    Raises:
        NotFiniteError: An output or a gradient is NaN or infinite. What the model or the compiler
            raises passes through.
    """
    with open_case(context, workload, is_cold=False) as prepared:
        state = copy_state(prepared.subject)  # compiled calls may write it: drift begins from what eager left
        # Before anything is compiled: both sides' memory holds the workspaces of the libraries.
        eager_bytes = context.device.read_resident(prepared.subject.compute_resident_bytes())
        _compile_first(context, prepared)
        _measure_memory(context, prepared, eager_bytes)
        _measure_kept(context, prepared)
        if not context.skips_calls and has_metric(context.case, Metric.COMPILE_CALLS):
            _count_calls(context, prepared)
        context.logbook.enter(Stage.DRIFT)
        state.restore()
        pair = CompiledSubject(subject=prepared.subject, compiled=prepared.compiled)
        repeats = measure_drift(context, pair)
        if not has_steps(prepared.subject):
            return
        if not repeats:
            context.logbook.note_unmeasured(Metric.DRIFT_STEPS, "calls do not repeat")
            return
        state.restore()
        _measure_steps(context, prepared)


def _measure_steps(context: WorkerContext, prepared: Prepared) -> None:
    context.device.free_memory()
    try:
        drift = compute_step_drift(prepared.subject, prepared.compiled)
    except Exception as error:  # noqa: BLE001 - what a model or an optimizer cannot do at this rate, or in float64
        context.logbook.note_unmeasured(Metric.DRIFT_STEPS, describe_error(error))
        return
    if drift.log2_ratio is None:
        context.logbook.note_unmeasured(Metric.DRIFT_STEPS, "no parameter is finite in float64")
        return
    record_drift(context.logbook, Metric.DRIFT_STEPS, [drift])


def _compile_first(context: WorkerContext, prepared: Prepared) -> None:
    logbook, step, device = context.logbook, prepared.compiled_step, context.device
    logbook.enter(Stage.COMPILE)
    graph.start_observation()
    left = list_graph_keys(graph.find_cache())
    first = time_first_call(step, device)
    logbook.enter(Stage.WARMUP)
    settle_step(step, device, context.sampling.min_warmup_calls)
    report = graph.observe_graphs(context.directory)
    steady_s = statistics.median([time_calls(step, device, 1) for _ in range(STEADY_CALLS)])
    compile_s = compute_compile_time(first.wall_s, steady_s)
    logbook.record(caches=report.caches)
    misses = prepared.protocol.count_misses(report)
    if misses and left and list_graph_keys(graph.find_cache()) - left:
        logbook.note(Code.GRAPH_DIFFERS)
    logbook.add_samples(
        {
            Metric.WARM_COMPILE_TIME: (compile_s,),
            Metric.CACHE_MISSES: (misses,),
        }
    )


def _count_calls(context: WorkerContext, prepared: Prepared) -> None:
    context.logbook.enter(Stage.CALLS)
    graph.start_observation()
    calls = count_compile_calls(prepared.compiled_step, graph.find_cache())
    found = graph.observe_graphs(context.directory).cache
    if found.hits and not found.misses:  # a graph that repeats within a model is found once it was compiled
        context.logbook.note_unmeasured(Metric.COMPILE_CALLS, "graphs came from a cache")
        return
    context.logbook.add_samples({Metric.COMPILE_CALLS: (calls,)})


def _measure_memory(context: WorkerContext, prepared: Prepared, eager_resident: int) -> None:
    """Measure both sides' peaks; ``eager_resident`` bytes stayed in use before there was a compiled side."""
    context.logbook.enter(Stage.MEMORY)
    device, tensor_bytes = context.device, prepared.subject.compute_resident_bytes()
    resident_bytes = device.read_resident(tensor_bytes)
    try:
        # The profiler that lists allocations leaves memory of its own behind: it comes last.
        peak_bytes = resident_bytes + device.measure_growth(prepared.compiled_step)
        compiled_bytes = resident_bytes + device.measure_tensor_growth(prepared.compiled_step)
        eager_bytes = eager_resident + device.measure_tensor_growth(prepared.eager_step)
    except OSError as error:
        context.logbook.note_unmeasured(Metric.PEAK_MEMORY, str(error))
        return
    context.logbook.add_samples({Metric.PEAK_MEMORY: (peak_bytes,)})
    if eager_bytes:
        context.logbook.add_samples({Metric.MEMORY_RATIO: (compiled_bytes / eager_bytes,)})


def _measure_kept(context: WorkerContext, prepared: Prepared) -> None:
    """Measure what each compiled call keeps for good; of one that does, where, and whether eager does too."""
    try:
        kept = measure_kept(prepared.compiled_step, context.device)
        eager_bytes = measure_kept(prepared.eager_step, context.device).bytes if kept.bytes else 0.0
    except OSError as error:
        context.logbook.note_unmeasured(Metric.MEMORY_GROWTH, str(error))
        return
    context.logbook.add_samples({Metric.MEMORY_GROWTH: (kept.bytes,)})
    if kept.bytes:
        numbers = {"bytes": kept.bytes, "calls": kept.calls, "eager": eager_bytes}
        location = find_keeper(prepared.compiled_step, context.directory)
        context.logbook.note(Code.MEMORY_KEPT, numbers, **({"location": location} if location else {}))
