"""The ``compile_benchmark`` fixture: what registry models and users' own tests are measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from gate.records import Case, Task
from gate.suite.session import SuiteSession, tolerate_warnings
from gate.workload import Workload

if TYPE_CHECKING:
    import torch


class CompileBenchmark:
    """Measures one workload, eager and compiled. Once a test."""

    def __init__(self, session: SuiteSession, request: pytest.FixtureRequest, benchmark: Any) -> None:  # noqa: ANN401 - pytest-benchmark's, untyped
        """Import torch and seed it, so that the test builds the same weights each time."""
        with tolerate_warnings():
            from gate.suite import machinery  # noqa: PLC0415 - torch

            machinery.open_session_device(session)
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
        self._machinery.measure_case(self._session, case, workload, self._timer)

    def _make_case(self, workload: Workload) -> Case:
        """Make the case of a user's own test: the planned one in a trial, else one that fits."""
        request = self._session.request
        if request is not None and request.case is not None:
            return request.case
        return Case(
            id=self._node,
            model=self._node,
            node=self._node,
            task=Task.TRAINING if workload.loss else Task.INFERENCE,
            dtype=self._machinery.find_dtype(workload),
        )
