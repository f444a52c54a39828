"""What NVML tells, with a stand-in for nvidia-ml-py."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gate.measure.nvml import DeviceState, NvmlDevice, parse_reasons


class NVMLError(Exception):
    """nvidia-ml-py's error."""


def refuse(*_: object) -> None:
    """Answer as NVML does on a GPU that does not support the question."""
    raise NVMLError("not supported")


def make_nvml(**answers: Any) -> SimpleNamespace:  # noqa: ANN401 - whatever NVML answers
    """Return a module with ``answers``; whatever else is asked is refused."""
    names = (
        "nvmlSystemGetDriverVersion",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetApplicationsClock",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetComputeRunningProcesses",
    )
    told = {name: (lambda *_, value=value: value) for name, value in answers.items()}
    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        **{**dict.fromkeys(names, refuse), **told},
    )


def test_reasons_are_named() -> None:
    """Bits 0x04 and 0x40 are the power cap and hardware thermal slowdown; idle (0x01) is no reason."""
    assert parse_reasons(0x45) == ("software power cap", "hardware thermal slowdown")


def test_state_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clock, temperature, reasons, and all processes but one's own."""
    module = make_nvml(
        nvmlDeviceGetCurrentClocksEventReasons=0x20,
        nvmlDeviceGetClockInfo=1410,
        nvmlDeviceGetTemperature=61,
        nvmlDeviceGetComputeRunningProcesses=[SimpleNamespace(pid=1), SimpleNamespace(pid=2)],
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    expected = DeviceState(
        throttled=("software thermal slowdown",), foreign_processes=1, clock_mhz=1410.0, temperature_c=61.0
    )
    assert expected == NvmlDevice("abc").read_state()


def test_clock_policy_is_power_and_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power limit comes in milliwatts; a clock that is not told is left out."""
    monkeypatch.setitem(sys.modules, "pynvml", make_nvml(nvmlDeviceGetEnforcedPowerLimit=700_000))
    assert NvmlDevice("abc").read_clock_policy() == "700 W"
    module = make_nvml(nvmlDeviceGetEnforcedPowerLimit=700_000, nvmlDeviceGetApplicationsClock=1980)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert NvmlDevice("abc").read_clock_policy() == "application 1980 MHz, 700 W"


def test_what_nvml_refuses_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that supports nothing has an empty state."""
    monkeypatch.setitem(sys.modules, "pynvml", make_nvml())
    device = NvmlDevice("abc")
    assert DeviceState() == device.read_state()
    assert device.read_driver() == ""


def test_without_nvml_all_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-ml-py is optional."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    device = NvmlDevice("abc")
    assert DeviceState() == device.read_state()
    assert (device.read_driver(), device.read_clock_policy()) == ("", "")
