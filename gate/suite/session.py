"""What one pytest session measures with: settings, the timer, imports, and who else watches Python.

Torch-free: importing this loads no torch, :func:`import_torch` does.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gate.errors import UsageError
from gate.measure.process.logbook import Logbook
from gate.measure.process.turns import Turns
from gate.records import Case
from gate.records.protocol import Sampling, WorkerRequest, WorkerRole

if TYPE_CHECKING:
    from gate.project.config import Config


@dataclass(frozen=True, kw_only=True)
class SuiteSession:
    """The settings of a session. ``request`` is None outside a trial."""

    device: str
    threads: int
    sampling: Sampling
    directory: str
    logbook: Logbook
    list_cases: Callable[[], tuple[Case, ...]]  # what the suite's own test is run for
    request: WorkerRequest | None = None
    source: str = ""  # of the settings, for the header
    turns: Turns | None = None  # in one arm of a pair; opened before a project may forbid sockets
    opened: dict[str, Any] = field(default_factory=dict)  # the device, once something needs it


SESSION: pytest.StashKey[SuiteSession] = pytest.StashKey()


def make_trial_session(request: WorkerRequest) -> SuiteSession:
    """Make the session of the trial that a request asks for."""
    case = request.case
    return SuiteSession(
        device=request.device,
        threads=request.threads,
        sampling=request.sampling,
        directory=request.directory,
        logbook=Logbook(Path(request.result), request.role),
        request=request,
        turns=Turns(request.channel) if request.channel >= 0 else None,
        list_cases=lambda: (case,) if case is not None else (),
    )


def make_plain_session(select: str) -> SuiteSession:
    """Make the session of a person who runs the suite, from ``gate.yml``; no ``select``: what that selects.

    Factories are imported from the directory of ``gate.yml``, as in a trial.

    Raises:
        FileError: ``gate.yml`` cannot be used.
    """
    # A trial needs no configuration, and not its parsers.
    from gate.project.config import apply_options, load_config  # noqa: PLC0415

    config = apply_options(load_config(None), select=select or None)
    directory = str(config.directory.resolve())
    if directory not in sys.path:
        sys.path.append(directory)  # last: measured code must not shadow the gate
    return SuiteSession(
        device=config.device,
        threads=config.threads,
        sampling=config.sampling,
        directory=directory,
        source=config.source if config.is_found else f"no {config.source}, so the reference models",
        logbook=Logbook(None, WorkerRole.COLD),
        list_cases=lambda: list_factory_cases(config),
    )


def list_factory_cases(config: Config) -> tuple[Case, ...]:
    """List the selected registry models; tests of one's own are run by their path.

    Raises:
        UsageError: The selection holds none.
    """
    from gate.project.registry import choose_cases, load_cases  # noqa: PLC0415 - see make_plain_session

    choice = choose_cases(config, load_cases(config))
    built = tuple(case for case in choice.cases if case.factory)
    if not built:
        fix = "Run your own tests by their path; the suite runs the registry's models."
        raise UsageError(f"{choice.selection!r} selects tests of your own only", fix)
    return built


@contextmanager
def tolerate_warnings() -> Iterator[None]:
    """Show warnings within: a project that turns them into errors means its own, not torch's and ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


class SynchronizedTimer:
    """Waits for the device, then reads the clock; seconds. pytest-benchmark shows it by its name."""

    __name__ = "synchronized_perf_counter"

    def __init__(self) -> None:
        self.synchronize: Callable[[], None] | None = None

    def __call__(self) -> float:
        """Read the clock; without a device to wait for, at once."""
        if self.synchronize is not None:
            self.synchronize()
        return time.perf_counter()


TIMER = SynchronizedTimer()


_TOOL_IDS = range(6)  # of sys.monitoring


def list_tracers() -> frozenset[str]:
    """Name what watches: `coverage (sys.settrace)`."""
    hooks = {
        "sys.settrace": sys.gettrace() or threading.gettrace(),
        "sys.setprofile": sys.getprofile() or threading.getprofile(),
    }
    found = {f"{_name_package(hook)} ({way})" for way, hook in hooks.items() if hook is not None}
    if sys.version_info >= (3, 12):
        tools = filter(None, map(sys.monitoring.get_tool, _TOOL_IDS))
        found |= {f"{tool} (sys.monitoring)" for tool in tools}
    if tracemalloc.is_tracing():
        found.add("tracemalloc")
    return frozenset(found)


def refuse_tracers(before: frozenset[str]) -> None:
    """Refuse to measure beside what has begun to watch since ``before``.

    Raises:
        UsageError: Something has: its time would be taken for the model's, and its calls for the compiler's.
    """
    if begun := sorted(list_tracers() - before):
        raise UsageError(
            f"{', '.join(begun)} traces what is measured: times and calls would be its own; "
            "start it in no conftest.py, fixture or `args` of gate.yml",
            "Start it in no conftest.py, fixture or `args` of gate.yml.",
        )


def _name_package(hook: object) -> str:
    """Name the package that a hook comes from: a function's, or a type's as that of coverage's tracer."""
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0]


# What a first compile would import otherwise: importing is not compiling.
_MODULES = ("gate.suite.machinery", "torch._dynamo", "torch._inductor.compile_fx")
# The same, of which another torch may lack some: then its first compile imports what it has instead.
_OF_SOME = (
    "torch.utils.cpp_extension",  # with setuptools, the longest
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.wrapper_fxir",
    "torch.export._trace",
)


def import_torch() -> None:
    """Import torch, its compiler, and what in the suite needs them; hash torch's and Triton's own files."""
    for name in _MODULES:
        importlib.import_module(name)
    with warnings.catch_warnings(action="ignore"):  # of modules that were not asked for by name
        for name in _OF_SOME:
            with suppress(ImportError):
                importlib.import_module(name)
    _hash_sources()


def _hash_sources() -> None:
    """Let torch hash its sources, 2,400 files, and Triton's library, for the keys of its caches.

    It does that once a process. In a first compile it is a second that says nothing of the model, and of
    loading a small one from its caches more than half: 0.35 s of it only where triton is installed, on a
    processor too.
    """
    codecache = importlib.import_module("torch._inductor.codecache")
    for name in ("torch_key", "triton_key"):
        hash_sources = getattr(codecache, name, None)
        if callable(hash_sources):
            hash_sources()
