"""T5: an encoder and a decoder with cross-attention and learned relative positions."""

from __future__ import annotations

import torch
from torch.nn import functional
from transformers.models.t5 import T5Config, T5ForConditionalGeneration

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


def build_t5(*, batch: int, sequence: int, target: int, **config: object) -> Workload:
    """Build an encoder-decoder; without further arguments it is T5-small.

    ``batch`` x ``sequence`` token ids for the encoder and ``batch`` x ``target`` for the decoder give
    ``batch`` x ``target`` x ``vocab_size`` logits. Dropout is off. ``config`` is for
    ``transformers.T5Config``.
    """
    settings = T5Config.from_dict({"dropout_rate": 0.0, "use_cache": False, **config})
    return Workload(
        forward=T5ForConditionalGeneration(settings),
        inputs=(torch.randint(settings.vocab_size, (batch, sequence)),),
        kwargs={
            "decoder_input_ids": torch.randint(settings.vocab_size, (batch, target)),
            "return_dict": False,
        },
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0].flatten(0, 1)
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
