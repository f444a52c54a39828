"""What holds for every test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gate.lab.lock_place import VARIABLE
from gate.lab.toolchain_place import CACHE_VARIABLE

PARTS = ("all", "shared", "alone")

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("gate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let tools/run_tests.py choose what runs on all cores and what has the machine to itself."""
    parser.addoption(
        "--part", choices=PARTS, default="all", help="tests that share the machine, or those alone"
    )


def pytest_configure() -> None:
    """Listen to Ctrl-C, which the tests send, also as a shell's background job, which would not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other part, and begin with the files that compile: they take the longest."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    part = config.getoption("--part")
    if part == "all":
        return
    chosen = [item for item in items if (item.get_closest_marker("alone") is not None) == (part == "alone")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


@pytest.fixture(scope="session", autouse=True)
def toolchain_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Prime the toolchain once for all runs of the session; the user's own is neither read nor written."""
    place = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        place = place.parent  # shared by the workers
    place /= "toolchain"
    place.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(place))
        yield place


@pytest.fixture(scope="session", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give this process's commands locks of their own: they wait for no other test and no other user."""
    place = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(place))
        yield place
