"""A diffusion transformer: attention over image patches, modulated by timestep and class."""

from __future__ import annotations

import torch
from diffusers.models.transformers.dit_transformer_2d import DiTTransformer2DModel
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models
TIMESTEP = 500  # the middle of the usual 1000 noise levels


def build_dit(*, batch: int, **config: object) -> Workload:
    """Build a class-conditioned denoiser of ``batch`` latents of ``sample_size`` x ``sample_size``.

    ``config`` is for ``diffusers.DiTTransformer2DModel``; dropout is 0 there by default.
    """
    model = DiTTransformer2DModel.from_config(config)
    size = model.config.sample_size
    return Workload(
        forward=model,
        inputs=(torch.randn(batch, model.config.in_channels, size, size),),
        kwargs={
            "timestep": torch.full((batch,), TIMESTEP),
            "class_labels": torch.arange(batch) % model.config.num_embeds_ada_norm,
            "return_dict": False,
        },
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    noise = output[0]
    return functional.mse_loss(noise, torch.ones_like(noise))
