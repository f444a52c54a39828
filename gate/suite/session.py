"""What a pytest session measures with, and its timer; torch-free, since plugins are loaded before torch."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from gate.measure.logbook import Logbook
from gate.measure.turns import Turns
from gate.records.cases import Case
from gate.records.protocol import WorkerRequest


@dataclass(frozen=True, kw_only=True)
class SuiteSession:
    request: WorkerRequest
    logbook: Logbook
    list_cases: Callable[[], tuple[Case, ...]]  # what the suite's own test is run for
    source: str = ""  # of the settings, for the header
    turns: Turns | None = None  # in one arm of a pair; opened before a project may forbid sockets


SESSION: pytest.StashKey[SuiteSession] = pytest.StashKey()


class SynchronizedTimer:
    """Waits for the device, then reads the clock in seconds. pytest-benchmark shows its name."""

    __name__ = "synchronized_perf_counter"

    def __init__(self) -> None:
        self.synchronize: Callable[[], None] | None = None

    def __call__(self) -> float:
        if self.synchronize is not None:
            self.synchronize()
        return time.perf_counter()


TIMER = SynchronizedTimer()


@contextmanager
def tolerate_warnings() -> Iterator[None]:
    """Show warnings within: a project that turns them into errors means its own, not torch's and ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield
