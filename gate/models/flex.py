"""FlexAttention: a score that is written as a function, here a sliding window with a slope a head."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from gate.workload import Workload

NEVER = float("-inf")


class _Attention(nn.Module):
    """Self-attention of queries over the keys of a window behind them, nearer ones weighing more."""

    slopes: torch.Tensor

    def __init__(self, heads: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.register_buffer("slopes", 2.0 ** (-8.0 * (torch.arange(heads) + 1) / heads))

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        slopes, window = self.slopes, self.window

        def score(value: torch.Tensor, *place: torch.Tensor) -> torch.Tensor:
            _, head, row, column = place
            distance = row - column
            seen = (distance >= 0) & (distance < window)
            return torch.where(seen, value - slopes[head] * distance, NEVER)

        result: torch.Tensor = flex_attention(query, key, value, score_mod=score)
        return result


def build_flex(*, batch: int, heads: int, length: int, width: int, window: int) -> Workload:
    """Build attention of `batch` x `heads` x `length` queries of `width` features over a sliding window."""
    shape = (batch, heads, length, width)
    return Workload(
        forward=_Attention(heads, window),
        inputs=tuple(torch.randn(shape) for _ in range(3)),
        loss=lambda output: output.square().mean(),
    )
