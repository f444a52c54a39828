"""Operators that cost a known amount and that no compiler can fuse, move or remove.

They declare that they change a *ticket*, a one-element tensor that the planted program keeps: a graph
input that is written to must be kept, needs no copy of the data, and orders the operators among
themselves. Their graphs are cached like any other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

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


def make_ticket() -> torch.Tensor:
    """Make a ticket: an integer, so that no cast to the case's dtype touches it."""
    return torch.zeros(1, dtype=torch.int64)


def burn(ticket: torch.Tensor, seconds: float) -> None:
    """Keep the ticket's device busy for ``seconds``, what calling an operator costs included."""
    torch.ops.gate_faults.burn(ticket, seconds)


def reserve(ticket: torch.Tensor, size_bytes: int) -> None:
    """Allocate and touch ``size_bytes`` on the ticket's device until :func:`release`."""
    torch.ops.gate_faults.reserve(ticket, size_bytes)


def release(ticket: torch.Tensor, outputs: Sequence[torch.Tensor]) -> None:
    """Free what :func:`reserve` took, once ``outputs`` are computed."""
    torch.ops.gate_faults.release(ticket, [output.detach() for output in outputs])


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
