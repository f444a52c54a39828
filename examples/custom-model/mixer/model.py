"""An MLP-Mixer: mixes along tokens, then along features."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """One mixing of tokens and one of features, each with a residual connection."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mix_tokens = nn.Sequential(nn.Linear(tokens, tokens), nn.GELU(), nn.Linear(tokens, tokens))
        self.mix_features = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        value = value + self.mix_tokens(self.norms[0](value).transpose(1, 2)).transpose(1, 2)
        mixed: torch.Tensor = value + self.mix_features(self.norms[1](value))
        return mixed


def make_mixer(tokens: int, width: int, blocks: int) -> nn.Sequential:
    """Make a mixer over batch x tokens x width."""
    return nn.Sequential(*(Block(tokens, width) for _ in range(blocks)))
