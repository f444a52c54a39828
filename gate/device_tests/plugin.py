"""The pytest plugin of the tests of a device: ``pytest -p gate.device_tests.plugin --gate-device cuda``.

Torch is imported where a device is asked for: seconds for a test that asks for none.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gate.device_tests.runner import ResultStatus, has_status, read_lines, render_line
from gate.devices import CPU, CUDA, DEVICE_FORMS, get_kind
from gate.errors import GateError
from gate.files.disk import write_atomic

if TYPE_CHECKING:
    from gate.measure.device.device import Device

_LIMIT_S = 120
_FOUND_CHARS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceReport:
    """Writes the results of one test to ``path``, each at once: a crash loses none of those before it."""

    path: Path
    name: str
    assumed: str  # the first line of the test's docstring
    meant_for: str = ""  # what ranges are for, where this device is another: then values are INFO

    def check_range(self, value: float, low: float, high: float, unit: str = "", part: str = "") -> None:
        where = f" on {self.meant_for}" if self.meant_for else ""
        expected = f" (expected {low:g} to {high:g}{where})"
        self.check(low <= value <= high, f"{value:.4g} {unit}".strip() + expected, part)

    def check(self, holds: bool, value: object, part: str = "") -> None:
        if self.meant_for:
            self.note(value, part)
        elif holds:
            self.add(ResultStatus.PASSED, value, part)
        else:
            self.add(ResultStatus.FAILED, f"{value}; assumed: {self.assumed}", part)

    def note(self, value: object, part: str = "") -> None:
        self.add(ResultStatus.INFO, value, part)

    def add(self, status: ResultStatus, value: object, part: str = "") -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{render_line(status, f'{self.name}, {part}' if part else self.name, value)}\n")

    def keep(self, file: str, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
        write_atomic(self.path.parent / file, text)


_REPORT: pytest.StashKey[DeviceReport] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compile-gate")
    group.addoption("--gate-device", default=CUDA.name, metavar="DEVICE", help=DEVICE_FORMS)
    group.addoption("--gate-out", type=Path, default=Path(), metavar="DIRECTORY", help="a file for each test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu(judged): for CPUs too; ranges are a GPU's unless they are judged")
    config.addinivalue_line("markers", f"timeout(seconds): when the process is killed (default: {_LIMIT_S})")
    name = config.getoption("--gate-device")
    if get_kind(name) is CPU:
        return
    from gate.measure.device.choice import check_device  # noqa: PLC0415 - torch

    try:
        check_device(name)
    except GateError as error:
        raise pytest.UsageError(error.what) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kind = get_kind(config.getoption("--gate-device"))
    items[:] = [item for item in items if kind is CUDA or (kind is CPU and item.get_closest_marker("cpu"))]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the test's report, and let the kernel end it in time, wherever it is then."""
    limit, cpu = (item.get_closest_marker(name) for name in ("timeout", "cpu"))
    is_cpu = get_kind(item.config.getoption("--gate-device")) is CPU
    name = item.name.removeprefix("test_")
    item.stash[_REPORT] = DeviceReport(
        path=item.config.getoption("--gate-out") / f"{name}.txt",
        name=name,
        assumed=str(getattr(item, "obj", item).__doc__).strip().partition("\n")[0],
        meant_for="a GPU" if is_cpu and not (cpu and cpu.kwargs.get("judged")) else "",
    )
    signal.alarm(limit.args[0] if limit else _LIMIT_S)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> DeviceReport:
    device_report: DeviceReport = request.node.stash[_REPORT]
    return device_report


@pytest.fixture
def device_name(request: pytest.FixtureRequest) -> str:
    """The device, for tests whose own process must not open it: other processes count who is on it."""
    return str(request.config.getoption("--gate-device"))


@pytest.fixture
def device(device_name: str) -> Device:
    from gate.measure.device.choice import open_device  # noqa: PLC0415 - torch

    return open_device(device_name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    test_report, device_report = (yield), item.stash[_REPORT]
    if call.excinfo is not None:
        error = call.excinfo.value
        message = f"{type(error).__name__}: {error}".splitlines()[0][:_FOUND_CHARS]
        device_report.add(ResultStatus.FAILED, f"{message}; assumed: {device_report.assumed}")
    elif call.when == "call" and has_status(lines := read_lines(device_report.path), ResultStatus.FAILED):
        test_report.outcome, test_report.longrepr = "failed", "\n".join(lines)
    return test_report
