"""Vision transformer: patch embedding, then attention over a fixed, odd number of tokens."""

from __future__ import annotations

import torch
from torch.nn import functional
from transformers.models.vit import ViTConfig, ViTForImageClassification

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


def build_vit(*, batch: int, image: int, **config: object) -> Workload:
    """Build a ViT image classifier; without further arguments it is ViT-B/16.

    ``batch`` images of 3 x ``image`` x ``image`` give ``batch`` x ``num_labels`` logits.
    ``config`` is for ``transformers.ViTConfig``, whose dropout is 0 by default.
    """
    settings = ViTConfig.from_dict(
        {"image_size": image, "num_labels": 1000, "attn_implementation": "sdpa", **config}
    )
    return Workload(
        forward=ViTForImageClassification(settings),
        inputs=(torch.randn(batch, 3, image, image),),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0]
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
