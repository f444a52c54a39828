"""Navier-Stokes in two dimensions: vorticity and stream function, bound by memory bandwidth."""

from __future__ import annotations

import torch

from gate.workload import Workload

VISCOSITY = 0.05
STEP = 0.02  # stable for speeds near 1 on a grid of spacing 1


def build_flow(*, size: int, steps: int, sweeps: int) -> Workload:
    """Build ``steps`` steps of an incompressible flow on a periodic ``size`` x ``size`` grid.

    Inputs are vorticity and stream function; each step solves for the latter by ``sweeps`` sweeps of
    Jacobi, and moves the former by Arakawa's Jacobian, which keeps its sum and its energy. Outputs are
    both and the total vorticity: drift holds that to eager's error as well.
    """

    def advance(
        vortex: torch.Tensor, stream: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        for _ in range(steps):
            for _ in range(sweeps):
                stream = 0.25 * (_sum_neighbours(stream) + vortex)
            spread = VISCOSITY * (_sum_neighbours(vortex) - 4 * vortex)
            vortex = vortex + STEP * (_carry(vortex, stream) + spread)
        return vortex, stream, vortex.mean()

    return Workload(
        forward=advance,
        inputs=(torch.randn(size, size), torch.zeros(size, size)),
        loss=lambda output: output[0].square().mean(),
    )


def _sum_neighbours(field: torch.Tensor) -> torch.Tensor:
    return field.roll(1, 0) + field.roll(-1, 0) + field.roll(1, 1) + field.roll(-1, 1)


def _carry(vortex: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
    """Return Arakawa's Jacobian of the two, a mean of three forms of it."""

    def at(field: torch.Tensor, down: int, right: int) -> torch.Tensor:
        return field.roll((-down, -right), (0, 1))

    east, west, south, north = ((0, 1), (0, -1), (1, 0), (-1, 0))
    plain = (at(vortex, *east) - at(vortex, *west)) * (at(stream, *south) - at(stream, *north))
    plain = plain - (at(vortex, *south) - at(vortex, *north)) * (at(stream, *east) - at(stream, *west))
    corners = (
        at(vortex, *east) * (at(stream, 1, 1) - at(stream, -1, 1))
        - at(vortex, *west) * (at(stream, 1, -1) - at(stream, -1, -1))
        - at(vortex, *south) * (at(stream, 1, 1) - at(stream, 1, -1))
        + at(vortex, *north) * (at(stream, -1, 1) - at(stream, -1, -1))
    )
    crossed = (
        at(stream, *south) * (at(vortex, 1, 1) - at(vortex, 1, -1))
        - at(stream, *north) * (at(vortex, -1, 1) - at(vortex, -1, -1))
        - at(stream, *east) * (at(vortex, 1, 1) - at(vortex, -1, 1))
        + at(stream, *west) * (at(vortex, 1, -1) - at(vortex, -1, -1))
    )
    return (plain + corners + crossed) / 12
