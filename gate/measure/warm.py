"""The warm process: the first compiled call on full caches, then memory, Python calls and drift."""

from __future__ import annotations

import statistics

from gate.kinds import has_metric
from gate.measure.compiler import graph
from gate.measure.compiler.calls import count_compile_calls, list_graph_keys
from gate.measure.context import Prepared, WorkerContext, open_case
from gate.measure.kept import find_keeper, measure_kept, measure_rate
from gate.measure.numerics.state import copy_state
from gate.measure.numerics.steps import compute_step_drift, has_steps
from gate.measure.process.logbook import describe_error
from gate.measure.seed_drift import CompiledSubject, measure_drift, record_drift
from gate.measure.timing.first_call import compute_compile_time, time_first_call
from gate.measure.timing.rounds import settle_step, time_calls
from gate.records import Code, Metric
from gate.records.protocol import Stage
from gate.workload import Workload

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
        if not has_metric(context.case, Metric.DRIFT):
            return
        context.logbook.enter(Stage.DRIFT)
        state.restore()
        pair = CompiledSubject(subject=prepared.subject, compiled=prepared.compiled)
        repeats = measure_drift(context, pair)
        if not has_steps(prepared.subject):
            return
        if not repeats:
            context.logbook.note(Code.STEPS_UNMEASURED, why="calls do not repeat")
            return
        state.restore()
        _measure_steps(context, prepared)


def _measure_steps(context: WorkerContext, prepared: Prepared) -> None:
    context.device.free_memory()
    try:
        drift = compute_step_drift(prepared.subject, prepared.compiled)
    except Exception as error:  # noqa: BLE001 - what a model or an optimizer cannot do at this rate, or in float64
        context.logbook.note(Code.STEPS_UNMEASURED, why=describe_error(error))
        return
    if drift.log2_ratio is None:
        context.logbook.note(Code.STEPS_UNMEASURED, why="no parameter is finite in float64")
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
    if graph.observe_graphs(context.directory).cache.hits:
        context.logbook.note(Code.CALLS_UNCOUNTED)
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
        context.logbook.note(Code.MEMORY_UNMEASURED, why=str(error))
        return
    context.logbook.add_samples({Metric.PEAK_MEMORY: (peak_bytes,)})
    if eager_bytes:
        context.logbook.add_samples({Metric.MEMORY_RATIO: (compiled_bytes / eager_bytes,)})


def _measure_kept(context: WorkerContext, prepared: Prepared) -> None:
    """Measure what each compiled call keeps for good; of one that does, where, and whether eager does too."""
    try:
        kept = measure_kept(prepared.compiled_step, context.device)
        eager_bytes = measure_rate(prepared.eager_step, context.device) if kept.bytes else 0.0
    except OSError as error:
        context.logbook.note(Code.KEPT_UNMEASURED, why=str(error))
        return
    context.logbook.add_samples({Metric.MEMORY_GROWTH: (kept.bytes,)})
    if kept.bytes:
        numbers = {"bytes": kept.bytes, "calls": kept.calls, "eager": eager_bytes}
        location = find_keeper(prepared.compiled_step, context.directory)
        context.logbook.note(Code.MEMORY_KEPT, numbers, **({"location": location} if location else {}))
