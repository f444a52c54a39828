"""``python -m gate.contact.worker DEVICE OUT [NAME...]``: ask what is assumed, a line of JSON each.

Each assumption is announced before it is asked, so that whoever started this process knows which one ended
it. After one that raised, the process ends as well: an error of CUDA's spoils all that comes after it. So
it does before one that asks other processes, once it has opened the device: they count who is on it.
"""

from __future__ import annotations

import dis
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from gate.contact import clocks, launches, memory, neighbours, sensors, whole
from gate.contact.assumptions import Assumption, Place, answer
from gate.contact.findings import (
    ANSWERED,
    ASKED,
    ENDED,
    FINDINGS_FILE,
    PLANNED,
    AssumptionResult,
    AssumptionStatus,
)
from gate.errors import GateError
from gate.measure.device.opening import check_device

# What takes longest comes last, and what spoils a process in the end of its module.
_MODULES = (sensors, clocks, launches, memory, neighbours, whole)
_ASKED_PACKAGES = ("torch", "triton", "pynvml")  # what stands for the device and its driver
ALL = tuple(one for module in _MODULES for one in vars(module).values() if isinstance(one, Assumption))


def main(arguments: Sequence[str]) -> int:
    """Ask what is not in the file of findings yet; of these, those that are named where any are."""
    name, out, *chosen = arguments
    check_device(name)
    place = Place(name=name, out=Path(out))
    path = place.out / FINDINGS_FILE
    lines = list(map(json.loads, path.read_text().splitlines()))
    asked = {line["name"] for line in lines if line["line"] == ASKED}
    about = [one for one in ALL if place.kind.name in one.on and (not chosen or one.name in chosen)]
    _write(path, {"line": PLANNED, "assumed": {one.name: one.assumed for one in about}})
    for assumption in (one for one in about if one.name not in asked):
        if assumption.alone and place.is_open:
            return 0  # whoever started this process starts another one, which has opened nothing
        if not _ask(assumption, place, path):
            return 1
    _write(path, {"line": ENDED})
    return 0


def _ask(assumption: Assumption, place: Place, path: Path) -> bool:
    """Ask one; false where it raised. The kernel ends the process where it takes too long, wherever it is."""
    about = {"name": assumption.name, "assumed": assumption.assumed}
    _write(path, {"line": ASKED, **about, "limit_s": assumption.limit_s})
    signal.alarm(assumption.limit_s)
    try:
        torch.compiler.reset()
        found, raised = answer(assumption, place), False
    except Exception as error:  # noqa: BLE001 - what a device makes of it is an answer
        traceback.print_exc()
        told = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        outcome, raised = AssumptionStatus.REFUTED, True
        if not is_of_device(error):
            outcome, told = AssumptionStatus.UNASKED, f"the question itself failed: {told}"
        found = (AssumptionResult(outcome=outcome, found=told, **about),)
    signal.alarm(0)
    for part in found:
        _write(path, {"line": ANSWERED, **asdict(part)})
    return not raised


def is_of_device(error: Exception) -> bool:
    """Whether torch, Triton or NVML raised an error; one of the question's own code says nothing of a device.

    Their Python raises in a frame of theirs; their C++ in whoever called it, where nothing is raised, as a
    RuntimeError.
    """
    innermost = error.__traceback__
    while innermost and innermost.tb_next:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    frame = innermost.tb_frame
    if str(frame.f_globals.get("__name__")).partition(".")[0] in _ASKED_PACKAGES:
        return True
    is_raised_here = frame.f_code.co_code[innermost.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return isinstance(error, RuntimeError) and not is_raised_here


def _write(path: Path, line: dict[str, object]) -> None:
    with path.open("a") as file:
        file.write(f"{json.dumps(line)}\n")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except GateError as error:  # there is no such device
        sys.exit(error.what)
