"""An operator of one's own between compiled code: it must neither break the graph nor lose its gradient."""

from __future__ import annotations

from typing import Any

import torch

from gate.workload import Workload


@torch.library.custom_op("compile_gate::cube", mutates_args=())
def cube(value: torch.Tensor) -> torch.Tensor:
    """Return the third power, by code that the compiler cannot see into."""
    return value * value * value


@cube.register_fake
def _(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(value)


def _keep(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:  # noqa: ANN401 - torch's interface
    del output
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - torch's interface
    (value,) = ctx.saved_tensors
    slope: torch.Tensor = 3 * value * value * gradient
    return slope


cube.register_autograd(_differentiate, setup_context=_keep)


def build_custom_op(*, elements: int) -> Workload:
    """Build elementwise code of ``elements`` numbers with the operator in the middle."""

    def run(value: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.tanh(cube(torch.sin(value) + 0.5)) * value
        return result

    return Workload(forward=run, inputs=(torch.randn(elements),), loss=lambda output: output.square().mean())
