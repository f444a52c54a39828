"""Exponential smoothing along time: a plain function."""

from __future__ import annotations

import torch


def smooth(series: torch.Tensor, weight: float = 0.3) -> torch.Tensor:
    """Smooth batch x time; each step is ``weight`` new and the rest old."""
    level = series[:, 0]
    levels = [level]
    for step in series.unbind(1)[1:]:
        level = weight * step + (1 - weight) * level
        levels.append(level)
    return torch.stack(levels, dim=1)
