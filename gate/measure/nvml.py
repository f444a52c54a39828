"""What NVML tells about a GPU, through nvidia-ml-py, which is optional. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

# Clock-event reasons (nvml.h, nvmlClocksEventReasons) that lower clocks below what was asked for. The
# software power cap is normal under heavy matrix products, but it differs between runs all the same.
_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceState:
    """A device at one moment. Empty and 0 where unknown."""

    throttled: tuple[str, ...] = ()
    foreign_processes: int = 0
    clock_mhz: float = 0.0
    temperature_c: float = 0.0


class NvmlDevice:
    """One GPU by its UUID. Without nvidia-ml-py, or where NVML refuses, answers are empty."""

    def __init__(self, uuid: str) -> None:
        self._nvml = _load_nvml()
        self._handle: Any = None
        if self._nvml:
            full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            self._handle = self._ask(lambda nvml: nvml.nvmlDeviceGetHandleByUUID(full), None)

    def read_driver(self) -> str:
        """Read the driver's version."""
        return str(self._ask(lambda nvml: nvml.nvmlSystemGetDriverVersion(), ""))

    def read_clock_policy(self) -> str:
        """Read the power limit and, where the driver tells, the application clock."""
        if self._handle is None or self._nvml is None:
            return ""
        limit_mw = self._ask(lambda nvml: nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle), 0)
        kind = self._nvml.NVML_CLOCK_SM
        clock = self._ask(lambda nvml: nvml.nvmlDeviceGetApplicationsClock(self._handle, kind), 0)
        parts = [f"application {clock} MHz"] if clock else []
        return ", ".join([*parts, f"{limit_mw / 1000:.0f} W"] if limit_mw else parts)

    def read_state(self) -> DeviceState:
        """Read the state at this moment."""
        if self._handle is None or self._nvml is None:
            return DeviceState()
        handle, nvml = self._handle, self._nvml
        clock_kind, sensor = nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU
        return DeviceState(
            throttled=parse_reasons(self._ask(lambda nvml: _read_reasons(nvml, handle), 0)),
            foreign_processes=self._count_foreign(),
            clock_mhz=float(self._ask(lambda nvml: nvml.nvmlDeviceGetClockInfo(handle, clock_kind), 0)),
            temperature_c=float(self._ask(lambda nvml: nvml.nvmlDeviceGetTemperature(handle, sensor), 0)),
        )

    def _count_foreign(self) -> int:
        """Count the compute processes but one: in a container one's own id may not be in the list."""
        handle, nobody = self._handle, list[Any]()
        running = self._ask(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(handle), nobody)
        return max(0, len(running) - 1)

    def _ask(self, question: Callable[[Any], T], unknown: T) -> T:
        if self._nvml is None:
            return unknown
        with suppress(self._nvml.NVMLError):  # not supported on this GPU, or no permission: unknown
            return question(self._nvml)
        return unknown


def parse_reasons(mask: int) -> tuple[str, ...]:
    """Name the clock-event reasons of a bit mask that lower clocks."""
    return tuple(name for bit, name in _REASONS.items() if mask & bit)


def _read_reasons(nvml: Any, handle: Any) -> int:  # noqa: ANN401 - nvidia-ml-py is untyped
    # Drivers before 535 know it by its former name only.
    read = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return int((read or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle))


def _load_nvml() -> ModuleType | None:
    try:
        import pynvml  # noqa: PLC0415 - optional
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml  # type: ignore[no-any-return] # untyped
