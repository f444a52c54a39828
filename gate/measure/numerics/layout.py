"""How what a call returns lies in memory, and in which containers: compiled returns it as eager does."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from gate.measure.workload.tensors import visit
from gate.records.codes import Code
from gate.records.facts import Fact, name_words

Layout = Mapping[str, tuple[str, ...]]  # by path, the parts of which each may differ


def describe_layout(returned: Any, given: Mapping[str, Any], root: str) -> Layout:  # noqa: ANN401 - any model's
    """Describe by path each tensor and each container that a call returned; ``given`` are its arguments.

    A tensor's layout: the input that it is or lies in, and its strides, where a dimension is larger than 1.
    """
    inputs = {path: leaf for path, leaf in given.items() if isinstance(leaf, torch.Tensor)}
    described: dict[str, tuple[str, ...]] = {}
    for path, node, items in visit(returned):
        if isinstance(node, torch.Tensor):
            described[root + path] = _describe_memory(node, inputs), _describe_strides(node)
        elif items:
            described[root + path] = (f"of type {type(node).__qualname__}",)
    return described


def compare_layout(eager: Layout, compiled: Layout) -> list[Fact]:
    facts = []
    for path in eager.keys() & compiled.keys():
        parts = zip(eager[path], compiled[path], strict=False)
        if differing := next((pair for pair in parts if pair[0] != pair[1]), None):
            before, after = differing
            names = name_words(output=path, eager=before, compiled=after)
            facts.append(Fact(code=Code.LAYOUT_DIFFERS, names=names))
    return sorted(facts, key=lambda fact: fact.name("output"))


def _describe_strides(tensor: torch.Tensor) -> str:
    if not _has_storage(tensor):
        return f"of layout {str(tensor.layout).removeprefix('torch.')}"
    sizes = zip(tensor.stride(), tensor.shape, strict=True)
    steps = [str(step) for step, size in sizes if size > 1 and tensor.numel()]
    return f"of strides {', '.join(steps)}"


def _describe_memory(tensor: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str:
    for path, given in inputs.items():
        if tensor is given:
            return f"{path} itself"
    address = _get_address(tensor)
    for path, given in inputs.items():
        if address and address == _get_address(given):
            return f"in the memory of {path}"
    return "a tensor of its own"


def _get_address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if _has_storage(tensor) else 0


def _has_storage(tensor: torch.Tensor) -> bool:
    is_plain = tensor.layout == torch.strided and not tensor.is_nested
    return is_plain and not is_traceable_wrapper_subclass(tensor)
