"""Measure a case for a target: trace it, compile it, count what was made; nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from gate.errors import UsageError
from gate.kinds import KIND_SPECS as KINDS
from gate.measure.compiler import graph, identity
from gate.measure.compiler.calls import count_compile_calls
from gate.measure.compiler.cubins import find_triton_cache, read_cubins, sum_cubins
from gate.measure.context import WorkerContext, count_parameters, describe_inputs, use_gradients
from gate.measure.device.pretended import TargetDevice
from gate.measure.kinds.protocol import find_protocol
from gate.measure.timing.first_call import check_compiled
from gate.measure.workload.build import (
    TORCH_DTYPES,
    Subject,
    assemble_subject,
    has_cudagraphs,
    load_factory,
    make_step,
)
from gate.measure.workload.holding import Held, hold, rebind
from gate.measure.workload.tensors import map_tensors
from gate.records import Case, Metric
from gate.records.protocol import Stage
from gate.workload import Workload

CALLS = 3  # the later ones find whether what the first compiled serves them
# Further options of Inductor that choose by timing kernels on the device.
_TIMED_OPTIONS = frozenset(("coordinate_descent_tuning", "shape_padding"))


def measure_target(context: WorkerContext, workload: Workload | None) -> None:
    """Compile a case for the context's target; the logbook gets what is exact of it.

    Raises:
        UsageError: Nothing was compiled, or the case needs the device itself. What the model or the compiler
            raises passes through: tracing stops where a value is asked for.
    """
    with compile_target(context, workload) as step:
        context.logbook.enter(Stage.CALLS)
        calls = count_compile_calls(step, graph.find_cache())
        context.logbook.add_samples({Metric.COMPILE_CALLS: (calls,)})


@contextmanager
def compile_target(context: WorkerContext, workload: Workload | None) -> Iterator[Callable[[], Any]]:
    """Compile a case, record its graphs and its code, and yield the compiled step; raises as the above."""
    device, logbook = context.device, context.logbook
    if not isinstance(device, TargetDevice):
        raise TypeError(f"{device.name} is no target")
    check_knowable(context.case)
    if workload is None:
        logbook.enter(Stage.IMPORT)
        load_factory(context.case.factory)
    logbook.enter(Stage.BUILD)
    protocol = find_protocol(context.case)
    subject = place_subject(workload or protocol.build(), context.case, device)
    logbook.record(
        workload={"parameters": str(count_parameters(subject)), "inputs": describe_inputs(subject)}
    )
    logbook.enter(Stage.COMPILE)
    step = make_step(subject, protocol.compile(subject))
    with use_gradients(context.case), device.mode:
        graph.start_observation()
        for _ in range(CALLS):
            step()
        _record_graphs(context)
        _record_code(context)
        yield step


def check_knowable(case: Case) -> None:
    """Check that what is compiled follows from the code alone.

    Raises:
        UsageError: It is chosen by timing kernels, or by capturing calls, on the device.
    """
    tuned = case.is_tuned or case.sets_any(_TIMED_OPTIONS)
    reasons = {
        f"cases of the kind {case.kind} are run, and a target runs nothing": not KINDS[case.kind].on_target,
        "kernels are chosen by timing them, which needs the GPU itself; a target has none": tuned,
        "CUDA graphs are captured, which needs the GPU itself; a target has none": has_cudagraphs(case),
    }
    if why := next((reason for reason, holds in reasons.items() if holds), ""):
        raise UsageError(f"UNAVAILABLE: {why}", f"Leave it out here: --select '...,!{case.id}'.")


def place_subject(workload: Workload, case: Case, device: TargetDevice) -> Subject:
    """Put fake tensors on the target in the place of a workload's own; the optimizer is no compiled code."""
    dtype = TORCH_DTYPES[case.dtype]
    place = _remember(lambda tensor: device.place(tensor, dtype))
    held = hold(workload.forward, workload.loss)
    loose = {id(one): place(one) for one in held.list_loose()} if isinstance(held, Held) else {}
    for part in held.modules() if held is not None else ():
        for tensors in (part._parameters, part._buffers):  # noqa: SLF001 - modules cannot be moved to where nothing is
            for name, tensor in tensors.items():
                tensors[name] = None if tensor is None else place(tensor)
    placed = replace(
        workload,
        forward=rebind(workload.forward, loose),
        loss=workload.loss and rebind(workload.loss, loose),
        inputs=map_tensors(place, workload.inputs),
        kwargs=map_tensors(place, dict(workload.kwargs)),
        optimizer=None,
        exact=None,
    )
    return assemble_subject(placed, case, device, find_protocol(case).spread)


def _remember(place: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], Any]:
    """Place each tensor once: tied weights stay tied."""
    # With the original, since its id is its own only while it lives.
    placed: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def place_once(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in placed:
            placed[id(tensor)] = (tensor, place(tensor))
        return placed[id(tensor)][1]

    return place_once


def _record_graphs(context: WorkerContext) -> None:
    report = graph.observe_graphs(context.directory)
    check_compiled(report)
    # There are no CUDA graphs, and nothing of them is known.
    unknown = {Metric.CUDAGRAPH_SKIPS, Metric.CUDAGRAPH_PARTITIONS}
    counts = {metric: (value,) for metric, value in report.counts.items() if metric not in unknown}
    context.logbook.add_samples(counts)
    context.logbook.record(
        graph_breaks=report.graph_breaks,
        recompile_reasons=report.recompile_reasons,
        phases_s=report.phases_s,
        unknown=report.unknown,
    )
    context.logbook.add_warnings(*report.skipped, *report.unknown)


def _record_code(context: WorkerContext) -> None:
    cache = graph.find_cache()
    counts = {
        Metric.GENERATED_KERNELS: identity.count_kernels(cache),
        Metric.CODE_LAUNCHES: identity.count_launches(cache),
        **sum_cubins(read_cubins(find_triton_cache())),
    }
    context.logbook.record(identity=identity.read_identity(cache), sources=identity.read_sources(cache))
    context.logbook.add_samples({metric: (count,) for metric, count in counts.items()})
