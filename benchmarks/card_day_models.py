"""Models of ``card_day.py``, in a project whose ``planted.json`` says if faults are in them."""

import json
from pathlib import Path

import torch
from torch import nn

from gate.workload import Workload

IS_PLANTED = json.loads(Path(__file__).with_name("planted.json").read_text())
SLOW_SUMS = 4
KEPT: list[torch.Tensor] = []  # of each call something, by the fault that keeps memory


@torch.library.custom_op("card_day::keep", mutates_args=())
def keep(value: torch.Tensor) -> torch.Tensor:
    """Keep some of a tensor for good: an operator, since Dynamo would break the graph at a list."""
    KEPT.append(value[:64].clone())
    return value.clone()


@keep.register_fake
def _(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(value)


class Block(nn.Module):
    """Two linear layers and a norm; head does something wrong besides."""

    def __init__(self, width: int, fault: str) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.fault = fault if IS_PLANTED else ""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Compute, with the fault."""
        value = self.norm(value + self.down(nn.functional.gelu(self.up(value))))
        if self.fault == "break":
            torch._dynamo.graph_break()  # noqa: SLF001 - what is planted
        if self.fault == "slow":
            for _ in range(SLOW_SUMS):  # a scan is a kernel of its own
                value = value + 1e-6 * value.cumsum(-1)
        if self.fault == "keep":
            value = keep(value)
        if self.fault == "wrong" and torch.compiler.is_compiling():
            value = value * 1.001
        return value * 2.0


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
