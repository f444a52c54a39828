"""The decoder of an image autoencoder: convolutions and group norms at growing resolution."""

from __future__ import annotations

import torch
from diffusers.models.autoencoders.autoencoder_kl import AutoencoderKL
from torch import nn

from gate.workload import Workload


class _Decode(nn.Module):
    """The half of the autoencoder that turns latents into images."""

    def __init__(self, model: AutoencoderKL) -> None:
        super().__init__()
        self.decoder, self.post = model.decoder, model.post_quant_conv

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        image: torch.Tensor = self.decoder(self.post(latents))
        return image


def build_vae(*, batch: int, latent: int, **config: object) -> Workload:
    """Build the decoder that turns ``batch`` latents of ``latent`` x ``latent`` into images.

    Each block but the last doubles the resolution. Weights and latents are channels-last. ``config`` is
    for ``diffusers.AutoencoderKL``.
    """
    model = AutoencoderKL.from_config(config)
    latents = torch.randn(batch, model.config.latent_channels, latent, latent)
    return Workload(
        forward=_Decode(model).to(memory_format=torch.channels_last),  # type: ignore[call-overload] # not in torch's stub
        inputs=(latents.contiguous(memory_format=torch.channels_last),),
    )
