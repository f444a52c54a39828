"""Six models that are not in the registry, each slower by what ``doses.json`` beside it says.

``complete_checks.py`` copies this file into a project of its own. A dose is in seconds a compiled call: an
operator that waits so long, in the graph. A model without one is built as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn
from transformers import DistilBertConfig, DistilBertModel, GPT2Config, GPT2LMHeadModel

from gate.selftest.planted.factory import plant
from gate.workload import Workload

NAMES = ("distilbert", "gpt2", "perceptron", "convolutions", "attention", "normalized")
SMALL_DOSE_S = 1e-9  # other code, and no slower: the operator itself takes a microsecond
BATCH, WIDTH = 16, 256


def build(*, name: str) -> Workload:
    """Build a model, with its dose in its forward if it has one."""
    dose = json.loads(Path(__file__).with_name("doses.json").read_text()).get(name)
    if dose is None:
        return build_plain(name=name)
    return plant(factory=f"{__name__}:build_plain", arguments={"name": name}, fault="slowdown", dose=dose)


def build_plain(*, name: str) -> Workload:
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
