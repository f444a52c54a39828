"""What holds for every test."""

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
    """Let tools/run_tests.py choose what is covered, what runs on all cores and what runs alone."""
    parser.addoption(
        "--part", choices=PARTS, default="all", help="tests of the pure packages, others, or those alone"
    )


def pytest_configure() -> None:
    """Listen to Ctrl-C, which the tests send, also as a shell's background job, which would not.

    Where the gate could keep no scratch, say so once instead of failing test by test.
    """
    try:
        get_scratch_root()
    except MachineError as error:
        pytest.exit(f"{error.what}. {error.fix}", returncode=pytest.ExitCode.USAGE_ERROR)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file that cannot hold a test of the chosen part: to import them all takes 15 seconds."""
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
    """Leave out the other part, and begin with the files that compile: they take the longest."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    part = config.getoption("--part")
    if part == "all":
        return
    chosen = [item for item in items if find_part(item) == part]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def find_part(item: pytest.Item) -> str:
    """Find the part of tools/run_tests.py that runs a test."""
    if item.get_closest_marker("alone") is not None:
        return "alone"
    if item.get_closest_marker("untraced") is not None:
        return "shared"
    return "pure" if any(item.path.is_relative_to(place) for place in PURE) else "shared"


@pytest.fixture(scope="session", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give this process's commands locks of their own: they wait for no other test and no other user."""
    place = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(place))
        yield place


@pytest.fixture(scope="session", autouse=True)
def compiler_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let all tests and their workers find a C++ compiler that compiles nothing twice."""
    own, real = tmp_path_factory.getbasetemp(), shutil.which("g++")
    if os.environ.get("PYTEST_XDIST_WORKER"):
        own = own.parent  # shared by the workers
    place = (
        Path(os.environ.get("COMPILE_ONCE") or own) / "compiler"
    )  # tools/run_tests.py names it for all parts
    (place / "products").mkdir(parents=True, exist_ok=True)
    if real is None:
        yield place
        return
    command = (sys.executable, "-I", "-S", compile_once.__file__, place / "products", real)
    pending = place / f"{os.getpid()}"
    pending.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n', encoding="utf-8")
    pending.chmod(0o755)
    pending.rename(place / "g++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(place), prepend=os.pathsep)
        yield place


@pytest.fixture
def real_compiler(compiler_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiling take the time that it takes, where that is judged."""
    found = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in found if one != str(compiler_place)))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Let tests that call torch themselves compute on one thread.

    Beside other tests two of them wait for each other, busily: a small call takes milliseconds.
    """
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
