"""The cold process: the first compiled call on empty caches, then the timed rounds."""

import statistics
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import torch

from gate.measure.compiler import graph
from gate.measure.context import (
    Prepared,
    WorkerContext,
    open_case,
    record_code,
    record_first,
    record_graphs,
)
from gate.measure.device.nvml import DeviceState, count_strangers, list_throttling, note_unwatched
from gate.measure.process.turns import ThreadWaits
from gate.measure.rounds import (
    FirstCall,
    Rounds,
    TimeBlocks,
    Times,
    compute_compile_time,
    run_rounds,
    settle_step,
    size_blocks,
    time_first_call,
    warm_up,
)
from gate.measure.usage import record_usage, run_canaries
from gate.records import FIRST_CALL, CacheUse, Code, Conditions, Metric
from gate.records.protocol import Offer, Side, Stage, compute_super_blocks
from gate.workload import Workload


class CacheStateError(Exception):
    """A cold compile found a full cache: the number would be another metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """The machine at one moment: the device's state and the canaries' times in seconds."""

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
        first = _compile_first(context, prepared)
        context.logbook.enter(Stage.WARMUP)
        settle_step(prepared.compiled_step, context.device, context.sampling.min_warmup_calls)
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
    """Measure warm latencies alone, on caches in whatever state they are; raises as :func:`measure_cold`.

    A second process may follow all the same: it finds what it would after :func:`measure_cold`.
    """
    with open_case(context, workload) as prepared:
        context.logbook.enter(Stage.COMPILE)
        prepared.compiled_step()
        if context.turns is not None:
            # The other calls wait for their turn: while two arms call at once, OpenMP's threads wait in vain
            # for those that the other arm keeps from a core.
            context.turns.arrive()
            context.logbook.charge(Stage.TURN, context.turns.take_waited_s())
        settle_step(prepared.compiled_step, context.device, context.sampling.min_warmup_calls)
        prepared.protocol.check_compiled(graph.observe_graphs(context.directory))
        record_code(context, prepared.protocol)
        before = _observe_machine(context)
        rounds = measure_rounds(context, prepared, time_blocks)
        _record_latencies(context, rounds)
        _record_conditions(context, before, _observe_machine(context))
        prepared.protocol.leave()
    return rounds


def compile_untimed(context: WorkerContext, workload: Workload | None) -> None:
    """Compile a case as a trial does and measure nothing; raises as :func:`measure_cold`."""
    with open_case(context, workload) as prepared:
        context.logbook.enter(Stage.COMPILE)
        settle_step(prepared.compiled_step, context.device, context.sampling.min_warmup_calls)


def measure_plain(context: WorkerContext, workload: Workload | None, time_blocks: TimeBlocks) -> Rounds:
    """Measure warm latencies only, in a process that may have compiled other cases before.

    Raises:
        UsageError: Nothing was compiled.
    """
    torch.compiler.reset()
    graph.start_observation()
    with open_case(context, workload) as prepared:
        context.logbook.enter(Stage.COMPILE)
        settle_step(prepared.compiled_step, context.device, context.sampling.min_warmup_calls)
        prepared.protocol.check_compiled(graph.observe_graphs(context.directory))
        return measure_rounds(context, prepared, time_blocks)


def measure_rounds(context: WorkerContext, prepared: Prepared, time_blocks: TimeBlocks) -> Rounds:
    """Warm both sides up and run the timed rounds."""
    steps = {Side.EAGER: prepared.eager_step, Side.COMPILED: prepared.compiled_step}
    sampling, device = context.sampling, context.device
    device.hold_memory()
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


def _compile_first(context: WorkerContext, prepared: Prepared) -> FirstCall:
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
    """Record the phases that only calls after the first have, as a capture of graphs."""
    if context.device.kind.is_gpu:
        later_s = graph.observe_graphs(context.directory).phases_s
        context.logbook.record(phases_s={**later_s, **context.logbook.result.phases_s})


def _record_latencies(context: WorkerContext, rounds: Rounds) -> None:
    context.logbook.add_samples(_name_sides(rounds.times))
    if rounds.undisturbed is not None:
        context.logbook.record(undisturbed_s=_name_sides(rounds.undisturbed))


def _name_sides(times: Times) -> dict[Metric, tuple[float, ...]]:
    return {Metric.EAGER_LATENCY: times[Side.EAGER], Metric.COMPILED_LATENCY: times[Side.COMPILED]}


def _record_conditions(context: WorkerContext, before: MachineState, after: MachineState) -> None:
    context.logbook.record(conditions=make_conditions(before, after, is_paired=context.turns is not None))
    context.logbook.add_warnings(*note_unwatched(after.state))


def make_conditions(before: MachineState, after: MachineState, *, is_paired: bool) -> Conditions:
    """Make the conditions of a trial of two looks at its machine.

    In a pair the other arm's worker is on the device as well: it is no stranger.
    """
    return Conditions(
        canaries_s={
            name: statistics.median((*times_s, *after.canaries_s[name]))
            for name, times_s in sorted(before.canaries_s.items())
        },
        throttled=list_throttling(before.state, after.state),
        foreign_processes=count_strangers((before.state, after.state), own=2 if is_paired else 1),
    )
