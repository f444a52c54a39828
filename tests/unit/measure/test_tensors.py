"""Walking nested inputs and outputs."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from gate.measure.workload.tensors import compute_bytes, convert_tensor, copy_module, iterate_tensors


@dataclass
class Output:
    logits: torch.Tensor
    extra: Any = None


ONE = torch.ones(1)


def test_paths_name_the_place() -> None:
    """A tensor's path reads like the expression that gets it."""
    nested = ({"a": [ONE]}, Output(logits=ONE), 3)
    assert ["[0]['a'][0]", "[1].logits"] == [path for path, _ in iterate_tensors(nested)]


def test_bare_tensor_has_an_empty_path() -> None:
    """The root needs no path."""
    assert [""] == [path for path, _ in iterate_tensors(ONE)]


def test_only_floats_are_cast() -> None:
    """Token ids and masks keep their type."""
    assert convert_tensor(ONE, "cpu", torch.bfloat16).dtype == torch.bfloat16
    assert convert_tensor(torch.ones(1, dtype=torch.int64), "cpu", torch.bfloat16).dtype == torch.int64


def test_shared_storage_counts_once() -> None:
    """A view and its base hold the base's bytes: 10 float32 are 40."""
    base = torch.zeros(10)
    assert compute_bytes([base, base[2:4], base.view(2, 5)]) == 40


def test_a_tensor_of_others_holds_what_they_hold() -> None:
    """A wrapper, such as a quantized weight, has the bytes of its parts: twice 6 numbers of 4 bytes."""
    wrapped = TwoTensor(torch.zeros(6), torch.zeros(6))  # type: ignore[no-untyped-call] # torch's own test helper
    assert compute_bytes([wrapped]) == 2 * 6 * 4


class Tied(torch.nn.Module):
    """A layer with a weight that it has twice, one that is not trained, and a buffer of whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.second = torch.nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("steps", torch.tensor([7]))


def test_a_module_is_copied_in_another_type() -> None:
    """Tied weights stay tied, frozen ones frozen, whole numbers whole."""
    module = Tied()
    copied = copy_module(module, "cpu", torch.float64)
    assert isinstance(copied, Tied)
    assert copied.first.weight is copied.second.weight
    assert torch.equal(copied.first.weight, module.first.weight.double())
    trained = {name: value.requires_grad for name, value in copied.named_parameters()}
    assert trained == {"frozen": False, "first.weight": True}
    assert {name: value.dtype for name, value in copied.state_dict().items()} == {
        "frozen": torch.float64,
        "steps": torch.int64,
        "first.weight": torch.float64,
        "second.weight": torch.float64,
    }


def test_a_copy_shares_nothing_with_its_module() -> None:
    """A copy in the same type can be written to as well."""
    module = Tied()
    copied = copy_module(module, "cpu", torch.float32)
    for value in copied.state_dict().values():
        value.zero_()
    assert (module.state_dict()["steps"].item(), module.state_dict()["frozen"].tolist()) == (7, [1.0, 1.0])


def test_no_copy_as_it_was_is_made_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card without memory for the weights twice needs none for a copy elsewhere."""
    module = Tied()

    def refuse(*_: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.nn.Parameter, "__deepcopy__", refuse)
    monkeypatch.setattr(torch.Tensor, "__deepcopy__", refuse)
    assert copy_module(module, "cpu", torch.float64) is not module


def test_a_recurrent_module_computes_as_its_copy_does() -> None:
    """It has a list of its weights: the copy's list holds the copy's."""
    module, value = torch.nn.LSTM(4, 4), torch.randn(2, 1, 4)
    copied = copy_module(module, "cpu", torch.float64)
    assert torch.allclose(copied(value.double())[0], module(value)[0].double(), atol=1e-6)
