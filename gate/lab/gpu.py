"""The GPUs of this host as nvidia-smi tells of them; needs neither torch nor a CUDA context."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LIMIT_S = 20.0  # without persistence mode nvidia-smi loads the driver first: seconds on large hosts

_FIELDS = (
    *("index", "uuid", "name", "driver_version", "clocks.sm", "clocks.max.sm"),
    *("clocks_throttle_reasons.active", "temperature.gpu", "persistence_mode", "mig.mode.current"),
    *("memory.used", "memory.total"),
)

# Bits of NVML's clocks event reasons. Idle, application clocks, a sync boost and a display clock are
# normal; a software power cap is normal under load and shown only by its share of time.
THROTTLE_REASONS = {
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuState:
    """One GPU. Numbers that the driver does not give are 0, words are empty."""

    index: int
    uuid: str
    name: str = ""
    driver: str = ""
    clock_mhz: float = 0.0
    max_clock_mhz: float = 0.0
    throttled: tuple[str, ...] = ()
    temperature_c: float = 0.0
    persistent: bool = False
    mig: bool = False
    memory_used_mib: float = 0.0
    memory_total_mib: float = 0.0
    processes: int = 0


def load_gpus() -> tuple[GpuState, ...]:
    """Ask nvidia-smi; empty where it is missing or fails."""
    table = _run_nvidia_smi(f"--query-gpu={','.join(_FIELDS)}")
    processes = _run_nvidia_smi("--query-compute-apps=gpu_uuid,pid") if table else ""
    return parse_gpus(table, processes)


def parse_gpus(table: str, processes: str) -> tuple[GpuState, ...]:
    """Parse what nvidia-smi prints as CSV without header and units; lines that do not fit are left out."""
    busy = Counter(row[0] for row in _parse_rows(processes, 2))
    return tuple(
        _parse_gpu(row, busy[row[1]]) for row in _parse_rows(table, len(_FIELDS)) if row[0].isdecimal()
    )


def find_gpu(gpus: Sequence[GpuState], device: str, environ: Mapping[str, str]) -> GpuState | None:
    """Find the GPU that a worker will call ``device`` (``cuda``, ``cuda:1``); None when there is none.

    Workers order devices by PCI bus, as nvidia-smi does, and inherit ``CUDA_VISIBLE_DEVICES``.
    """
    ordinal = int(device.partition(":")[2] or 0)
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        names = [str(gpu.index) for gpu in gpus]
    else:
        names = [name.strip() for name in visible.split(",")]
    if ordinal >= len(names) or not names[ordinal]:
        return None
    name = names[ordinal]
    return next(
        (
            gpu
            for gpu in gpus
            if name == str(gpu.index) or (not name.isdecimal() and gpu.uuid.startswith(name))
        ),
        None,
    )


def _run_nvidia_smi(query: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _parse_rows(table: str, columns: int) -> list[list[str]]:
    rows = csv.reader(table.splitlines(), skipinitialspace=True)
    return [[field.strip() for field in row] for row in rows if len(row) == columns]


def _parse_gpu(row: Sequence[str], processes: int) -> GpuState:
    fields = dict(zip(_FIELDS, row, strict=True))
    return GpuState(
        index=int(fields["index"]),
        uuid=fields["uuid"],
        name=fields["name"],
        driver=fields["driver_version"],
        clock_mhz=_parse_number(fields["clocks.sm"]),
        max_clock_mhz=_parse_number(fields["clocks.max.sm"]),
        throttled=_parse_reasons(fields["clocks_throttle_reasons.active"]),
        temperature_c=_parse_number(fields["temperature.gpu"]),
        persistent=fields["persistence_mode"] == "Enabled",
        mig=fields["mig.mode.current"] == "Enabled",
        memory_used_mib=_parse_number(fields["memory.used"]),
        memory_total_mib=_parse_number(fields["memory.total"]),
        processes=processes,
    )


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "[N/A]" and "[Not Supported]": the device does not tell
        return 0.0


def _parse_reasons(mask: str) -> tuple[str, ...]:
    try:
        bits = int(mask, 16)
    except ValueError:  # "[N/A]"
        return ()
    return tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
