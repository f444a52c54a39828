"""GRU classifier, written out in Python as :mod:`gate.models.lstm` is, and for the same reasons."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


class _Classifier(nn.Module):
    """One layer over batch x sequence x hidden; the last state gives batch x classes logits."""

    def __init__(self, hidden: int, classes: int) -> None:
        super().__init__()
        self.read = nn.Linear(hidden, 3 * hidden)
        self.recur = nn.Linear(hidden, 3 * hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, sequence: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for step in sequence.unbind(1):
            update, reset, new = self.read(step).chunk(3, dim=-1)
            past_update, past_reset, past_new = self.recur(state).chunk(3, dim=-1)
            keep = torch.sigmoid(update + past_update)
            candidate = torch.tanh(new + torch.sigmoid(reset + past_reset) * past_new)
            state = keep * state + (1 - keep) * candidate
        logits: torch.Tensor = self.head(state)
        return logits


def build_gru(*, batch: int, sequence: int, hidden: int, classes: int) -> Workload:
    """Build a classifier of ``batch`` sequences, each of ``sequence`` steps of ``hidden`` features."""
    return Workload(
        forward=_Classifier(hidden, classes),
        inputs=(torch.randn(batch, sequence, hidden), torch.zeros(batch, hidden)),
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9, fused=True),
    )


def _compute_loss(logits: torch.Tensor) -> torch.Tensor:
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
