"""What plants a fault in a workload: it builds a case's own workload and wraps its ``forward``; workers only.

A slower or less exact program could as well come from the compiler, so those faults ask at trace time
whether they are being compiled and leave eager alone.

The operators at the end cost a known amount, and no compiler can fuse, move or remove them. They declare that
they change a *ticket*, a one-element tensor that the planted program keeps: a graph input that is written to
must be kept, needs no copy of the data, and orders the operators among themselves. Their graphs are cached
like any other.
"""

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch.utils import _pytree as pytree  # what is compiled goes through outputs as Dynamo knows it

from gate.measure.workload.build import load_factory
from gate.records.studies import FaultKind
from gate.workload import Workload

Before = Callable[[torch.Tensor], None]  # gets the ticket, see make_ticket
After = Callable[[torch.Tensor, Any], Any]  # gets the ticket and the outputs, returns the outputs

HANG_S = 3600.0  # longer than any trial may take
RIGHT_EPS, WRONG_EPS = 1e-5, 1e-3  # two epsilons that models of one family differ by
_PID_S = 1e-12  # makes a duration too short to notice of a process id
# More states than Dynamo's recompile limit of 8, so that it is reached.
_TOKENS = "abcdefghijklmnopqrstuvwx"
NAMESPACE = "gate_faults"

# Reduced precision means the next floating-point type with fewer bits of mantissa and the same range.
COARSER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.bfloat16: torch.float8_e5m2,
    torch.float16: torch.float8_e5m2,
}
_OVERHEAD_CALLS = 200  # of some microseconds each
_SLEEP_CYCLES = 20_000_000  # some ten milliseconds: the launch does not count any more
_SETTLE_S = 0.2  # of work until the clock of an idle device has risen
_RATES = 5  # the median leaves out two disturbances
_MS_PER_S = 1e3

# Lives as long as the process. Any: torch does not say what its methods take.
_library: Any = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_held: list[torch.Tensor] = []


@dataclass(frozen=True, kw_only=True)
class Seam:
    """What is run before and after the original forward, within the same frame."""

    before: Before = lambda _ticket: None
    after: After = lambda _ticket, outputs: outputs


class Planted(torch.nn.Module):
    """A module with a seam around its forward."""

    ticket: torch.Tensor

    def __init__(self, inner: torch.nn.Module, seam: Seam) -> None:
        super().__init__()
        self.inner = inner
        self.before, self.after = seam.before, seam.after
        self.register_buffer("ticket", make_ticket(), persistent=False)

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
        FaultKind.MEMORY: lambda: Seam(before=_hold_memory(int(amount)), after=_free_memory),
        FaultKind.RECOMPILE: lambda: Seam(before=_turn_token()),
        FaultKind.CRASH: lambda: Seam(before=_end_eager(os.abort)),
        FaultKind.HANG: lambda: Seam(before=_end_eager(lambda: time.sleep(HANG_S))),
        FaultKind.GRAPH_BREAK: lambda: Seam(after=_break_graph),
        FaultKind.LOW_PRECISION: lambda: Seam(after=_change_floats(coarsen)),
        FaultKind.WRONG_EPS: lambda: Seam(after=_change_floats(_normalize)),
        FaultKind.NOT_A_NUMBER: lambda: Seam(after=_change_floats(lambda value: value * math.nan)),
    }
    return seams[kind]()


def _wrap_function(forward: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    ticket = make_ticket()  # moved with the workload, as all that a function closes over is

    def run_planted(*inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        seam.before(ticket)
        return seam.after(ticket, forward(*inputs, **kwargs))

    return run_planted


def _burn(seconds: float, *, compiled: bool) -> Before:
    prepare_burn()

    def slow_down(ticket: torch.Tensor) -> None:
        if torch.compiler.is_compiling() == compiled:
            burn(ticket, seconds)

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


def _hold_memory(size_bytes: int) -> Before:
    """Allocate and touch memory on the ticket's device, until the outputs are computed."""

    def hold(ticket: torch.Tensor) -> None:
        if torch.compiler.is_compiling():
            torch.ops.gate_faults.reserve(ticket, size_bytes)

    return hold


def _free_memory(ticket: torch.Tensor, outputs: Any) -> Any:  # noqa: ANN401 - any model's
    if torch.compiler.is_compiling():
        leaves = pytree.tree_leaves(outputs)
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        torch.ops.gate_faults.release(ticket, tensors)
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
        floats = lambda leaf: isinstance(leaf, torch.Tensor) and leaf.is_floating_point()  # noqa: E731 - one use
        return pytree.tree_map_only(floats, change, outputs)

    return change_outputs


def _end_eager(end: Callable[[], object]) -> Before:
    """End the process, or let it hang, in an eager call: the first one."""

    def end_call(ticket: torch.Tensor) -> None:
        del ticket
        if not torch.compiler.is_compiling():
            end()

    return end_call


def make_ticket() -> torch.Tensor:
    """Make a ticket: an integer, so that no cast to the case's dtype touches it."""
    return torch.zeros(1, dtype=torch.int64)


def burn(ticket: torch.Tensor, seconds: float) -> None:
    """Keep the ticket's device busy for ``seconds``, what calling an operator costs included."""
    torch.ops.gate_faults.burn(ticket, seconds)


def coarsen(value: torch.Tensor) -> torch.Tensor:
    """Round to the next coarser type and back; a cast there and back alone would be optimized away."""
    result: torch.Tensor = torch.ops.gate_faults.coarsen(value)
    return result


@lru_cache(maxsize=1)
def measure_overhead_s() -> float:
    """Measure what one :func:`burn` of zero seconds takes.

    It is taken off within the operator: off its argument, it would put another constant into the graph
    of every process, and no cache would hold.
    """
    ticket, times_s = make_ticket(), []
    for _ in range(_OVERHEAD_CALLS):
        begun = time.perf_counter()
        burn(ticket, 0.0)
        times_s.append(time.perf_counter() - begun)
    return statistics.median(times_s)


def prepare_burn() -> None:
    """Measure what :func:`burn` goes by, now: within a timed call it would be part of the fault."""
    measure_overhead_s()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call] # torch's
        measure_cycles_per_s()


@lru_cache(maxsize=1)
def measure_cycles_per_s() -> float:
    """Measure the clock that ``torch.cuda._sleep`` counts, once the device has left its idle clock.

    An idle card runs at a fifth of its clock for a while, and the first launch loads the kernel as well.
    """
    slept_s = 0.0
    while slept_s < _SETTLE_S:
        slept_s += _time_sleep()
    return _SLEEP_CYCLES / statistics.median([_time_sleep() for _ in range(_RATES)])


def _time_sleep() -> float:
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
    start.record()
    torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call] # noqa: SLF001 - no public kernel sleeps
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / _MS_PER_S


def _burn_cpu(ticket: torch.Tensor, seconds: float) -> None:
    del ticket
    if not seconds:
        return
    end = time.perf_counter() + seconds - measure_overhead_s()
    while time.perf_counter() < end:
        pass


def _burn_cuda(ticket: torch.Tensor, seconds: float) -> None:
    del ticket
    torch.cuda._sleep(int(seconds * measure_cycles_per_s()))  # type: ignore[no-untyped-call] # noqa: SLF001 - see above


def _reserve(ticket: torch.Tensor, size_bytes: int) -> None:
    _held.append(torch.ones(size_bytes, dtype=torch.uint8, device=ticket.device))


def _release(ticket: torch.Tensor, outputs: Sequence[torch.Tensor]) -> None:
    del ticket, outputs
    _held.clear()


def _coarsen(value: torch.Tensor) -> torch.Tensor:
    coarse = COARSER.get(value.dtype)
    return value.clone() if coarse is None else value.to(coarse).to(value.dtype)


def _pass_gradient(context: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - torch's
    del context
    return gradient


def _return_nothing(*arguments: object) -> None:
    del arguments


def _define() -> None:
    _library.define("burn(Tensor(a!) ticket, float seconds) -> ()")
    _library.define("reserve(Tensor(a!) ticket, int size_bytes) -> ()")
    _library.define("release(Tensor(a!) ticket, Tensor[] outputs) -> ()")
    _library.define("coarsen(Tensor value) -> Tensor")
    _library.impl("burn", _burn_cpu, "CPU")
    _library.impl("burn", _burn_cuda, "CUDA")
    for device in ("CPU", "CUDA"):
        _library.impl("reserve", _reserve, device)
        _library.impl("release", _release, device)
        _library.impl("coarsen", _coarsen, device)
    for name in ("burn", "reserve", "release"):
        torch.library.register_fake(f"{NAMESPACE}::{name}", _return_nothing, lib=_library)
    torch.library.register_fake(f"{NAMESPACE}::coarsen", torch.empty_like, lib=_library)
    torch.library.register_autograd(f"{NAMESPACE}::coarsen", _pass_gradient, lib=_library)


_define()
