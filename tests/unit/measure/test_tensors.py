"""Walking nested inputs and outputs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.testing._internal.two_tensor import TwoTensor

from gate.measure.workload.tensors import compute_bytes, convert_tensor, iterate_tensors, map_tensors


@dataclass
class Output:
    """An output record, as libraries return."""

    logits: torch.Tensor
    extra: Any = None


class Point(NamedTuple):
    """A named tuple of tensors."""

    x: torch.Tensor
    y: int


ONE = torch.ones(1)


def test_paths_name_the_place() -> None:
    """A tensor's path reads like the expression that gets it."""
    nested = ({"a": [ONE]}, Output(logits=ONE), 3)
    assert ["[0]['a'][0]", "[1].logits"] == [path for path, _ in iterate_tensors(nested)]


def test_bare_tensor_has_an_empty_path() -> None:
    """The root needs no path."""
    assert [""] == [path for path, _ in iterate_tensors(ONE)]


def test_mapping_keeps_structure() -> None:
    """Containers are rebuilt in their own type; what is no tensor stays."""
    nested = (OrderedDict(a=ONE), [ONE, "text"], Point(x=ONE, y=2))
    mapped = map_tensors(lambda tensor: tensor + 1, nested)
    assert isinstance(mapped[0], OrderedDict)
    assert isinstance(mapped[2], Point)
    assert (mapped[1][1], mapped[2].y) == ("text", 2)
    assert [2.0, 2.0, 2.0] == [float(tensor) for _, tensor in iterate_tensors(mapped)]


def test_only_floats_are_cast() -> None:
    """Token ids and masks keep their type."""
    assert convert_tensor(ONE, "cpu", torch.bfloat16).dtype == torch.bfloat16
    assert convert_tensor(torch.ones(1, dtype=torch.int64), "cpu", torch.bfloat16).dtype == torch.int64


def test_shared_storage_counts_once() -> None:
    """A view and its base hold the base's bytes: 10 float32 are 40."""
    base = torch.zeros(10)
    assert compute_bytes([base, base[2:4], base.view(2, 5)]) == 40


def test_a_tensor_of_others_holds_what_they_hold() -> None:
    """A wrapper, as a quantized weight is one, has the bytes of its parts: twice 6 numbers of 4 bytes."""
    wrapped = TwoTensor(torch.zeros(6), torch.zeros(6))  # type: ignore[no-untyped-call] # torch's own test helper
    assert compute_bytes([wrapped]) == 2 * 6 * 4
