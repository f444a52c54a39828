"""BERT: the encoder that attention, LayerNorm and GELU fusions are tuned on."""

from __future__ import annotations

import torch
from torch.nn import functional
from transformers.models.bert import BertConfig, BertForMaskedLM

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


def build_bert(*, batch: int, sequence: int, **config: object) -> Workload:
    """Build a masked language model; without further arguments it is BERT-base.

    ``batch`` x ``sequence`` token ids give ``batch`` x ``sequence`` x ``vocab_size`` logits.
    ``config`` is for ``transformers.BertConfig``. Dropout is off: eager, compiled and float64 would
    draw different masks.
    """
    settings = BertConfig.from_dict(
        {
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "attn_implementation": "sdpa",
            **config,
        }
    )
    return Workload(
        forward=BertForMaskedLM(settings),
        inputs=(torch.randint(settings.vocab_size, (batch, sequence)),),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0].flatten(0, 1)
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
