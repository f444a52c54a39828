"""Six models that are not in the registry, each slower by what ``amounts.json`` beside it says.

``complete_checks.py`` copies this file into a project of its own. A amount is in seconds a compiled call: an
operator that waits so long, in the graph. Each model multiplies what it returns by the ``scale`` of that
file: another one is other code, and no slower.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import DistilBertConfig, DistilBertModel, GPT2Config, GPT2LMHeadModel

from gate.selftest.planted import plant
from gate.workload import Workload

NAMES = ("distilbert", "gpt2", "perceptron", "convolutions", "attention", "normalized")
SCALE, OTHER_SCALE = 1.5, 1.25
BATCH, WIDTH = 16, 256


class Scaled(nn.Module):
    """A model whose first output is multiplied by a constant."""

    def __init__(self, model: nn.Module, scale: float) -> None:
        """Keep both."""
        super().__init__()
        self.model, self.scale = model, scale

    def forward(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the model's
        """Call the model."""
        outputs = self.model(*arguments, **options)
        return (outputs[0] * self.scale, *outputs[1:]) if isinstance(outputs, tuple) else outputs * self.scale


def build(*, name: str) -> Workload:
    """Build a model, with its amount in its forward if it has one."""
    amount = load_amounts().get(name)
    if amount is None:
        return build_plain(name=name)
    return plant(factory=f"{__name__}:build_plain", arguments={"name": name}, fault="slowdown", amount=amount)


def load_amounts() -> dict[str, float]:
    """Load what the file beside this one says."""
    amounts: dict[str, float] = json.loads(Path(__file__).with_name("amounts.json").read_text())
    return amounts


def build_plain(*, name: str) -> Workload:
    """Build a model without an amount."""
    workload = build_unscaled(name)
    if not isinstance(workload.forward, nn.Module):
        raise TypeError(name)
    scaled = Scaled(workload.forward, load_amounts().get("scale", SCALE))
    return replace(workload, forward=scaled.eval())


def build_unscaled(name: str) -> Workload:
    """Build a model as it is."""
    tokens, plainly = torch.randint(0, 1000, (4, 64)), {"return_dict": False}
    if name == "distilbert":
        small = {"vocab_size": 1000, "dim": 128, "hidden_dim": 512, "n_layers": 2, "n_heads": 4}
        model = DistilBertModel(DistilBertConfig.from_dict(small))
        return Workload(forward=model.eval(), inputs=(tokens,), kwargs=plainly)
    if name == "gpt2":
        shape = {"vocab_size": 1000, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 4}
        ends = {"bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
        model = GPT2LMHeadModel(GPT2Config.from_dict({**shape, **ends}))
        return Workload(forward=model.eval(), inputs=(tokens,), kwargs=plainly)
    if name == "convolutions":
        layers = [nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.SiLU()] * 3
        return Workload(forward=nn.Sequential(*layers).eval(), inputs=(torch.randn(4, 16, 48, 48),))
    value = torch.randn(BATCH, 64, WIDTH)
    if name == "attention":
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        return Workload(forward=layer.eval(), inputs=(value,))
    blocks = [nn.LayerNorm(WIDTH), nn.GELU(), nn.RMSNorm(WIDTH), nn.Tanh()]
    dense = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.Sigmoid()]
    return Workload(forward=nn.Sequential(*(dense if name == "perceptron" else blocks)), inputs=(value,))
