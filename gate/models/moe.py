"""A mixture of experts: each token goes through the few experts that its router likes best."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


class _Mixture(nn.Module):
    """A residual gated MLP, of which each token takes the weights of its own experts."""

    def __init__(self, width: int, hidden: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.norm = nn.RMSNorm(width)
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * hidden) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / hidden**0.5)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        normed = self.norm(value)
        weights, experts = functional.softmax(self.router(normed), dim=-1).topk(self.chosen, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        left, right = torch.einsum("tw,tewh->teh", normed, self.up[experts]).chunk(2, dim=-1)
        mixed = torch.einsum("teh,tehw->tew", functional.silu(left) * right, self.down[experts])
        result: torch.Tensor = value + (mixed * weights[..., None]).sum(dim=1)
        return result


def build_moe(*, tokens: int, width: int, depth: int, **mixture: int) -> Workload:
    """Build `depth` layers for `tokens` tokens, each of which goes through `chosen` of so many `experts`.

    ``mixture`` is ``experts``, ``chosen`` and the ``hidden`` width of an expert.
    """
    layers = [_Mixture(width, mixture["hidden"], mixture["experts"], mixture["chosen"]) for _ in range(depth)]
    return Workload(
        forward=nn.Sequential(*layers),
        inputs=(torch.randn(tokens, width),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )
