"""Computing in float64 whatever types a model asks for, and what has no float64 by what has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_RAISED = {
    **dict.fromkeys((torch.float32, torch.bfloat16, torch.float16), torch.float64),
    torch.complex64: torch.complex128,
}
_CASTS = frozenset((torch.Tensor.float, torch.Tensor.bfloat16, torch.Tensor.half))


_FLAT = 2  # the dimensions of an operand that has its groups one after the other


def multiply_groups(
    left: torch.Tensor, right: torch.Tensor, offs: torch.Tensor | None = None, **others: object
) -> torch.Tensor:
    """Multiply matrices group by group, as torch's own operator does that has no float64.

    Of shapes [n, k] and [groups, k, m], [groups, n, k] and [k, m], or [n, k] and [k, m]; ``offs`` is where
    each group ends in the dimension that holds them one after the other. What is beyond is 0.

    Raises:
        TypeError: There is a bias.
    """
    if others.get("bias") is not None:
        raise TypeError("no bias of groups in float64")  # torch's own operator has none either, up to 2.13
    if offs is None:
        return torch.bmm(left, right)
    ends = offs.tolist()
    spans = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if left.dim() == right.dim() == _FLAT:
        return torch.stack([left[:, span] @ right[span] for span in spans])
    if left.dim() == _FLAT:
        parts = [left[span] @ one for span, one in zip(spans, right, strict=True)]
        return torch.cat([*parts, left.new_zeros(left.shape[0] - ends[-1], right.shape[-1])])
    parts = [one @ right[:, span] for span, one in zip(spans, left, strict=True)]
    return torch.cat([*parts, left.new_zeros(left.shape[1], right.shape[1] - ends[-1])], dim=1)


_GROUPED = {
    getattr(place, name)
    for place, name in ((torch, "_grouped_mm"), (torch.nn.functional, "grouped_mm"))
    if hasattr(place, name)
}


class Float64Mode(TorchFunctionMode):
    """Turns casts to lower floating-point types into casts to float64.

    Models cast on purpose (a norm or a softmax in float32): in the reference those stay exact too.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Run ``func`` with float64 where it asks for less."""
        if func in _GROUPED:
            return multiply_groups(*args, **(kwargs or {}))
        raised = {name: _raise_dtype(value) for name, value in (kwargs or {}).items()}
        if func in _CASTS:
            func = torch.Tensor.double
        return func(*map(_raise_dtype, args), **raised)


@contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 within, whatever types a model asks for."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Float64Mode():
            yield
    finally:
        torch.set_default_dtype(before)


def _raise_dtype(value: Any) -> Any:  # noqa: ANN401 - any argument
    return _RAISED.get(value, value) if isinstance(value, torch.dtype) else value
