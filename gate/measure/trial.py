"""The two processes of a trial. The cold one: the first compiled call on empty caches, then the timed rounds.

The warm one: the first compiled call on full caches, then memory, kept bytes, Python calls, drift.
"""

import statistics
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from gate.kinds import has_metric
from gate.measure import graph
from gate.measure.calls import count_compile_calls
from gate.measure.canaries import run_canaries
from gate.measure.context import Prepared, WorkerContext, open_case, record_code, record_first, record_graphs
from gate.measure.device.nvml import DeviceState, count_strangers, list_throttling, list_unwatched
from gate.measure.first_call import FirstCall, compute_compile_time, time_first_call
from gate.measure.identity import list_graph_keys
from gate.measure.kept import find_keeper, measure_kept
from gate.measure.numerics.state import copy_state
from gate.measure.rounds import (
    MAX_SETTLING_CALLS,
    Rounds,
    Step,
    TimeBlocks,
    Times,
    call_until_quiet,
    run_rounds,
    size_blocks,
    time_calls,
    warm_up,
)
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.training import has_steps, measure_step_drift, measure_unreturned
from gate.measure.turns import ThreadWaits
from gate.measure.usage import record_usage
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import FIRST_CALL
from gate.records.protocol import Offer, Side, Stage, compute_super_blocks
from gate.records.run import CacheUse, Conditions
from gate.workload import Workload

STEADY_CALLS = 5  # the median of these is subtracted from the first call


class CacheStateError(Exception):
    """A cold compile found a full cache: the number would be another metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    state: DeviceState
    canaries_s: Mapping[str, tuple[float, ...]]


def measure_cold(context: WorkerContext, workload: Workload | None, time_blocks: TimeBlocks) -> Rounds:
    """Measure a case in a fresh process whose compile caches hold no graph; the logbook gets it all.

    Raises:
        CacheStateError: The caches held the case's graphs.
        UsageError: Nothing was compiled.
        NotFiniteError: An output is NaN or infinite. What the model or the compiler raises passes through.
    """
    with open_case(context, workload) as prepared:
        before = _observe_machine(context)
        first = _compile_cold(context, prepared)
        context.logbook.enter(Stage.WARMUP)
        _settle(context, prepared.compiled_step)
        record_graphs(context, prepared.protocol)
        rounds = measure_rounds(context, prepared, time_blocks)
        if rounds.recompiled:
            record_graphs(context, prepared.protocol)
        _record_latencies(context, rounds)
        call_s = statistics.median(rounds.times[Side.COMPILED])
        context.logbook.add_samples({Metric.COLD_COMPILE_TIME: (compute_compile_time(first.wall_s, call_s),)})
        _record_later_phases(context)
        _record_conditions(context, before, _observe_machine(context))
        record_usage(context, prepared, call_s)
        seen = prepared.protocol.observe(prepared.subject, prepared.compiled, prepared.compiled_step)
        context.logbook.add_samples(seen.samples)
        context.logbook.record(parts_s=seen.parts_s)
    return rounds


def measure_again(context: WorkerContext, workload: Workload | None, time_blocks: TimeBlocks) -> Rounds:
    """Measure warm latencies alone, on caches in whatever state they are; raises as :func:`measure_cold`."""
    is_compiled = bool(list_graph_keys(graph.get_cache_directory()))
    with open_case(context, workload, arrives=is_compiled) as prepared:
        context.logbook.enter(Stage.COMPILE)
        prepared.compiled_step()
        if not is_compiled:  # both arms have compiled at once
            context.arrive()
        _settle(context, prepared.compiled_step)
        prepared.protocol.check_compiled(graph.observe_graphs(context.directory))
        record_code(context, prepared.protocol)
        before = _observe_machine(context)
        rounds = measure_rounds(context, prepared, time_blocks)
        _record_latencies(context, rounds)
        _record_conditions(context, before, _observe_machine(context))
        prepared.protocol.leave()
    return rounds


def _end_turn(context: WorkerContext) -> None:
    if context.turns is not None:
        context.turns.wait()
        context.logbook.charge(Stage.TURN, context.turns.take_waited_s())


def compile_untimed(context: WorkerContext, workload: Workload | None) -> None:
    """Compile a case as a trial does and measure nothing; raises as :func:`measure_cold`."""
    with open_case(context, workload) as prepared:
        context.logbook.enter(Stage.COMPILE)
        _settle(context, prepared.compiled_step)


def measure_plain(context: WorkerContext, workload: Workload | None, time_blocks: TimeBlocks) -> Rounds:
    """Measure warm latencies only, in a process that may have compiled other cases before.

    Raises:
        UsageError: Nothing was compiled.
    """
    torch.compiler.reset()
    graph.start_observation()
    with open_case(context, workload) as prepared:
        context.logbook.enter(Stage.COMPILE)
        _settle(context, prepared.compiled_step)
        prepared.protocol.check_compiled(graph.observe_graphs(context.directory))
        return measure_rounds(context, prepared, time_blocks)


def _settle(context: WorkerContext, step: Step) -> None:
    if not call_until_quiet(step, context.device, context.sampling.min_warmup_calls):
        context.logbook.note(Code.NEVER_SETTLES, {"calls": MAX_SETTLING_CALLS})


def measure_rounds(context: WorkerContext, prepared: Prepared, time_blocks: TimeBlocks) -> Rounds:
    steps = {Side.EAGER: prepared.eager_step, Side.COMPILED: prepared.compiled_step}
    sampling, device = context.sampling, context.device
    device.keep_freed_memory()
    context.logbook.enter(Stage.WARMUP)
    calls = {side: warm_up(step, device, sampling) for side, step in steps.items()}
    sizes, super_block_s = size_blocks(steps, calls, device)
    context.logbook.enter(Stage.ROUNDS)
    if context.turns is None:
        super_blocks = compute_super_blocks(super_block_s, sampling)
        rounds = run_rounds(steps, sizes, super_blocks, time_blocks)
    else:
        plan = context.turns.agree(Offer(super_block_s=super_block_s, sizes=sizes))
        with closing(ThreadWaits()) as waits:
            # A GPU's calls wait for the device, and its host's threads for each other.
            watched = None if device.kind.is_gpu else waits
            rounds = run_rounds(steps, plan.sizes, plan.super_blocks, time_blocks, watched)
        context.turns.wait()
        context.logbook.charge(Stage.TURN, context.turns.take_waited_s())
    if rounds.recompiled:
        context.logbook.note(Code.BLOCKS_RECOMPILED, {"blocks": rounds.recompiled})
    return rounds


def _observe_machine(context: WorkerContext) -> MachineState:
    """Read the device's state first: it still shows what the work before has done to it."""
    context.logbook.enter(Stage.CANARY)
    state = context.device.read_state()
    return MachineState(state=state, canaries_s=run_canaries(context.device))


def _compile_cold(context: WorkerContext, prepared: Prepared) -> FirstCall:
    context.logbook.enter(Stage.COMPILE)
    graph.start_observation()
    first = time_first_call(prepared.compiled_step, context.device)
    report = graph.observe_graphs(context.directory)
    check_cold(report.cache)
    prepared.protocol.check_compiled(report)
    cpu_s = {"cpu_self": first.cpu_self_s, "cpu_children": first.cpu_children_s}
    record_first(context, report, {**cpu_s, FIRST_CALL: first.wall_s})
    if first.peak_bytes is not None:
        context.logbook.add_samples({Metric.COMPILE_PEAK_MEMORY: (first.peak_bytes,)})
    return first


def check_cold(cache: CacheUse) -> None:
    """Check that a cold compile compiled: a graph may repeat within a model, so hits alone are no proof.

    Raises:
        CacheStateError: Every graph was found in the cache.
    """
    if cache.hits and not cache.misses:
        raise CacheStateError(f"the compile cache was not empty: {cache.hits} graphs were found in it")


def _record_later_phases(context: WorkerContext) -> None:
    if context.device.kind.is_gpu:
        later_s = graph.observe_graphs(context.directory).phases_s
        context.logbook.record(phases_s={**later_s, **context.logbook.result.phases_s})


def _record_latencies(context: WorkerContext, rounds: Rounds) -> None:
    context.logbook.add_samples(_split_sides(rounds.times))
    if rounds.undisturbed is not None:
        context.logbook.record(undisturbed_s=_split_sides(rounds.undisturbed))


def _split_sides(times: Times) -> dict[Metric, tuple[float, ...]]:
    return {Metric.EAGER_LATENCY: times[Side.EAGER], Metric.COMPILED_LATENCY: times[Side.COMPILED]}


def _record_conditions(context: WorkerContext, before: MachineState, after: MachineState) -> None:
    context.logbook.record(conditions=make_conditions(before, after, is_paired=context.turns is not None))
    context.logbook.add_warnings(*list_unwatched(after.state))


def make_conditions(before: MachineState, after: MachineState, *, is_paired: bool) -> Conditions:
    """Make the conditions of a trial from two looks; in a pair the other arm's worker is no stranger."""
    return Conditions(
        canaries_s={
            name: statistics.median((*times_s, *after.canaries_s[name]))
            for name, times_s in sorted(before.canaries_s.items())
        },
        throttled=list_throttling(before.state, after.state),
        foreign_processes=count_strangers((before.state, after.state), ours=2 if is_paired else 1),
    )


def measure_warm(context: WorkerContext, workload: Workload | None) -> None:
    """Measure a case in a second process on the caches of its cold one; the logbook gets it all.

    Raises:
        NotFiniteError: An output or a gradient is NaN or infinite. What the model or the compiler
            raises passes through.
    """
    with open_case(context, workload, is_cold=False) as prepared:
        cache = graph.get_cache_directory()  # the trial's, whatever calls make of the variable
        state = copy_state(prepared.subject)  # compiled calls may write it: drift begins from what eager left
        # Before anything is compiled: both sides' memory holds the workspaces of the libraries.
        eager_bytes = context.device.read_resident(prepared.subject.compute_resident_bytes())
        _compile_warm(context, prepared)
        _measure_memory(context, prepared, eager_bytes)
        _measure_kept(context, prepared)
        _end_turn(context)
        if not context.skips_calls and has_metric(context.case, Metric.COMPILE_CALLS):
            _count_calls(context, prepared, cache)  # while the other arm of a pair does: by one thread
        _end_turn(context)
        context.logbook.enter(Stage.DRIFT)
        state.restore()
        pair = CompiledSubject(subject=prepared.subject, compiled=prepared.compiled)
        repeats = measure_drift(context, pair)
        measure_unreturned(context, prepared.subject)
        if has_steps(prepared.subject):
            if repeats:
                state.restore()
            measure_step_drift(context, pair, repeats=repeats)
        _end_turn(context)


def _compile_warm(context: WorkerContext, prepared: Prepared) -> None:
    logbook, step, device = context.logbook, prepared.compiled_step, context.device
    logbook.enter(Stage.COMPILE)
    graph.start_observation()
    left = list_graph_keys(graph.get_cache_directory())
    first = time_first_call(step, device)
    logbook.enter(Stage.WARMUP)
    _settle(context, step)
    report = graph.observe_graphs(context.directory)
    steady_s = statistics.median([time_calls(step, device, 1) for _ in range(STEADY_CALLS)])
    compile_s = compute_compile_time(first.wall_s, steady_s)
    logbook.record(caches=report.caches)
    misses = prepared.protocol.count_misses(report)
    if misses and left and list_graph_keys(graph.get_cache_directory()) - left:
        logbook.note(Code.GRAPH_DIFFERS)
    logbook.add_samples(
        {
            Metric.WARM_COMPILE_TIME: (compile_s,),
            Metric.CACHE_MISSES: (misses,),
        }
    )


def _count_calls(context: WorkerContext, prepared: Prepared, cache: Path) -> None:
    context.logbook.enter(Stage.CALLS)
    graph.start_observation()
    # In a trial on its own nobody asks which: what it convicts is measured in pairs.
    by_function = context.turns is not None
    calls = count_compile_calls(prepared.compiled_step, cache, by_function=by_function)
    use = graph.observe_graphs(context.directory).cache
    if use.hits and not use.misses:  # a graph that repeats within a model is found once it was compiled
        context.logbook.note_unmeasured(Metric.COMPILE_CALLS, "graphs came from a cache")
        return
    context.logbook.add_samples({Metric.COMPILE_CALLS: (calls.total,)})
    context.logbook.record(functions=calls.functions)


def _measure_memory(context: WorkerContext, prepared: Prepared, eager_resident: int) -> None:
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
