"""ConvNeXt: depthwise convolutions and layer norms, where fusion meets libraries' convolutions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers.models.convnext import ConvNextConfig, ConvNextForImageClassification

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


def build_convnext(*, batch: int, image: int, channels_last: bool = True, **config: object) -> Workload:
    """Build an image classifier; without further arguments it is ConvNeXt-T.

    ``batch`` images of 3 x ``image`` x ``image`` give ``batch`` x ``num_labels`` logits. Both are
    ``channels_last`` unless that is turned off. ``config`` is for ``transformers.ConvNextConfig``.
    """
    model: nn.Module = ConvNextForImageClassification(
        ConvNextConfig.from_dict({"num_labels": 1000, "drop_path_rate": 0.0, **config})
    )
    pixels = torch.randn(batch, 3, image, image)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in torch's stub
        pixels = pixels.contiguous(memory_format=torch.channels_last)
    return Workload(
        forward=model,
        inputs=(pixels,),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0]
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
