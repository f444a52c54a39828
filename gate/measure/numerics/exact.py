"""Float64 in the place of the lower types that a model asks for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

RAISED = {
    **dict.fromkeys((torch.float32, torch.bfloat16, torch.float16), torch.float64),
    torch.complex64: torch.complex128,
}
_CASTS = frozenset((torch.Tensor.float, torch.Tensor.bfloat16, torch.Tensor.half))


_FLAT = 2  # the dimensions of an operand that has its groups one after the other
_GROUPED = (torch._grouped_mm, torch.nn.functional.grouped_mm)  # noqa: SLF001 - what the public one was before


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
    return RAISED.get(value, value) if isinstance(value, torch.dtype) else value
