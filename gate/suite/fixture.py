"""The ``compile_benchmark`` fixture: what registry models and users' own tests are measured by.

Torch-free: torch is imported where the fixture is used.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gate.measure.logbook import Logbook
from gate.measure.turns import Turns
from gate.records.cases import Case, Task
from gate.records.protocol import WorkerRequest
from gate.workload import Workload

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class SuiteSession:
    """What one pytest session measures with; outside a trial ``request`` is a person's, and has no case."""

    request: WorkerRequest
    logbook: Logbook
    list_cases: Callable[[], tuple[Case, ...]]  # what the suite's own test is run for
    source: str = ""  # of the settings, for the header
    turns: Turns | None = None  # in one arm of a pair; opened before a project may forbid sockets


SESSION: pytest.StashKey[SuiteSession] = pytest.StashKey()


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


@contextmanager
def tolerate_warnings() -> Iterator[None]:
    """Show warnings within: a project that turns them into errors means its own, not torch's and ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


class CompileBenchmark:
    """Measures one workload, eager and compiled. Once a test."""

    def __init__(self, session: SuiteSession, request: pytest.FixtureRequest, benchmark: Any) -> None:  # noqa: ANN401 - pytest-benchmark's, untyped
        """Import torch and seed it, so that the test builds the same weights each time."""
        with tolerate_warnings():
            from gate.suite import machinery  # noqa: PLC0415 - torch

            self._device = machinery.open_session_device(session.request)
        self._machinery = machinery
        self._session = session
        self._node = request.node.nodeid
        # pytest-benchmark's list of rows has no public name.
        rows = request.config._benchmarksession.benchmarks  # type: ignore[attr-defined] # noqa: SLF001
        self._timer = machinery.BlockTimer(benchmark, rows, session.turns.wait if session.turns else None)

    def __call__(
        self,
        forward: Callable[..., Any],
        inputs: Any,  # noqa: ANN401 - any model's
        *,
        kwargs: Mapping[str, Any] | None = None,
        loss: Callable[[Any], torch.Tensor] | None = None,
        optimizer: Callable[[Any], torch.optim.Optimizer] | None = None,
    ) -> None:
        """Measure ``forward``, a module or a function, called with ``inputs``.

        Args:
            forward: It is moved to the gate's device, and a module set to ``eval()``, or to
                ``train()`` when a training step is measured.
            inputs: A tuple of arguments, or the only one.
            kwargs: Keyword arguments.
            loss: Maps the output to a scalar and makes a training step of the call.
            optimizer: Gets the parameters and returns a ``torch.optim.Optimizer``.
        """
        workload = Workload(
            forward=forward,
            inputs=inputs if isinstance(inputs, tuple) else (inputs,),
            kwargs=kwargs or {},
            loss=loss,
            optimizer=optimizer,
        )
        self.measure(self._make_case(workload), workload)

    def measure(self, case: Case, workload: Workload | None = None) -> None:
        """Measure a case; without a workload, what its factory builds."""
        self._machinery.measure_case(self._session, case, workload, self._device, self._timer)

    def _make_case(self, workload: Workload) -> Case:
        """Make the case of a user's own test: the planned one in a trial, else one that fits."""
        return self._session.request.case or Case(
            id=self._node,
            model=self._node,
            node=self._node,
            task=Task.TRAINING if workload.loss else Task.INFERENCE,
            dtype=self._machinery.find_dtype(workload),
        )
