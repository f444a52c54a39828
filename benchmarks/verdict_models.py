"""Five tiny models, six cases, whose tower is as slow as ``amounts.py`` beside it says.

``verdict_seconds.py`` copies both into a project of its own. All models import ``amounts``, so that a change
of it touches every case.
"""

from __future__ import annotations

import amounts  # type: ignore[import-not-found] # verdict_seconds.py writes it
import torch
from torch import nn
from torch.nn import functional
from transformers import DistilBertConfig, DistilBertModel, GPT2Config, GPT2LMHeadModel

from gate.models.convnext import build_convnext
from gate.models.whisper import build_whisper
from gate.workload import Workload

VOCABULARY, LENGTH = 1000, 64
BATCH, WIDTH, DEPTH = 256, 256, 3


def build_distilbert() -> Workload:
    """Build two layers of DistilBERT."""
    shape = {"vocab_size": VOCABULARY, "dim": 128, "hidden_dim": 512, "n_layers": 2, "n_heads": 4}
    tokens = torch.randint(0, VOCABULARY, (4, LENGTH))
    model = DistilBertModel(DistilBertConfig.from_dict(shape))
    return Workload(forward=model.eval(), inputs=(tokens,), kwargs={"return_dict": False})


def build_gpt2() -> Workload:
    """Build two layers of GPT-2 without dropout, trained to predict its own input."""
    shape = {"vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": 128, "n_layer": 2, "n_head": 4}
    plain = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    tokens = torch.randint(0, VOCABULARY, (4, LENGTH))
    model = GPT2LMHeadModel(GPT2Config.from_dict({**shape, **plain, "bos_token_id": 0, "eos_token_id": 0}))
    return Workload(
        forward=model,
        inputs=(tokens,),
        kwargs={"return_dict": False},
        loss=lambda output: functional.cross_entropy(output[0].flatten(0, 1), tokens.flatten()),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-5),
    )


class Tower(nn.Module):
    """Residual MLPs; a wider one is the same graph and more work a call."""

    def __init__(self) -> None:
        """Make all layers as wide as ``amounts`` says."""
        super().__init__()
        hidden = amounts.TOWER_HIDDEN
        self.ups = nn.ModuleList(nn.Linear(WIDTH, hidden) for _ in range(DEPTH))
        self.downs = nn.ModuleList(nn.Linear(hidden, WIDTH) for _ in range(DEPTH))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Add each layer to what went in."""
        for up, down in zip(self.ups, self.downs, strict=True):
            value = value + down(functional.gelu(up(functional.layer_norm(value, (WIDTH,)))))
        return value


def build_tower() -> Workload:
    """Build the tower."""
    return Workload(
        forward=Tower(),
        inputs=(torch.randn(BATCH, WIDTH),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-5),
    )


__all__ = ["build_convnext", "build_distilbert", "build_gpt2", "build_tower", "build_whisper"]
