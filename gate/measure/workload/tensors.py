"""Walking nested inputs and outputs: tuples, lists, mappings, dataclasses and tensors in them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def iterate_tensors(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:  # noqa: ANN401 - any model's
    """Yield the tensors within a value with their paths, e.g. ``[0].logits``; the root's is empty."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from iterate_tensors(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from iterate_tensors(item, f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from iterate_tensors(getattr(value, field.name), f"{path}.{field.name}")


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:  # noqa: ANN401 - see above
    """Rebuild tuples, named tuples, lists and mappings with ``function`` applied to every tensor."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return type(value)((key, map_tensors(function, item)) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        items = [map_tensors(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def convert_tensor(tensor: torch.Tensor, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    """Move a tensor to ``device``, and to ``dtype`` when it holds real floating-point numbers.

    Complex ones have no type of 16 bits: they stay, and are made exact where ``dtype`` is float64.
    """
    if tensor.is_complex() and dtype == torch.float64:
        dtype = torch.complex128
    elif not tensor.is_floating_point():
        dtype = tensor.dtype
    return tensor.to(device, dtype)


def convert_module(module: torch.nn.Module, device: torch.device | str, dtype: torch.dtype) -> None:
    """Do so in place with all that a module holds; its own ``to(dtype)`` makes complex numbers real."""
    module._apply(lambda tensor: convert_tensor(tensor, device, dtype))  # type: ignore[no-untyped-call] # noqa: SLF001 - as `to` does


def copy_module(module: torch.nn.Module, device: torch.device | str, dtype: torch.dtype) -> torch.nn.Module:
    """Copy a module with all that it holds converted as :func:`convert_module` does.

    Each parameter and buffer is converted as it is copied: a copy of all of them as they are, where they are,
    may be what there is no memory for.
    """
    held = (*module.parameters(), *module.buffers())
    copies = {id(tensor): _copy_converted(tensor, device, dtype) for tensor in held if _is_plain(tensor)}
    copied = copy.deepcopy(module, copies)
    convert_module(copied, device, dtype)  # what is no plain tensor, and what it keeps of them
    return copied


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in {torch.Tensor, torch.nn.Parameter}


def _copy_converted(tensor: torch.Tensor, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    own = tensor.detach()
    converted = convert_tensor(own, device, dtype)
    if converted is own:  # it was so already
        converted = own.clone()
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(converted, tensor.requires_grad)
    return converted.requires_grad_(tensor.requires_grad)


def compute_bytes(tensors: Iterator[torch.Tensor] | list[torch.Tensor]) -> int:
    """Compute the bytes that the tensors' storages hold, each storage once."""
    plain = (part for tensor in tensors for part in _list_plain(tensor))
    storages = {storage.data_ptr(): storage.nbytes() for storage in (t.untyped_storage() for t in plain)}
    return sum(storages.values())


def _list_plain(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """List what holds a tensor's numbers: one that wraps others, as a quantized weight, has no storage."""
    if not is_traceable_wrapper_subclass(tensor):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()
    for name in names:
        yield from _list_plain(getattr(tensor, name))
