"""What float64 has in common with eager: a model's types, raised, and the same random numbers.

A generator draws other numbers for float64 than for float32. So what eager draws is kept, and given to the
float64 reference in the same order.
"""

import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.device.device import Device

_RAISED = {
    **dict.fromkeys((torch.float32, torch.bfloat16, torch.float16), torch.float64),
    torch.complex64: torch.complex128,
}
_CASTS = frozenset((torch.Tensor.float, torch.Tensor.bfloat16, torch.Tensor.half))


_FLAT = 2  # the dimensions of an operand that has its groups one after the other


def multiply_groups(
    left: torch.Tensor, right: torch.Tensor, offs: torch.Tensor | None = None, **options: object
) -> torch.Tensor:
    """Multiply matrices group by group, as torch's own operator does that has no float64.

    Shapes are [n, k] and [groups, k, m], [groups, n, k] and [k, m], or [n, k] and [k, m]; ``offs`` are the
    groups' ends in the joined dimension. What is beyond is 0.

    Raises:
        TypeError: There is a bias.
    """
    if options.get("bias") is not None:
        raise TypeError("no bias of groups in float64")  # torch's own operator has none either, up to 2.13
    if offs is None:
        return torch.bmm(left, right)
    ends = offs.tolist()
    spans = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if left.dim() == right.dim() == _FLAT:
        return torch.stack([left[:, span] @ right[span] for span in spans])
    if left.dim() == _FLAT:
        parts = [left[span] @ matrix for span, matrix in zip(spans, right, strict=True)]
        return torch.cat([*parts, left.new_zeros(left.shape[0] - ends[-1], right.shape[-1])])
    parts = [matrix @ right[:, span] for span, matrix in zip(spans, left, strict=True)]
    return torch.cat([*parts, left.new_zeros(left.shape[1], right.shape[1] - ends[-1])], dim=1)


_GROUPED = (torch._grouped_mm, torch.nn.functional.grouped_mm)  # noqa: SLF001 - what the public one was before


class Float64Mode(TorchFunctionMode):
    """Turns casts to lower floating-point types into casts to float64.

    Models cast on purpose (a norm or a softmax in float32): in the reference those stay exact too.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's
        if func in _GROUPED:
            return multiply_groups(*args, **(kwargs or {}))
        raised = {name: _raise_dtype(value) for name, value in (kwargs or {}).items()}
        if func in _CASTS:
            func = torch.Tensor.double
        return func(*map(_raise_dtype, args), **raised)


@contextmanager
def in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Float64Mode():
            yield
    finally:
        torch.set_default_dtype(before)


def _raise_dtype(value: Any) -> Any:  # noqa: ANN401 - any argument
    return _RAISED.get(value, value) if isinstance(value, torch.dtype) else value


Drawn = tuple[str, Any]  # an operator and what it returned
Generators = tuple[Any, ...]


class DrawsError(Exception):
    """The float64 reference does not draw what eager drew."""


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.drawn: list[Drawn] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's
        returned = func(*args, **(kwargs or {}))
        if _draws(func):
            kept = (
                tuple(tensor.clone() for tensor in returned)
                if isinstance(returned, tuple)
                else returned.clone()
            )
            self.drawn.append((str(func), kept))
        return returned


class Replaying(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Gives operators that draw within what was recorded, in the type that they have here."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.left = list(drawn)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's
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
        dtype = _RAISED.get(drawn.dtype, drawn.dtype)
        return drawn.to(args[0].device if args and isinstance(args[0], torch.Tensor) else drawn.device, dtype)


def _draws(func: Any) -> bool:  # noqa: ANN401 - torch's operator
    return torch.Tag.nondeterministic_seeded in func.tags


@contextmanager
def replay(drawn: Sequence[Drawn] | None) -> Iterator[None]:
    """Draw within what was drawn before; ``None`` stands for a forward that draws nothing.

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
    """Read the states of the global generators, torch's first: any draw changes one of them."""
    of_torch = [torch.get_rng_state()]
    if device.kind.is_gpu and torch.cuda.is_available():
        of_torch.append(torch.cuda.get_rng_state(device.name))
    numpy = sys.modules.get("numpy")
    of_numpy = pickle.dumps(numpy.random.get_state(legacy=False)) if numpy else b""
    return tuple(bytes(state.numpy()) for state in of_torch), random.getstate(), of_numpy


@dataclass(frozen=True, kw_only=True, slots=True)
class Draws:
    before: Generators
    forward: Generators
    end: Generators


def draws_alike(left: Sequence[Draws], right: Sequence[Draws]) -> bool:
    return [call.forward[0] for call in left] == [call.forward[0] for call in right]


def draws_nothing(calls: Sequence[Draws]) -> bool:
    return all(call.forward[0] == call.before[0] for call in calls)
