"""ResNet: convolutions and batch normalization, bound by memory traffic between them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers.models.resnet import ResNetConfig, ResNetForImageClassification

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


def build_resnet(*, batch: int, image: int, **config: object) -> Workload:
    """Build a ResNet v1.5 image classifier; without further arguments it is ResNet-50.

    ``batch`` images of 3 x ``image`` x ``image`` give ``batch`` x ``num_labels`` logits.
    Both are channels-last, which Inductor lays convolutions out as anyway: eager gets the same.
    ``config`` is for ``transformers.ResNetConfig``.
    """
    model: nn.Module = ResNetForImageClassification(ResNetConfig.from_dict({"num_labels": 1000, **config}))
    pixels = torch.randn(batch, 3, image, image)
    return Workload(
        forward=model.to(memory_format=torch.channels_last),  # type: ignore[call-overload] # not in torch's stub
        inputs=(pixels.contiguous(memory_format=torch.channels_last),),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0]
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
