"""A chain of elementwise functions: what fusion alone is worth."""

from __future__ import annotations

import torch
from torch.nn import functional

from gate.workload import Workload


def build_elementwise(*, elements: int, links: int) -> Workload:
    """Build a chain of ``links`` x 8 elementwise operations on ``elements`` numbers.

    Eager reads and writes memory for each operation, fused code once. Every link keeps values within
    [-1.5, 1], so that a chain of any length stays finite in bfloat16. A training step computes the
    gradient of the mean square in the inputs.
    """

    def run_chain(value: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        for _ in range(links):
            shifted = value + bias
            swish = torch.tanh(shifted * torch.sigmoid(shifted))
            value = swish - 0.5 * functional.relu(shifted).clamp(max=1.0)
        return value

    return Workload(
        forward=run_chain,
        inputs=(torch.randn(elements), torch.randn(elements)),
        loss=lambda output: output.square().mean(),
    )
