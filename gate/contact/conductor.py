"""Ask all that is assumed of a device, in processes that may end, and pack what was seen. Torch-free."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate.contact.findings import (
    ANSWERED,
    ASKED,
    ENDED,
    FINDINGS_FILE,
    PLANNED,
    AssumptionResult,
    AssumptionStatus,
)
from gate.errors import MachineError, UsageError
from gate.lab.host.gpu import look_up_gpu, refuse_service, show_alone
from gate.lab.host.scratch import open_scratch
from gate.lab.workers.environment import WorkerPlaces, make_worker_environment
from gate.lab.workers.process import ProcessCommand, ProcessExit, run_process
from gate.programs import ask_program
from gate.units import render_duration

WORKER = ("-P", "-m", "gate.contact.worker")
Observe = Callable[[AssumptionResult], None]
_Line = Mapping[str, Any]  # of JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Contact:
    """What to ask: of which device, with how many threads, for how long, and where to write what was seen."""

    device: str
    out: Path
    threads: int
    limit_s: float
    names: tuple[str, ...] = ()  # of assumptions; none: all
    worker: tuple[str, ...] = WORKER


def make_contact(contact: Contact, observe: Observe) -> tuple[AssumptionResult, ...]:
    """Ask; tell each finding as soon as it is known, and return all of them, what was not asked last.

    Raises:
        MachineError: A worker cannot be started, or ends before it has asked anything, or the GPU is shared
            through MPS.
        UsageError: There is no assumption of a name about this device.
    """
    refuse_service(contact.device, os.environ)
    contact.out.mkdir(parents=True, exist_ok=True)
    path = contact.out / FINDINGS_FILE
    path.write_text("", encoding="utf-8")
    deadline = time.monotonic() + contact.limit_s
    told, ended = 0, False
    with open_scratch() as scratch:
        (scratch / "tmp").mkdir()
        while not ended and time.monotonic() < deadline:
            before = len(_read_lines(path))
            process = run_process(_make_command(contact, scratch, before, deadline - time.monotonic()))
            ended = _note_end(path, before, process)
            found = read_findings(_read_lines(path))
            for finding in found[told:]:
                observe(finding)
            told = len(found)
    lines = _read_lines(path)
    unasked = _list_unasked(contact, lines)
    for finding in unasked:
        observe(finding)
    return (*read_findings(lines), *unasked)


def _list_unasked(contact: Contact, lines: Sequence[_Line]) -> list[AssumptionResult]:
    """List what was planned and not asked; a single line where nobody came to plan anything.

    Raises:
        UsageError: A name was to be asked about that nobody planned.
    """
    plans: list[dict[str, str]] = [line["assumed"] for line in lines if line["line"] == PLANNED]
    if not plans:
        return [_tell_nothing_asked(contact)]
    planned = plans[-1]
    if unknown := [name for name in contact.names if name not in planned]:
        what = f"there is no assumption {unknown[0]!r} about {contact.device}"
        raise UsageError(what, "A run without --only prints the names.")
    asked = {line["name"] for line in lines if line["line"] == ASKED}
    return [
        AssumptionResult(outcome=AssumptionStatus.UNASKED, found="no time was left", name=name, assumed=text)
        for name, text in planned.items()
        if name not in asked
    ]


def _tell_nothing_asked(contact: Contact) -> AssumptionResult:
    limit, log = render_duration(contact.limit_s), contact.out / _name_log(0)
    found = f"nothing was asked within {limit}; see {log}, or raise --minutes"
    return AssumptionResult(outcome=AssumptionStatus.UNASKED, found=found, name="all")


def _make_command(contact: Contact, scratch: Path, lines: int, left_s: float) -> ProcessCommand:
    places = WorkerPlaces(cache=scratch / f"cache-{lines}", temporary=scratch / "tmp")
    environment = make_worker_environment(os.environ, places, contact.threads)
    device, shown = show_alone(look_up_gpu(contact.device, os.environ), contact.device)
    return ProcessCommand(
        argv=(sys.executable, *contact.worker, device, str(contact.out.resolve()), *contact.names),
        environment={**environment, **shown},
        directory=Path.cwd(),
        log=contact.out / _name_log(lines),
        limit_s=max(left_s, 1.0),
    )


def _name_log(lines: int) -> str:
    """Name the log of the worker that finds so many lines in the file of findings."""
    return f"worker-{lines}.log"


def _note_end(path: Path, before: int, ended: ProcessExit) -> bool:
    """Write down what the end of a process means for what it was asking; whether it had asked everything.

    Raises:
        MachineError: It ended before it asked anything.
    """
    lines = _read_lines(path)
    if len(lines) == before and not ended.timed_out:
        said = ended.log_tail.decode(errors="replace").strip().splitlines()[-1:]
        what = f"the process that asks ended with status {ended.status}: {' '.join(said)}"
        raise MachineError(what, "See `compile-gate doctor`, and the log beside the findings.")
    if lines and lines[-1]["line"] == ASKED:
        finding = {**lines[-1], "line": ANSWERED, **_describe_end(ended, float(lines[-1]["limit_s"]))}
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(finding)}\n")
    return bool(lines) and lines[-1]["line"] == ENDED


def _describe_end(ended: ProcessExit, limit_s: float) -> dict[str, str]:
    if ended.timed_out:
        return {"outcome": AssumptionStatus.UNASKED, "found": "no time was left for an answer"}
    found = f"the process ended with status {ended.status}"
    if ended.status == -signal.SIGALRM:
        found = f"no answer within {limit_s:g} s"
    return {"outcome": AssumptionStatus.REFUTED, "found": found}


def _read_lines(path: Path) -> list[_Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_findings(lines: Sequence[_Line]) -> list[AssumptionResult]:
    """Read the answers among the lines of a file of findings."""
    return [
        AssumptionResult(
            outcome=AssumptionStatus(line["outcome"]),
            found=line["found"],
            expected=line.get("expected", ""),
            name=line["name"],
            assumed=line["assumed"],
        )
        for line in lines
        if line["line"] == ANSWERED
    ]


# What is asked beside the assumptions: texts of real tools, in the formats of this driver.
_COMMANDS = {
    "nvidia-smi-q.txt": ("nvidia-smi", "-q"),
    "nvidia-smi-L.txt": ("nvidia-smi", "-L"),
    "nvidia-smi-topo.txt": ("nvidia-smi", "topo", "-m"),
    "nvidia-smi-apps.csv": ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv"),
    "lscpu.txt": ("lscpu",),
    "packages.txt": ("{python}", "-P", "-m", "pip", "list"),
    "collect-env.txt": ("{python}", "-P", "-m", "torch.utils.collect_env"),
}
_LIMIT_S = 120.0
MAX_FILE_BYTES = 8 * 2**20  # a larger one is left out: an issue takes 25 MB


def collect_texts(out: Path, python: str) -> None:
    """Run the tools that describe the machine; what one of them cannot say is written in its place."""
    for name, command in _COMMANDS.items():
        told = ask_program([part.format(python=python) for part in command], limit_s=_LIMIT_S)
        text = f"{told.problem}\n" if told.problem else f"{told.out}{told.err}"
        (out / name).write_text(text, encoding="utf-8")


def write_bundle(out: Path, path: Path) -> tuple[str, ...]:
    """Write all files below ``out`` into a zip archive; return the names of those that are too large."""
    files = sorted(one for one in out.rglob("*") if one.is_file())
    left_out = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in files:
            name = str(one.relative_to(out))
            if one.stat().st_size > MAX_FILE_BYTES:
                left_out.append(name)
            else:
                archive.write(one, name)
    return tuple(left_out)
