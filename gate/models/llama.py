"""Llama: a decoder with grouped-query attention, rotary embeddings, RMSNorm and a gated MLP."""

from __future__ import annotations

import torch
from torch.nn import functional
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.llama import LlamaConfig, LlamaForCausalLM

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models

# The library's SDPA under a name for which it builds no mask. With its own "sdpa" it looks at the
# position ids for packed sequences: eager then passes is_causal, while a compiled model cannot look
# and builds a mask, which also rules out the flash kernels. The two would not do the same work.
ATTENTION = "sdpa_is_causal"
AttentionInterface.register(ATTENTION, sdpa_attention_forward)


def build_llama(*, batch: int, sequence: int, **config: object) -> Workload:
    """Build a causal language model that reads a whole sequence at once (no key-value cache).

    ``batch`` x ``sequence`` token ids give ``batch`` x ``sequence`` x ``vocab_size`` logits.
    ``config`` is for ``transformers.LlamaConfig``, whose dropout is 0 by default; attention is
    ``scaled_dot_product_attention`` with ``is_causal``.
    """
    settings = LlamaConfig.from_dict({"attn_implementation": ATTENTION, "use_cache": False, **config})
    return Workload(
        forward=LlamaForCausalLM(settings),
        inputs=(torch.randint(settings.vocab_size, (batch, sequence)),),
        kwargs={"return_dict": False},
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
    )


def _compute_loss(output: tuple[torch.Tensor]) -> torch.Tensor:
    logits = output[0].flatten(0, 1)
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
