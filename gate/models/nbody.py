"""Gravity between all pairs of bodies: a step that keeps the momentum, and the energy nearly."""

from __future__ import annotations

import torch

from gate.workload import Workload

SOFTENING_SQUARED = 0.01  # keeps close pairs finite
STEP = 1e-3


def build_nbody(*, bodies: int, steps: int) -> Workload:
    """Build ``steps`` leapfrog steps of ``bodies`` bodies of equal mass in three dimensions.

    Inputs are positions and velocities; outputs are both at the end, and the total energy: drift holds
    that, which the scheme conserves, to eager's error as well.
    """

    def advance(place: torch.Tensor, speed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        for _ in range(steps):
            speed = speed + 0.5 * STEP * _pull(place)
            place = place + STEP * speed
            speed = speed + 0.5 * STEP * _pull(place)
        return place, speed, _sum_energy(place, speed)

    return Workload(
        forward=advance,
        inputs=(torch.randn(bodies, 3), torch.randn(bodies, 3)),
        loss=lambda output: output[2],
    )


def _pull(place: torch.Tensor) -> torch.Tensor:
    apart = place[None] - place[:, None]
    inverse = torch.rsqrt(apart.square().sum(-1) + SOFTENING_SQUARED)
    return (apart * inverse.pow(3)[..., None]).mean(1)


def _sum_energy(place: torch.Tensor, speed: torch.Tensor) -> torch.Tensor:
    apart = place[None] - place[:, None]
    inverse = torch.rsqrt(apart.square().sum(-1) + SOFTENING_SQUARED)
    return 0.5 * speed.square().sum() / len(place) - 0.5 * inverse.mean()
