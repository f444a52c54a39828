"""Measure a case for a target: trace it, compile it, count what was made; nothing is run."""

import functools
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gate.errors import MachineError, UsageError
from gate.kinds import KIND_SPECS as KINDS
from gate.measure import graph
from gate.measure.calls import count_compile_calls
from gate.measure.context import WorkerContext, build_subject, record_first, record_graphs, use_gradients
from gate.measure.device.target_device import TargetDevice
from gate.measure.identity import count_launches
from gate.measure.kinds.protocol import make_protocol
from gate.measure.workload.build import TORCH_DTYPES, Subject, assemble_subject, has_cudagraphs, make_step
from gate.measure.workload.holding import Held, find_held, rebind
from gate.measure.workload.tensors import map_tensors
from gate.programs import ask_program
from gate.records.cases import Case, Metric
from gate.records.protocol import Stage
from gate.workload import Workload

_LIMIT_S = 60
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
CALLS = 3  # the later ones find whether what the first compiled serves them
# Further options of Inductor that choose by timing kernels on the device.
_TIMED_OPTIONS = frozenset(("coordinate_descent_tuning", "shape_padding"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cubin:
    kernel: str
    registers: int  # of a thread
    shared_bytes: int  # of a block
    stack_bytes: int  # of a thread: what did not fit into registers lies in memory
    size_bytes: int


def sum_cubins(cubins: Iterable[Cubin]) -> dict[Metric, int]:
    """Sum up all binaries of a case."""
    listed = tuple(cubins)
    least: dict[str, int] = {}
    for cubin in listed:
        least[cubin.kernel] = min(cubin.stack_bytes, least.get(cubin.kernel, cubin.stack_bytes))
    return {
        Metric.TRITON_CONFIGS: len(listed),
        Metric.REGISTERS: sum(cubin.registers for cubin in listed),
        Metric.SHARED_MEMORY: sum(cubin.shared_bytes for cubin in listed),
        Metric.STACK_MEMORY: sum(least.values()),
        Metric.CUBIN_BYTES: sum(cubin.size_bytes for cubin in listed),
    }


def parse_usage(output: str) -> tuple[int, int]:
    """Parse what ``cuobjdump --dump-resource-usage`` prints for a binary with one kernel.

    Returns:
        A thread's registers, and the bytes of its stack.

    Raises:
        ValueError: It prints nothing of the kind.
    """
    match = _USAGE.search(output)
    if match is None:
        raise ValueError(f"cuobjdump reports no resource usage: {output[:80]!r}")
    registers, stack, local = map(int, match.groups())
    return registers, stack + local


def _read_cubin(path: Path) -> Cubin:
    command = [str(_get_tool()), "--dump-resource-usage", str(path)]
    answer = ask_program(command, limit_s=_LIMIT_S)
    if answer.status:
        why = answer.problem or answer.err.strip() or f"ended with status {answer.status}"
        raise MachineError(f"cuobjdump: {why}", "Install triton anew from PyPI.")
    registers, stack_bytes = parse_usage(answer.output)
    metadata = json.loads(path.with_suffix(".json").read_text())
    return Cubin(
        kernel=path.stem,
        registers=registers,
        stack_bytes=stack_bytes,
        shared_bytes=int(metadata["shared"]),
        size_bytes=path.stat().st_size,
    )


def _get_tool() -> Path:
    spec = importlib.util.find_spec("triton")
    tool = Path(spec.origin if spec and spec.origin else "").parent / "backends/nvidia/bin/cuobjdump"
    if not tool.is_file():
        raise MachineError(f"triton brings no {tool.name}: {tool}", "Install triton 3.6 or newer from PyPI.")
    return tool


def measure_target(context: WorkerContext, workload: Workload | None) -> None:
    """Compile a case for the context's target; the logbook gets what is exact of it.

    Raises:
        UsageError: Nothing was compiled, or the case needs the device itself. What the model or the compiler
            raises passes through: tracing stops where a value is needed.
    """
    with compile_target(context, workload) as step:
        context.logbook.enter(Stage.CALLS)
        context.logbook.hold_caches(context.caches)
        calls = count_compile_calls(step, graph.get_cache_directory()).total
        context.logbook.add_samples({Metric.COMPILE_CALLS: (calls,)})


@contextmanager
def compile_target(context: WorkerContext, workload: Workload | None) -> Iterator[Callable[[], Any]]:
    """Compile a case, record it, and yield the compiled step; raises as :func:`measure_target`."""
    device, logbook = context.device, context.logbook
    if not isinstance(device, TargetDevice):
        raise TypeError(f"{device.name} is no target")
    check_knowable(context.case)
    protocol = make_protocol(context.case)
    subject = build_subject(context, workload, lambda built: place_subject(built, context.case, device))
    logbook.enter(Stage.COMPILE)
    step = make_step(subject, protocol.compile(subject))
    with use_gradients(context.case), device.mode:
        graph.start_observation()
        step()
        record_first(context, graph.observe_graphs(context.directory), {})
        for _ in range(1, CALLS):
            step()
        protocol.check_compiled(graph.observe_graphs(context.directory))
        record_graphs(context, protocol)
        _record_binaries(context)
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
    """Put fake tensors on the target in the place of a workload's; the optimizer is no compiled code."""
    dtype = TORCH_DTYPES[case.dtype]
    # Each tensor once: tied weights stay tied.
    put: Callable[[torch.Tensor], Any] = functools.cache(lambda tensor: device.place(tensor, dtype))
    held = find_held(workload.forward, workload.loss)
    loose = {id(tensor): put(tensor) for tensor in held.list_loose()} if isinstance(held, Held) else {}
    for part in held.modules() if held is not None else ():
        for tensors in (part._parameters, part._buffers):  # noqa: SLF001 - modules cannot be moved to where nothing is
            for name, tensor in tensors.items():
                tensors[name] = None if tensor is None else put(tensor)
    placed = replace(
        workload,
        forward=rebind(workload.forward, loose),
        loss=workload.loss and rebind(workload.loss, loose),
        inputs=map_tensors(put, workload.inputs),
        kwargs=map_tensors(put, dict(workload.kwargs)),
        optimizer=None,
        exact=None,
    )
    return assemble_subject(placed, case, device, make_protocol(case).spread)


def _record_binaries(context: WorkerContext) -> None:
    # In a trial the directory is the trial's own.
    binaries = sorted(Path(os.environ.get("TRITON_CACHE_DIR", os.devnull)).rglob("*.cubin"))
    counts = {
        Metric.CODE_LAUNCHES: count_launches(graph.get_cache_directory()),
        **sum_cubins(map(_read_cubin, binaries)),
    }
    context.logbook.add_samples({metric: (count,) for metric, count in counts.items()})
