"""Options and fixtures of all tests."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gate.errors import MachineError
from gate.lab.host.locks import VARIABLE
from gate.lab.host.scratch import get_scratch_root
from tests import compile_once

PARTS = ("all", "pure", "shared", "alone")
PURE = tuple(Path(__file__).parent / "unit" / name for name in ("decide", "check", "calibrate", "bisect"))

# How long an example takes says how busy the machine is, and nothing about the code. The same examples each
# time, so that a red CI is the change's doing: --hypothesis-profile=default draws others.
settings.register_profile(
    "gate", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let tools/run_tests.py choose a part."""
    parser.addoption(
        "--part", choices=PARTS, default="all", help="tests of the pure packages, others, or those alone"
    )


def pytest_configure() -> None:
    """Let Ctrl-C interrupt tests in a background job too, and exit if there is no scratch directory."""
    try:
        get_scratch_root()
    except MachineError as error:
        pytest.exit(f"{error.what}. {error.fix}", returncode=pytest.ExitCode.USAGE_ERROR)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import only files that can hold a test of the chosen part: to import all takes 15 seconds."""
    part = config.getoption("--part")
    if part == "all" or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    is_pure = any(map(collection_path.is_relative_to, PURE))
    holds = {
        "pure": is_pure,
        "shared": not is_pure or "mark.untraced" in text,
        "alone": "mark.alone" in text,
    }
    return None if holds[part] else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other parts, and begin with files that compile, which take longest."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    part = config.getoption("--part")
    if part == "all":
        return
    config.hook.pytest_deselected(items=[item for item in items if name_part(item) != part])
    items[:] = [item for item in items if name_part(item) == part]


def name_part(item: pytest.Item) -> str:
    """The part of tools/run_tests.py that runs a test."""
    if item.get_closest_marker("alone") is not None:
        return "alone"
    if item.get_closest_marker("untraced") is not None:
        return "shared"
    return "pure" if any(item.path.is_relative_to(directory) for directory in PURE) else "shared"


@pytest.fixture(scope="session", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give this process's commands their own locks, so that they wait for no other test or user."""
    directory = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(directory))
        yield directory


@pytest.fixture(scope="session", autouse=True)
def compiler_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let all tests and their workers use a C++ compiler that compiles nothing twice."""
    base, real = tmp_path_factory.getbasetemp(), shutil.which("g++")
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # shared by the workers
    # tools/run_tests.py names one directory for all parts.
    directory = Path(os.environ.get("COMPILE_ONCE") or base) / "compiler"
    (directory / "products").mkdir(parents=True, exist_ok=True)
    if real is None:
        yield directory
        return
    command = (sys.executable, "-I", "-S", compile_once.__file__, directory / "products", real)
    pending = directory / f"{os.getpid()}"
    pending.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n', encoding="utf-8")
    pending.chmod(0o755)
    pending.rename(directory / "g++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(directory), prepend=os.pathsep)
        yield directory


@pytest.fixture
def real_compiler(compiler_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiling take its real time."""
    paths = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(path for path in paths if path != str(compiler_path)))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Let tests that call torch themselves compute on one thread.

    Two tests' threads wait for each other busily, so that a small call takes milliseconds.
    """
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
