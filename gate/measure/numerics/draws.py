"""Random numbers of a forward: the same in eager, in float64 and compiled, so that errors can be compared.

A generator draws other numbers for float64 than for float32. What eager draws is therefore kept, and given
to the float64 reference in the same order. Inductor draws numbers of its own, unless it is asked to leave
that to the operators that eager calls.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.device.device import Device

Drawn = tuple[str, Any]  # an operator and what it returned
Generators = tuple[Any, ...]


class DrawsError(Exception):
    """The float64 reference does not draw what eager drew."""


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Keeps the random numbers that operators draw within."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.drawn: list[Drawn] = []

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's interface
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Call the operator, and copy what it returns if it draws."""
        returned = func(*args, **(kwargs or {}))
        if _draws(func):
            kept = tuple(one.clone() for one in returned) if isinstance(returned, tuple) else returned.clone()
            self.drawn.append((str(func), kept))
        return returned


class Replaying(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Gives operators that draw within what was recorded, in the type that they have here."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.left = list(drawn)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's interface
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Call the operator, unless it draws.

        Raises:
            DrawsError: Eager drew nothing more, or by another operator, or this one computes as well.
        """
        if not _draws(func):
            return func(*args, **(kwargs or {}))
        drawn: Any
        name, drawn = self.left.pop(0) if self.left else ("nothing", None)
        if name != str(func):
            raise DrawsError(f"it draws random numbers by {func}, and eager by {name}")
        if func is torch.ops.aten.native_dropout.default:
            value, share = args[0], args[1]
            mask = drawn[1].to(value.device)
            return value * mask / (1 - share), mask
        if not isinstance(drawn, torch.Tensor) or func is torch.ops.aten.rrelu_with_noise.default:
            raise DrawsError(f"{func} computes and draws random numbers at once")
        if func._schema.arguments[0].is_write:  # noqa: SLF001 - torch names it so
            return args[0].copy_(drawn)
        dtype = _WIDER.get(drawn.dtype, drawn.dtype)
        return drawn.to(args[0].device if args and isinstance(args[0], torch.Tensor) else drawn.device, dtype)


_WIDER = {
    **dict.fromkeys((torch.float32, torch.bfloat16, torch.float16), torch.float64),
    torch.complex64: torch.complex128,
}


def _draws(func: Any) -> bool:  # noqa: ANN401 - torch's operator
    return torch.Tag.nondeterministic_seeded in func.tags


@contextmanager
def replay(drawn: Sequence[Drawn] | None) -> Iterator[None]:
    """Draw within what was drawn before; ``None`` is of a forward that draws nothing.

    Raises:
        DrawsError: Other operators draw, or fewer.
    """
    if drawn is None:
        yield
        return
    with Replaying(drawn) as mode:
        yield
    if mode.left:
        raise DrawsError(f"it draws {len(mode.left)} random tensors fewer than eager")


def read_generators(device: Device) -> Generators:
    """Read where the global generators stand, torch's first: any draw moves one of them."""
    of_torch = [torch.get_rng_state()]
    if device.kind.is_gpu and torch.cuda.is_available():
        of_torch.append(torch.cuda.get_rng_state(device.name))
    numpy = sys.modules.get("numpy")
    of_numpy = repr(numpy.random.get_state(legacy=False)) if numpy else ""
    return tuple(bytes(state.tolist()) for state in of_torch), random.getstate(), of_numpy


def has_drawn_alike(one: Generators | None, other: Generators | None) -> bool:
    """Whether torch's generators stand where those of the other call do."""
    return bool(one and other and one[0] == other[0])


@contextmanager
def draw_as_eager() -> Iterator[None]:
    """Compile within so that random numbers are drawn by the operators that eager calls.

    Code that was compiled before is not used: no guard looks at this.
    """
    config = importlib.import_module("torch._inductor.config")
    torch.compiler.reset()
    try:
        with config.patch(fallback_random=True):
            yield
    finally:
        torch.compiler.reset()
