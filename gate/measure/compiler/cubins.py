"""What Triton compiled to: registers, shared memory, spills and size of each binary in its cache."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gate.errors import MachineError
from gate.records import Metric

_LIMIT_S = 60
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cubin:
    """One binary: a kernel in one of the configurations that it can be launched with."""

    kernel: str
    registers: int  # of a thread
    shared_bytes: int  # of a block
    stack_bytes: int  # of a thread: what did not fit into registers lies in memory
    size_bytes: int


def find_triton_cache() -> Path:
    """Find Triton's cache directory: in a trial it is the trial's own."""
    return Path(os.environ.get("TRITON_CACHE_DIR", os.devnull))


def read_cubins(cache: Path) -> tuple[Cubin, ...]:
    """Read every binary in Triton's cache directory.

    Raises:
        MachineError: Triton brings no tool that tells a binary's resources.
    """
    return tuple(_read_cubin(path) for path in sorted(cache.rglob("*.cubin")))


def sum_cubins(cubins: Iterable[Cubin]) -> dict[Metric, int]:
    """Take all binaries of a case together.

    Registers, memory and sizes are summed, so that any change shows. The stack is that of each kernel's least
    configuration: tuning chooses no other.
    """
    found = tuple(cubins)
    least: dict[str, int] = {}
    for cubin in found:
        least[cubin.kernel] = min(cubin.stack_bytes, least.get(cubin.kernel, cubin.stack_bytes))
    return {
        Metric.TRITON_CONFIGS: len(found),
        Metric.REGISTERS: sum(cubin.registers for cubin in found),
        Metric.SHARED_MEMORY: sum(cubin.shared_bytes for cubin in found),
        Metric.STACK_MEMORY: sum(least.values()),
        Metric.CUBIN_BYTES: sum(cubin.size_bytes for cubin in found),
    }


def parse_usage(told: str) -> Mapping[str, int]:
    """Parse what ``cuobjdump --dump-resource-usage`` tells of a binary with one kernel.

    Raises:
        ValueError: It tells nothing of the kind.
    """
    match = _USAGE.search(told)
    if match is None:
        raise ValueError(f"cuobjdump tells no resource usage: {told[:80]!r}")
    registers, stack, local = map(int, match.groups())
    return {"registers": registers, "stack_bytes": stack + local}


def _read_cubin(path: Path) -> Cubin:
    usage = parse_usage(_dump_usage(path))
    metadata = json.loads(path.with_suffix(".json").read_text())
    return Cubin(
        kernel=path.stem,
        registers=usage["registers"],
        stack_bytes=usage["stack_bytes"],
        shared_bytes=int(metadata["shared"]),
        size_bytes=path.stat().st_size,
    )


def _dump_usage(path: Path) -> str:
    command = [str(_find_tool()), "--dump-resource-usage", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LIMIT_S).stdout


def _find_tool() -> Path:
    found = importlib.util.find_spec("triton")
    tool = Path(found.origin if found and found.origin else "").parent / "backends/nvidia/bin/cuobjdump"
    if not tool.is_file():
        raise MachineError(f"triton brings no {tool.name}: {tool}", "Install triton 3.6 or newer from PyPI.")
    return tool
