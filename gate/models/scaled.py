"""Training under autocast to float16, with the GradScaler that keeps small gradients from vanishing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models
SCALE = 1024.0  # far from an overflow here, where GradScaler's own first guess would be as well
# The scale doubles after so many steps without an overflow. It must not while steps are timed: an overflow
# skips the optimizer, and a step of another kind would stand among the others.
GROWTH_INTERVAL = 10**9


class _Mixed(nn.Module):
    """A stack of residual MLPs under autocast."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        with torch.autocast(value.device.type, torch.float16):
            for norm, up, down in zip(self.norms, self.ups, self.downs, strict=True):
                value = value + down(functional.gelu(up(norm(value))))
        return value


class _ScaledOptimizer:
    """As much of an optimizer as a training step asks for: it steps as the scaler lets it."""

    def __init__(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        self._optimizer, self._scaler = optimizer, scaler

    @property
    def state(self) -> Mapping[Any, Any]:
        """The moments, whose memory counts."""
        return self._optimizer.state

    def step(self) -> None:
        """Take the step unless a gradient has overflown, and let the scaler draw its conclusion."""
        self._scaler.step(self._optimizer)
        self._scaler.update()


def build_scaled(*, batch: int, width: int, depth: int) -> Workload:
    """Build `depth` blocks for `batch` x `width` inputs, a scaled loss, and an optimizer that unscales."""
    place = "cuda" if torch.cuda.is_available() else "cpu"  # where the scale is kept
    scaler = torch.amp.GradScaler(place, init_scale=SCALE, growth_interval=GROWTH_INTERVAL)
    scaler.scale(torch.zeros((), device=place))  # it makes its own tensors when it is first used

    make: Callable[[Any], Any] = lambda parameters: _ScaledOptimizer(  # noqa: E731 - as in every factory
        torch.optim.AdamW(parameters, lr=LEARNING_RATE), scaler
    )
    return Workload(
        forward=_Mixed(width, depth),
        inputs=(torch.randn(batch, width),),
        # Scaler.scale breaks the graph; the scale does not change here, so it may be a number.
        loss=lambda output: output.float().square().mean() * SCALE,
        optimizer=make,
    )
