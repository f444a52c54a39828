"""Two-dimensional wave equation: a function without parameters, bound by memory bandwidth."""

from __future__ import annotations

import torch

from gate.workload import Workload

# (c dt / dx)^2 of the leapfrog scheme; in two dimensions it is stable up to 1/2.
COURANT_SQUARED = 0.25


def build_stencil(*, size: int, steps: int) -> Workload:
    """Build ``steps`` leapfrog steps of the wave equation on a periodic ``size`` x ``size`` grid.

    The inputs are the heights now and one step ago; the output is the pair ``steps`` later. A training
    step computes the gradient of the last heights' energy in the inputs, as inversion does.
    """
    height = torch.randn(size, size)

    def advance_wave(now: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for _ in range(steps):
            now, before = 2 * now - before + COURANT_SQUARED * _compute_laplacian(now), now
        return now, before

    return Workload(forward=advance_wave, inputs=(height, height.clone()), loss=_compute_energy)


def _compute_energy(output: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return output[0].square().mean()


def _compute_laplacian(field: torch.Tensor) -> torch.Tensor:
    """Return the five-point Laplacian on a grid of spacing 1 that wraps around."""
    vertical = field.roll(1, 0) + field.roll(-1, 0)
    horizontal = field.roll(1, 1) + field.roll(-1, 1)
    return vertical + horizontal - 4 * field
