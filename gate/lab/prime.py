"""Priming: pay once for the toolchain, learn the environment, and find out whether the machine can do it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from gate.errors import MachineError
from gate.lab.trials import Bench, make_job, run_job
from gate.protocol import WorkerRole
from gate.records import CaseFailure, Environment

# What a primer says when the machine lacks something, and what to do about it.
_FIXES = (
    (
        r"^no end after",
        "Wait until the machine is idle, or raise `trial_timeout_s` in gate.yml; {log} says where it was.",
    ),
    (r"No module named '?torch", "Install torch for {python}, or name an interpreter that has it."),
    (r"No module named '?gate", "Install compile-gate for {python}."),
    (
        r"InvalidCxxCompiler|No working C\+\+ compiler|C\+\+ compiler",
        "Install a C++ compiler (g++), or set CXX.",
    ),
    (r"Python\.h", "Install the headers of Python (python3-dev)."),
    (
        r"CUDA|NVIDIA|device ordinal|No such device|no such device|Found no",
        "Choose a device this machine has (--device cpu), or fix its driver: `nvidia-smi` must list it.",
    ),
)
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
        fix = find_fix(f"{result.message}\n{result.log_tail}")
        where = f"on {bench.settings.device}, at stage {result.stage}"
        what = f"torch.compile does not work here {where}: {result.message}"
        raise MachineError(what, fix.format(python=bench.arm.python, log=job.log))
    if result.environment is None:
        raise MachineError("the primer did not tell the environment", _GENERAL_FIX.format(log=job.log))
    return Primed(environment=result.environment, toolchain_s=time.monotonic() - begun)


def find_fix(said: str) -> str:
    """Find what fixes a primer's failure from what it said; may hold ``{python}`` and ``{log}``."""
    return next((fix for pattern, fix in _FIXES if re.search(pattern, said)), _GENERAL_FIX)
