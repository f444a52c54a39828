"""What first-contact asks NVML: the real questions, to a library that plays a card."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gate.device_tests import test_sensors as sensors
from gate.device_tests.report import DeviceReport


class PlayedNvml:
    """Answers every question with one number, but for two."""

    def __getattr__(self, name: str) -> object:
        """Return a constant, or a function of any arguments."""
        return 7 if name.startswith("NVML_") else self.answer(name)

    def answer(self, name: str) -> Callable[..., object]:
        """Make the function of this name."""

        def ask(*_: object) -> object:
            if name == "nvmlDeviceGetMigMode":
                raise RuntimeError("Not Supported")
            return "none: its owner named it so" if name == "nvmlDeviceGetName" else 7

        return ask


def test_only_what_was_refused_is_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that begins as a refusal is written is an answer."""
    monkeypatch.setitem(sys.modules, "pynvml", cast("Any", PlayedNvml()))
    device = SimpleNamespace(identify=lambda: SimpleNamespace(uuid="GPU-1"))
    report = DeviceReport(path=tmp_path / "nvml_answers.txt", name="nvml_answers", assumed="So.")
    sensors.test_nvml_answers(cast("Any", device), report)
    lines = report.path.read_text().splitlines()
    assert lines[0] == "INFO     nvml_answers, without an answer: ['nvmlDeviceGetMigMode']"
    kept = json.loads((tmp_path / "nvml.json").read_text())
    assert kept["nvmlDeviceGetName"] == "none: its owner named it so"
    assert kept["nvmlDeviceGetMigMode"] == "none: RuntimeError: Not Supported"
    assert kept["nvmlDeviceGetClockInfo NVML_CLOCK_SM"] == "7"
