"""Letting every operator return something that is off by rounding, as float32 is and float64 is not.

A batch's mean, subtracted from what it is the mean of, is off by the same in all elements: next to it what is
left may be small. So what fuses such sums is taken apart, as compilers do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_FUSED = (
    *("native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward"),
    *("_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    *("native_layer_norm", "native_layer_norm_backward"),
    *("native_group_norm", "native_group_norm_backward"),
    *("_softmax_backward_data", "_log_softmax_backward_data"),
)


class Pushing(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Pushes what operators return by a step, and a sum of n by sqrt(n): float32's own error of as many."""

    def __init__(self, step: float, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self._step, self._generator = step, generator

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's interface
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Call the operator; what it writes or only views stays as it is."""
        kwargs = kwargs or {}
        if func in (apart := _list_apart()):
            with self:
                return apart[func](*args, **kwargs)
        returned = func(*args, **kwargs)
        if any(one.alias_info is not None for one in func._schema.returns):  # noqa: SLF001 - torch names it so
            return returned
        given = [
            leaf.numel() for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        ]

        def push_summed(value: torch.Tensor) -> torch.Tensor:
            terms = max(given, default=1) / max(1, value.numel())
            return push(value, self._step * max(1.0, math.sqrt(terms)), self._generator)

        return pytree.tree_map_only(torch.Tensor, push_summed, returned)


def push(value: torch.Tensor, by: float, generator: torch.Generator) -> torch.Tensor:
    """Multiply each element by another factor within ``by`` of 1, but for whole numbers, which are exact."""
    if not value.is_floating_point() or value.layout != torch.strided:
        return value
    noise = torch.rand(value.shape, generator=generator, dtype=torch.float64).to(value.device)
    off = (by * (2 * noise - 1)).masked_fill(value == value.round(), 0.0)
    return value * (1 + off).to(value.dtype)


@functools.cache
def _list_apart() -> Mapping[Any, Callable[..., Any]]:
    from torch._decomp import get_decompositions  # noqa: PLC0415 - importing it takes a second

    return get_decompositions(
        [getattr(torch.ops.aten, name) for name in _FUSED if hasattr(torch.ops.aten, name)]
    )
