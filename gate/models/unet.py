"""Diffusion UNet: one denoising step, with convolutions, group normalization and cross-attention."""

from __future__ import annotations

import torch
from diffusers.models.unets.unet_2d_condition import UNet2DConditionModel
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models
TIMESTEP = 500  # the middle of the usual 1000 noise levels


def build_unet(*, batch: int, tokens: int, **config: object) -> Workload:
    """Build a text-conditioned denoiser that predicts the noise in ``batch`` latent images.

    Latents are ``in_channels`` x ``sample_size`` x ``sample_size``, the text is ``tokens`` vectors of
    ``cross_attention_dim``, and the output has the shape of the latents. Weights and latents
    are channels-last, which Inductor lays convolutions out as anyway: eager gets the same. ``config``
    is for ``diffusers.UNet2DConditionModel``.
    """
    model = UNet2DConditionModel.from_config(config).to(memory_format=torch.channels_last)
    settings = model.config
    latents = torch.randn(batch, settings.in_channels, settings.sample_size, settings.sample_size)
    timesteps = torch.full((batch,), TIMESTEP)
    text = torch.randn(batch, tokens, settings.cross_attention_dim)
    return Workload(
        forward=model,
        inputs=(latents.contiguous(memory_format=torch.channels_last), timesteps, text),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    noise = output[0]
    return functional.mse_loss(noise, torch.ones_like(noise))
