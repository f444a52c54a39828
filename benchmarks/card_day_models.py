"""Models of ``card_day.py``, in a project whose ``planted.json`` says if faults are in them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

from gate.workload import Workload

IS_PLANTED = json.loads(Path(__file__).with_name("planted.json").read_text())
SLOW_SUMS = 4


class Block(nn.Module):
    """Two linear layers and a norm; head does something wrong besides."""

    def __init__(self, width: int, fault: str) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.fault = fault if IS_PLANTED else ""
        self.kept: list[torch.Tensor] = []

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Compute, with the fault."""
        value = self.norm(value + self.down(nn.functional.gelu(self.up(value))))
        if self.fault == "break":
            torch._dynamo.graph_break()  # noqa: SLF001 - what is planted
        if self.fault == "slow":
            for _ in range(SLOW_SUMS):  # a scan is a kernel of its own
                value = value + 1e-6 * value.cumsum(-1)
        if self.fault == "keep":
            self.keep(value)
        if self.fault == "wrong" and torch.compiler.is_compiling():
            value = value * 1.001
        return value * 2.0

    @torch.compiler.disable  # type: ignore[untyped-decorator] # torch's
    def keep(self, value: torch.Tensor) -> None:
        """Keep a tensor of each call."""
        self.kept.append(value[:64].clone())


class Interleaved(nn.Module):
    """Strided writes to a clone, as rotary embeddings of images have them: pytorch #193183.

    Wrong on a card from torch 2.12 on, where Triton's code is right and the machine code is not.
    """

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Take every third column of the second and third plane."""
        first = value[0].clone()
        first[..., 1:60:3] = value[1, ..., 1:60:3]
        first[..., 2:60:3] = value[2, ..., 2:60:3]
        return first


def build(width: int, rows: int, fault: str = "") -> Workload:
    """Build the block."""
    return Workload(forward=Block(width, fault), inputs=(torch.randn(rows, width),))


def build_interleaved(rows: int) -> Workload:
    """Build the strided writes."""
    return Workload(forward=Interleaved(), inputs=(torch.randn(3, rows, 64),))
