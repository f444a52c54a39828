"""A stack of residual MLP blocks, in the ways in which people train and serve one.

Each way is one argument, so that the cases differ in nothing else: autocast, checkpointing, a graph break
in each block and none, integers for weights.
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gate.errors import UsageError
from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models
# What the kernels of these configurations run on: tinygemm's, and those of 8-bit floating-point numbers.
NEEDED_CAPABILITY = {
    "Int4WeightOnlyConfig": (8, 0),
    "Float8WeightOnlyConfig": (8, 9),
    "Float8DynamicActivationFloat8WeightConfig": (8, 9),
}


class _Block(nn.Module):
    """A residual MLP; with ``breaks`` Dynamo has to give its graph up in the middle."""

    def __init__(self, width: int, *, breaks: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.breaks = breaks

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        hidden = functional.gelu(self.up(self.norm(value)))
        if self.breaks:
            torch._dynamo.graph_break()  # noqa: SLF001 - its documented name
        result: torch.Tensor = value + self.down(hidden)
        return result


class _Stack(nn.Module):
    """Blocks one after the other, under autocast or checkpointed where that is asked for."""

    def __init__(self, blocks: list[_Block], *, autocast: bool, checkpointed: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.autocast, self.checkpointed = autocast, checkpointed

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        with torch.autocast(value.device.type, torch.bfloat16) if self.autocast else nullcontext():
            for layer in self.layers:
                value = checkpoint(layer, value, use_reentrant=False) if self.checkpointed else layer(value)
        return value


def build_blocks(*, batch: int, width: int, depth: int, **ways: Any) -> Workload:  # noqa: ANN401 - gate.yml's values
    """Build ``depth`` blocks for ``batch`` x ``width`` inputs.

    ``ways`` are ``autocast`` (to bfloat16), ``checkpointed``, ``breaks``, and ``quantized``: the name of a
    configuration of ``torchao.quantization``, applied to every linear layer.
    """
    blocks = [_Block(width, breaks=bool(ways.get("breaks"))) for _ in range(depth)]
    stack = _Stack(blocks, autocast=bool(ways.get("autocast")), checkpointed=bool(ways.get("checkpointed")))
    exact = None
    if name := ways.get("quantized"):
        exact = copy.deepcopy(stack)  # drift is what quantizing costs as well, in eager and compiled alike
        _quantize(stack, str(name))
    return Workload(
        forward=stack,
        inputs=(torch.randn(batch, width),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
        exact=exact,
    )


def _quantize(module: nn.Module, name: str) -> None:
    try:
        from torchao import quantization  # noqa: PLC0415 - an optional library
    except ImportError:
        fix = "Install it: pip install torchao; or leave the case out."
        raise UsageError("UNAVAILABLE: the package torchao is not installed", fix) from None
    if needed := NEEDED_CAPABILITY.get(name):
        if not torch.cuda.is_available() or torch.cuda.get_device_capability() < needed:
            message = f"UNAVAILABLE: {name} needs a GPU of compute capability {'.'.join(map(str, needed))}"
            raise UsageError(message, "Leave the case out here.")
        module.to("cuda", torch.bfloat16)  # packed for where it is, and never moved again
    quantization.quantize_(module, getattr(quantization, name)())
