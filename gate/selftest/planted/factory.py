"""The factory that plants a fault: it builds a case's own workload and wraps its ``forward``.

A slower or less exact program could as well come from the compiler, so those faults ask at trace time
whether they are being compiled and leave eager alone.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree  # what is compiled goes through outputs as Dynamo knows it

from gate.measure.workload.build import load_factory
from gate.records.studies import FaultKind
from gate.selftest.planted import ops
from gate.workload import Workload

Before = Callable[[torch.Tensor], None]  # gets the ticket, see gate.selftest.planted.ops
After = Callable[[torch.Tensor, Any], Any]  # gets the ticket and the outputs, returns the outputs

HANG_S = 3600.0  # longer than any trial may take
RIGHT_EPS, WRONG_EPS = 1e-5, 1e-3  # two epsilons that models of one family differ by
_PID_S = 1e-12  # makes a duration too short to notice of a process id
# More states than Dynamo's recompile limit of 8, so that it is reached.
_TOKENS = "abcdefghijklmnopqrstuvwx"


def _pass(ticket: torch.Tensor) -> None:
    del ticket


def _keep(ticket: torch.Tensor, outputs: Any) -> Any:  # noqa: ANN401 - any model's
    del ticket
    return outputs


@dataclass(frozen=True, kw_only=True)
class Seam:
    """What is run before and after the original forward, within the same frame."""

    before: Before = _pass
    after: After = _keep


class Planted(torch.nn.Module):
    """A module with a seam around its forward."""

    ticket: torch.Tensor

    def __init__(self, inner: torch.nn.Module, seam: Seam) -> None:
        super().__init__()
        self.inner = inner
        self.before, self.after = seam.before, seam.after
        self.register_buffer("ticket", ops.make_ticket(), persistent=False)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        """Call the original forward within the seam."""
        self.before(self.ticket)
        return self.after(self.ticket, self.inner(*inputs, **kwargs))


def plant(*, factory: str, arguments: Mapping[str, object], fault: str, amount: float = 0.0) -> Workload:
    """Build the workload of ``factory`` with ``fault`` in its forward.

    ``amount`` is in seconds a call, seconds a compile or bytes, by the fault's kind.

    Raises:
        ValueError: There is no such fault.
    """
    workload = load_factory(factory)(**arguments)
    if not isinstance(workload, Workload):
        raise TypeError(f"{factory} returned {type(workload).__name__}, not a gate.Workload")
    seam = make_seam(FaultKind(fault), amount)
    if isinstance(workload.forward, torch.nn.Module):
        return replace(workload, forward=Planted(workload.forward, seam))
    return replace(workload, forward=_wrap_function(workload.forward, seam))


def make_seam(kind: FaultKind, amount: float) -> Seam:
    """Make what runs around the forward."""
    seams: Mapping[FaultKind, Callable[[], Seam]] = {
        FaultKind.NOTHING: Seam,
        FaultKind.SLOWDOWN: lambda: Seam(before=_burn(amount, compiled=True)),
        FaultKind.EAGER_FASTER: lambda: Seam(before=_burn(amount, compiled=False)),
        FaultKind.COLD_COMPILE: lambda: Seam(before=_slow_tracing(amount)),
        # Another constant in the graph of each process.
        FaultKind.LOST_CACHE: lambda: Seam(before=_burn(os.getpid() * _PID_S, compiled=True)),
        FaultKind.MEMORY: lambda: Seam(before=_reserve(int(amount)), after=_release),
        FaultKind.RECOMPILE: lambda: Seam(before=_turn_token()),
        FaultKind.CRASH: lambda: Seam(before=_end_eager(os.abort)),
        FaultKind.HANG: lambda: Seam(before=_end_eager(lambda: time.sleep(HANG_S))),
        FaultKind.GRAPH_BREAK: lambda: Seam(after=_break_graph),
        FaultKind.LOW_PRECISION: lambda: Seam(after=_change_floats(ops.coarsen)),
        FaultKind.WRONG_EPS: lambda: Seam(after=_change_floats(_normalize)),
        FaultKind.NOT_A_NUMBER: lambda: Seam(after=_change_floats(lambda value: value * math.nan)),
    }
    return seams[kind]()


def _wrap_function(forward: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    ticket = ops.make_ticket()  # moved with the workload, as all that a function closes over is

    def run_planted(*inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        seam.before(ticket)
        return seam.after(ticket, forward(*inputs, **kwargs))

    return run_planted


def _burn(seconds: float, *, compiled: bool) -> Before:
    """Slow compiled calls down, or eager ones."""
    ops.prepare_burn()

    def slow_down(ticket: torch.Tensor) -> None:
        if torch.compiler.is_compiling() == compiled:
            ops.burn(ticket, seconds)

    return slow_down


def _slow_tracing(seconds: float) -> Before:
    def toil(ticket: torch.Tensor) -> None:
        del ticket
        if torch.compiler.is_compiling():
            _toil(seconds)

    return toil


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator] # torch's
def _toil(seconds: float) -> int:
    """Do a compiler's work for so long: build graphs and generate their code, for nothing."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        graph = torch.fx.Graph()
        graph.output(graph.call_function(torch.relu, (graph.placeholder("value"),)))
        graph.lint()
        graph.python_code("self")
    return 0


def _reserve(size_bytes: int) -> Before:
    def reserve(ticket: torch.Tensor) -> None:
        if torch.compiler.is_compiling():
            ops.reserve(ticket, size_bytes)

    return reserve


def _release(ticket: torch.Tensor, outputs: Any) -> Any:  # noqa: ANN401 - any model's
    if torch.compiler.is_compiling():
        ops.release(ticket, [one for one in pytree.tree_leaves(outputs) if isinstance(one, torch.Tensor)])
    return outputs


def _turn_token() -> Before:
    """Read and change a string at every call: Dynamo guards its value, and generalizes only numbers."""
    wheel = {"token": _TOKENS}

    def turn(ticket: torch.Tensor) -> None:
        del ticket
        token = wheel["token"]
        wheel["token"] = token[1:] + token[:1]

    return turn


def _break_graph(ticket: torch.Tensor, outputs: Any) -> Any:  # noqa: ANN401 - any model's
    del ticket
    torch._dynamo.graph_break()  # noqa: SLF001 - documented, though its module is private
    return outputs


def _normalize(value: torch.Tensor) -> torch.Tensor:
    """Scale by the root of (mean square + right epsilon) / (mean square + wrong epsilon)."""
    size = value.float().square().mean()
    return value * torch.sqrt((size + RIGHT_EPS) / (size + WRONG_EPS)).to(value.dtype)


def _change_floats(change: Callable[[torch.Tensor], torch.Tensor]) -> After:
    """Change floating-point outputs, compiled ones only."""

    def change_outputs(ticket: torch.Tensor, outputs: Any) -> Any:  # noqa: ANN401 - any model's
        del ticket
        if not torch.compiler.is_compiling():
            return outputs
        floats = lambda one: isinstance(one, torch.Tensor) and one.is_floating_point()  # noqa: E731 - one use
        return pytree.tree_map_only(floats, change, outputs)

    return change_outputs


def _end_eager(end: Callable[[], object]) -> Before:
    """End the process, or let it hang, in an eager call: the first one."""

    def end_call(ticket: torch.Tensor) -> None:
        del ticket
        if not torch.compiler.is_compiling():
            end()

    return end_call
