"""What compile-gate measures of this package."""

from __future__ import annotations

import torch
from gate import Workload

from mixer.model import make_mixer


def build(*, batch: int, tokens: int, width: int, blocks: int) -> Workload:
    """Build the mixer and one batch; the arguments come from gate.yml."""
    return Workload(
        forward=make_mixer(tokens, width, blocks),
        inputs=(torch.randn(batch, tokens, width),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-5),
    )
