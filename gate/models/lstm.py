"""LSTM classifier: many small dependent steps, unrolled into one graph.

Written out in Python. Dynamo skips ``torch.nn.LSTM`` and runs it eagerly, and on CUDA
``torch.nn.LSTMCell`` stays one opaque kernel: neither would measure the compiler.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gate.workload import Workload

LEARNING_RATE = 1e-5  # see gate.models


class _Cell(nn.Module):
    """One step of one layer: batch x size, with state and memory of batch x hidden."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.read = nn.Linear(size, 4 * hidden)
        self.recur = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(
        self, value: torch.Tensor, state: torch.Tensor, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gates = self.read(value) + self.recur(state)
        enter, forget, write, leave = gates.chunk(4, dim=-1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(write)
        return torch.sigmoid(leave) * torch.tanh(memory), memory


class _Classifier(nn.Module):
    """Stacked layers over batch x sequence x hidden; the last state gives batch x classes logits."""

    def __init__(self, hidden: int, layers: int, classes: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(_Cell(hidden, hidden) for _ in range(layers))
        self.head = nn.Linear(hidden, classes)

    def forward(self, sequence: torch.Tensor, carried: torch.Tensor) -> torch.Tensor:
        states = [(carried, carried) for _ in self.cells]
        for step in sequence.unbind(1):
            value = step
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(value, *states[layer])
                value = states[layer][0]
        logits: torch.Tensor = self.head(value)
        return logits


def build_lstm(*, batch: int, sequence: int, hidden: int, layers: int, classes: int) -> Workload:
    """Build a classifier of ``batch`` sequences, each of ``sequence`` steps of ``hidden`` features.

    The second input, batch x hidden, is where every layer's state and memory start.
    """
    return Workload(
        forward=_Classifier(hidden, layers, classes),
        inputs=(torch.randn(batch, sequence, hidden), torch.zeros(batch, hidden)),
        loss=_compute_loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9, fused=True),
    )


def _compute_loss(logits: torch.Tensor) -> torch.Tensor:
    labels = torch.arange(logits.shape[0], device=logits.device) % logits.shape[-1]
    return functional.cross_entropy(logits, labels)
