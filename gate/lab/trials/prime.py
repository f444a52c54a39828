"""Priming: pay once for the toolchain, learn the environment, and find out whether the machine can do it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gate.errors import MachineError
from gate.lab.trials.trials import Bench, make_job, run_job
from gate.lab.workers.worker import load_result
from gate.records import CaseFailure, Environment, FailureKind
from gate.records.protocol import WorkerRole
from gate.records.targets import is_target
from gate.report.words.failures import advise_unprimed, describe_unprimed


@dataclass(frozen=True, kw_only=True, slots=True)
class Primed:
    """What priming tells. ``toolchain_s`` is its wall time in seconds."""

    environment: Environment
    toolchain_s: float


def prime_bench(bench: Bench) -> Primed:
    """Run the primer on ``bench``: later workers find precompiled headers and the ISA probe's results.

    Raises:
        MachineError: The machine cannot compile on this device.
    """
    begun = time.monotonic()
    job = make_job(bench, WorkerRole.PRIME)
    # Importing takes seconds, on a core of its own if there is one: nothing is timed yet.
    later = [] if is_target(bench.settings.device) else [make_job(bench, WorkerRole.WARM)]
    result = run_job(bench, job, later)
    if isinstance(result, CaseFailure):
        left = load_result(Path(job.request.result)).result
        missing = left.failure.missing if left and left.failure else None
        fix = advise_unprimed(result.kind, missing, python=bench.arm.python, log=str(job.log))
        raise MachineError(describe_unprimed(result, bench.settings.device), fix)
    if result.environment is None:
        fix = advise_unprimed(FailureKind.ERROR, None, python=bench.arm.python, log=str(job.log))
        raise MachineError("the primer did not tell the environment", fix)
    return Primed(environment=result.environment, toolchain_s=time.monotonic() - begun)
