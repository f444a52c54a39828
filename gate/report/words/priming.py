"""Why a machine cannot compile, and what to do about it, in words."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import CaseFailure, FailureKind
from gate.records.protocol import Prerequisite
from gate.report.words.failures import describe_failure

_FIXES: Mapping[Prerequisite, str] = {
    Prerequisite.TORCH: "Install torch for {python}, or name an interpreter that has it.",
    Prerequisite.CXX_COMPILER: "Install a C++ compiler (g++), or set CXX.",
    Prerequisite.PYTHON_HEADERS: "Install the headers of Python (python3-dev).",
    Prerequisite.DEVICE: (
        "Choose a device this machine has (--device cpu), or fix its driver: `nvidia-smi` must list it."
    ),
}
_SLOW_FIX = "Wait until the machine is idle, or raise `trial_timeout_s` in gate.yml; {log} says where it was."
_GENERAL_FIX = "Read {log}, then try `compile-gate doctor`."


def describe_unprimed(failure: CaseFailure, device: str) -> str:
    """Describe how the primer failed."""
    where = f"on {device}, at stage {failure.stage}"
    return f"torch.compile does not work here {where}: {describe_failure(failure)}"


def advise_unprimed(kind: FailureKind, missing: Prerequisite | None, *, python: str, log: str) -> str:
    """Advise what fixes a primer's failure; ``missing`` is what it says that the machine lacks."""
    fix = _SLOW_FIX if kind is FailureKind.HANG else _FIXES[missing] if missing else _GENERAL_FIX
    return fix.format(python=python, log=log)
