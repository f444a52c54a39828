"""One step of a decoder that writes token after token, with a static cache and a position that grows."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gate.workload import Workload

ROTARY_BASE = 10_000.0


class _Layer(nn.Module):
    """Grouped-query attention over the cache up to the position, then a gated MLP."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, width: int, heads: int, groups: int, cache: tuple[int, int]) -> None:
        super().__init__()
        batch, length = cache
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 8 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(batch, groups, length, self.size))

    def forward(self, value: torch.Tensor, position: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
        batch = value.shape[0]
        normed = self.norms[0](value)
        query = self.query(normed).view(batch, self.heads, 1, self.size)
        key, content = self.pair(normed).view(batch, 2, self.groups, 1, self.size).unbind(1)
        # Index_copy writes the same place again in every call of one position: calls do not differ.
        keys = self.keys.index_copy(2, position, _rotate(key, turn))
        values = self.values.index_copy(2, position, content)
        mask = torch.arange(keys.shape[2], device=value.device) <= position
        mixed = functional.scaled_dot_product_attention(
            _rotate(query, turn), keys, values, attn_mask=mask[None, None, None], enable_gqa=True
        )
        value = value + self.out(mixed.reshape(batch, -1))
        left, right = self.gate(self.norms[1](value)).chunk(2, dim=-1)
        result: torch.Tensor = value + self.down(functional.silu(left) * right)
        return result


class _Decoder(nn.Module):
    """Token ids of batch, and one position, to logits of batch x vocabulary."""

    speeds: torch.Tensor

    def __init__(self, vocabulary: int, width: int, layers: list[_Layer]) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        size = layers[0].size
        exponents = torch.arange(0, size, 2) / size
        self.register_buffer("speeds", ROTARY_BASE**-exponents)

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        value = self.embed(token)
        turn = position * self.speeds
        for layer in self.layers:
            value = layer(value, position, turn)
        logits: torch.Tensor = self.head(self.norm(value))
        return logits


def build_decode(*, batch: int, length: int, position: int, vocabulary: int, **shape: int) -> Workload:
    """Build one decoding step of ``batch`` sequences at ``position`` of a cache for ``length`` tokens.

    ``shape`` is ``width``, ``depth``, ``heads`` of queries and ``groups`` of keys and values; the output is
    ``batch`` x
    ``vocabulary``. The position is a tensor: nothing is to be recompiled as it grows. The cache is
    full of noise, of which attention sees what is before the position; the new entries are not kept.
    """
    width, cache = shape["width"], (batch, length)
    layers = [_Layer(width, shape["heads"], shape["groups"], cache) for _ in range(shape["depth"])]
    return Workload(
        forward=_Decoder(vocabulary, width, layers),
        inputs=(torch.randint(vocabulary, (batch,)), torch.tensor([position])),
    )


def _rotate(value: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Turn pairs of features by angles that grow with the position."""
    first, second = value.chunk(2, dim=-1)
    cosine, sine = torch.cos(turn), torch.sin(turn)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)
