"""Random numbers: what eager draws is recorded, and replayed in float64."""

import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.device.device import Device
from gate.measure.numerics.exact import RAISED

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
        dtype = RAISED.get(drawn.dtype, drawn.dtype)
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
