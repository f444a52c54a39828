"""The part of the suite that needs torch; imported when the first case is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from gate.devices import TARGET
from gate.measure.cold import compile_untimed, measure_again, measure_cold, measure_plain
from gate.measure.context import WorkerContext, try_case
from gate.measure.device.device import Device
from gate.measure.device.opening import open_device
from gate.measure.target import measure_target
from gate.measure.toolchain import load_toolchain
from gate.measure.warm import measure_warm
from gate.measure.workload.build import SEED, TORCH_DTYPES, seed_everything
from gate.measure.workload.holding import hold
from gate.measure.workload.tensors import iterate_tensors
from gate.records import Case, DType
from gate.records.protocol import WorkerRole
from gate.suite.rows import BlockTimer
from gate.suite.session import TIMER, SuiteSession, tolerate_warnings
from gate.suite.torch_imports import import_torch
from gate.workload import Workload


def open_session_device(session: SuiteSession) -> Device:
    """Open the session's device once, and set threads and the timer up for it.

    Raises:
        MachineError: There is no such device.
    """
    if "device" not in session.opened:
        import_torch()
        torch.set_num_threads(session.threads)
        device = open_device(session.device)
        if session.compiles:
            load_toolchain(device)
        TIMER.synchronize = device.synchronize
        session.opened["device"] = device
    seed_everything(SEED)
    device_opened: Device = session.opened["device"]
    return device_opened


def measure_case(session: SuiteSession, case: Case, workload: Workload | None, timer: BlockTimer) -> None:
    """Measure a case as the session's role asks; in a trial, what goes wrong is in the result file too."""
    device = open_session_device(session)
    context = WorkerContext(
        case=case,
        device=device,
        sampling=session.sampling,
        logbook=session.logbook,
        directory=session.directory,
        turns=session.turns,
        skips_calls=session.request is not None and session.request.skips_calls,
    )
    try:
        with tolerate_warnings():
            _measure(context, workload, timer, session.request.role if session.request else None)
    except Exception as error:
        context.logbook.fail(error)  # now: a test that catches it goes on as if all were well
        raise
    context.logbook.leave()


def find_dtype(workload: Workload) -> DType:
    """Find the lowest floating-point type among a workload's parameters and inputs."""
    held = hold(workload.forward)
    own = list(held.parameters()) if held is not None else []
    inputs = [tensor for _, tensor in iterate_tensors((workload.inputs, workload.kwargs))]
    found = {tensor.dtype for tensor in (*own, *inputs)}
    half = (dtype for dtype in (DType.BFLOAT16, DType.FLOAT16) if TORCH_DTYPES[dtype] in found)
    return next(half, DType.FLOAT32)


# By role; outside of a trial there is none.
_TIMED = {None: measure_plain, WorkerRole.COLD: measure_cold, WorkerRole.ROUNDS: measure_again}
_UNTIMED: Mapping[WorkerRole | None, Callable[[WorkerContext, Workload | None], None]] = {
    WorkerRole.TRY: try_case,
    WorkerRole.TRACE: compile_untimed,
    WorkerRole.WARM: measure_warm,
}


def _measure(
    context: WorkerContext, workload: Workload | None, timer: BlockTimer, role: WorkerRole | None
) -> None:
    untimed = measure_target if context.device.kind is TARGET else _UNTIMED.get(role)
    if untimed:
        untimed(context, workload)
        timer.skip()
        return
    rounds, case = _TIMED[role](context, workload, timer), context.case
    extra = {"task": case.task, "dtype": case.dtype, "mode": case.mode, "device": context.device.name}
    timer.split_row(case.id, rounds, {name: str(value) for name, value in extra.items()})
