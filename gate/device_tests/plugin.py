"""The pytest plugin of the tests of a device: ``pytest -p gate.device_tests.plugin --gate-device cuda``.

Torch is imported where a device is asked for: seconds for a test that asks for none.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gate.device_tests.report import DeviceReport, ResultStatus, has_status, read_lines
from gate.devices import CPU, CUDA, DEVICE_FORMS, find_kind
from gate.errors import GateError

if TYPE_CHECKING:
    from gate.measure.device.device import Device

_LIMIT_S = 120
_FOUND_CHARS = 300
_REPORT: pytest.StashKey[DeviceReport] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: which device, and the directory for what is seen there."""
    group = parser.getgroup("compile-gate")
    group.addoption("--gate-device", default=CUDA.name, metavar="DEVICE", help=DEVICE_FORMS)
    group.addoption("--gate-out", type=Path, default=Path(), metavar="DIRECTORY", help="a file for each test")


def pytest_configure(config: pytest.Config) -> None:
    """Add the markers; refuse a device that is not there."""
    config.addinivalue_line("markers", "cpu(judged): for CPUs too; ranges are a GPU's unless they are judged")
    config.addinivalue_line("markers", f"timeout(seconds): when the process is killed (default: {_LIMIT_S})")
    name = config.getoption("--gate-device")
    if find_kind(name) is CPU:
        return
    from gate.measure.device.cpu import check_device  # noqa: PLC0415 - torch

    try:
        check_device(name)
    except GateError as error:
        raise pytest.UsageError(error.what) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests for this kind of device."""
    kind = find_kind(config.getoption("--gate-device"))
    items[:] = [one for one in items if kind is CUDA or (kind is CPU and one.get_closest_marker("cpu"))]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the test's report, and let the kernel end it in time, wherever it is then."""
    limit, cpu = (item.get_closest_marker(name) for name in ("timeout", "cpu"))
    is_cpu = find_kind(item.config.getoption("--gate-device")) is CPU
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
    """Takes what the test finds."""
    own: DeviceReport = request.node.stash[_REPORT]
    return own


@pytest.fixture
def device_name(request: pytest.FixtureRequest) -> str:
    """The device, for tests whose own process must not open it: other processes count who is on it."""
    return str(request.config.getoption("--gate-device"))


@pytest.fixture
def device(device_name: str) -> Device:
    """The opened device."""
    from gate.measure.device.cpu import open_device  # noqa: PLC0415 - torch

    return open_device(device_name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report an exception, and let pytest count what was reported."""
    found, own = (yield), item.stash[_REPORT]
    if call.excinfo is not None:
        error = call.excinfo.value
        message = f"{type(error).__name__}: {error}".splitlines()[0][:_FOUND_CHARS]
        own.add(ResultStatus.FAILED, f"{message}; assumed: {own.assumed}")
    elif call.when == "call" and has_status(lines := read_lines(own.path), ResultStatus.FAILED):
        found.outcome, found.longrepr = "failed", "\n".join(lines)
    return found
