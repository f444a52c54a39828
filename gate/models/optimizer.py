"""An optimizer's step, compiled by itself: few kernels for what eager does tensor by tensor."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim.adamw import adamw

from gate.workload import Workload

LEARNING_RATE = 1e-3  # large enough to be seen in drift: nothing is kept from call to call
# Late enough that 1 - 0.999^n loses no digits: compiled code has it in float32, eager in float64.
STEPS_BEFORE = 1000.0
_PARTS = 4  # parameters, gradients and two moments


class _Step(nn.Module):
    """One step of AdamW from a fixed state: parameters, gradients and moments to the new parameters."""

    steps: torch.Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        self.register_buffer("steps", torch.full((count,), STEPS_BEFORE))

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parameters, gradients, means, roots = (
            [tensor.clone() for tensor in tensors[part::_PARTS]] for part in range(_PARTS)
        )
        adamw(
            parameters,
            gradients,
            means,
            [1.0 + root.square() for root in roots],  # none near zero, whose one step would be all the error
            [],
            list(self.steps.clone().unbind()),
            foreach=True,
            # What torch's own optimizers choose: steps stay on the device, where there is one to wait for.
            capturable=tensors[0].is_cuda or torch.compiler.is_compiling(),
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=LEARNING_RATE,
            weight_decay=0.01,
            eps=1e-8,
            maximize=False,
        )
        return tuple(parameters)


def build_step(*, tensors: int, rows: int, columns: int) -> Workload:
    """Build AdamW's step over `tensors` matrices of `rows` x `columns` parameters."""
    return Workload(
        forward=_Step(tensors),
        inputs=tuple(torch.randn(rows, columns) for _ in range(_PARTS * tensors)),
    )
