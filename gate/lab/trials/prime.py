"""Priming: pay once for the toolchain, learn the environment, and find out whether the machine can do it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gate.errors import MachineError
from gate.lab.trials.trials import Bench, make_job, run_job
from gate.lab.workers.worker import load_result
from gate.records import CaseFailure, Environment, FailureKind
from gate.records.protocol import Prerequisite, WorkerResult, WorkerRole

# What to do about what the machine lacks.
_FIXES = {
    Prerequisite.TORCH: "Install torch for {python}, or name an interpreter that has it.",
    Prerequisite.CXX_COMPILER: "Install a C++ compiler (g++), or set CXX.",
    Prerequisite.PYTHON_HEADERS: "Install the headers of Python (python3-dev).",
    Prerequisite.DEVICE: (
        "Choose a device this machine has (--device cpu), or fix its driver: `nvidia-smi` must list it."
    ),
}
_SLOW_FIX = "Wait until the machine is idle, or raise `trial_timeout_s` in gate.yml; {log} says where it was."
_GENERAL_FIX = "Read {log}, then try `compile-gate doctor`."


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
    result = run_job(bench, job)
    if isinstance(result, CaseFailure):
        fix = find_fix(result, load_result(Path(job.request.result)).result)
        where = f"on {bench.settings.device}, at stage {result.stage}"
        what = f"torch.compile does not work here {where}: {result.message}"
        raise MachineError(what, fix.format(python=bench.arm.python, log=job.log))
    if result.environment is None:
        raise MachineError("the primer did not tell the environment", _GENERAL_FIX.format(log=job.log))
    return Primed(environment=result.environment, toolchain_s=time.monotonic() - begun)


def find_fix(failure: CaseFailure, left: WorkerResult | None) -> str:
    """Find what fixes a primer's failure, by what it left; may hold ``{python}`` and ``{log}``."""
    if failure.kind is FailureKind.HANG:
        return _SLOW_FIX
    missing = left.failure.missing if left and left.failure else None
    return _FIXES[missing] if missing else _GENERAL_FIX
