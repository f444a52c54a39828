"""A Triton kernel of one's own between compiled code: it must stay in the graph. It needs a GPU.

``torch.compile`` sees the kernel itself, where :mod:`gate.models.custom_op` is opaque to it.
"""

from __future__ import annotations

import torch
from torch.library import triton_op, wrap_triton

from gate.errors import UsageError
from gate.workload import Workload

try:
    import triton
    from triton import language as tl
except ImportError:  # a build of torch for the processor alone
    triton = None

BLOCK = 1024

if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _add_scaled(left, right, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803 - Triton's own language
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = place < count
        value = tl.load(left + place, mask=inside) + 0.5 * tl.load(right + place, mask=inside)
        tl.store(out + place, value, mask=inside)

    @triton_op("compile_gate::add_scaled", mutates_args={})
    def add_scaled(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return left + right / 2, by a kernel that was written by hand."""
        out = torch.empty_like(left)
        count = left.numel()
        wrap_triton(_add_scaled)[(triton.cdiv(count, BLOCK),)](left, right, out, count, BLOCK=BLOCK)
        return out


def build_user_kernel(*, elements: int) -> Workload:
    """Build elementwise code of `elements` numbers with the kernel in the middle."""

    def forward(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        if triton is None or not left.is_cuda:
            fix = "Leave the case out here: --select '...,!user_kernel/*'."
            raise UsageError("UNAVAILABLE: a Triton kernel needs a GPU and Triton", fix)
        return torch.sin(add_scaled(left * 2.0, right)) * right

    return Workload(forward=forward, inputs=(torch.randn(elements), torch.randn(elements)))
