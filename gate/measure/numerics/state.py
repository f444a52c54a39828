"""What a call can leave behind: in tensors, and in lists, attributes and generators of Python."""

from __future__ import annotations

import functools
import random
import re
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from gate.measure.workload.build import Subject
from gate.measure.workload.tensors import iterate_tensors

# Objects that are looked into, a large model has some ten thousand. More stay as a call leaves them.
_MOST_OBJECTS = 200_000
# What objects of these packages hold is their own, but for modules: a lock, a logger, a device.
_LEFT_ALONE = frozenset({*sys.stdlib_module_names, "torch", "numpy"})
_INPUT = "the input "
HELD = "the tensor "  # held by an attribute, a closure or a module of Python
VALUE = "the value "  # held likewise: a number, text, a set of such, or which object it is
_NUMBERS = (bool, int, float, complex)
_EXACT = (bool, int, str, bytes, type(None), Enum)
_VALUES = (*_EXACT, float, complex)
_DECIMALS = re.compile(r"\d+\.\d+(e[-+]?\d+)?")  # a rounded number in a text, as of a loss
# A dict or list of a Python module is looked into where it holds so many tensors and numbers and nothing
# else: what holds more is a vocabulary or a registry, which calls may fill for good.
_MOST_IN_GLOBAL = 1000
_ATOMS = (type, ModuleType)
_OF_MODULES = ("_parameters", "_buffers", "_modules")

Restore = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class State:
    tensors: Mapping[str, torch.Tensor]  # copies, in the processor's memory
    live: Mapping[str, torch.Tensor]
    holders: tuple[Restore, ...]
    values: Mapping[str, object]
    objects: Mapping[str, object]
    has_generator: bool  # of random numbers, besides the global ones

    def restore(self) -> None:
        for put_back in self.holders:
            put_back()
        with torch.no_grad():
            for name, tensor in self.live.items():
                copied = self.tensors[name]
                if tensor.shape != copied.shape:  # a call has set its ``data``, as a cache that grows
                    tensor.data = copied.to(tensor.device, copy=True)
                elif not _is_same(tensor.detach(), copied):
                    write_tensor(tensor, copied)


def copy_state(subject: Subject) -> State:
    live, walk = _collect_tensors(subject)
    copies = {name: tensor.detach().cpu().clone() for name, tensor in live.items()}
    return State(
        tensors=copies,
        live=live,
        holders=tuple(walk.holders),
        values=walk.values,
        objects=walk.objects,
        has_generator=walk.has_generator,
    )


def list_written(subject: Subject, state: State) -> dict[str, torch.Tensor]:
    """List by name, as copies, what differs from ``state``: of its subject, or of a twin in a wider type.

    What is not finite and was so before counts as 0: a cache that is not filled yet.
    """
    written = {}
    for name, tensor in _collect_tensors(subject)[0].items():
        value, before = tensor.detach(), state.tensors.get(name)
        if before is not None and _is_same(value, before):
            continue
        written[name] = value.clone()
        if before is not None and before.shape == value.shape and value.is_floating_point():
            empty = ~torch.isfinite(before).to(value.device) & ~torch.isfinite(value)
            written[name].masked_fill_(empty, 0.0)
    return written


def list_values(subject: Subject, state: State) -> dict[str, object]:
    """List by name the values of Python that differ from ``state``: a counter, a word, a set of them.

    An object is named by where it lay before the calls; a new one by its type.
    """
    walk = _collect_tensors(subject)[1]
    paths = {id(value): name for name, value in reversed([*state.objects.items()])}
    values = {
        name: value
        for name, value in walk.values.items()
        if name not in state.values or (type(value), value) != (type(state.values[name]), state.values[name])
    }
    objects = {
        name: paths.get(id(value), type(value).__qualname__)
        for name, value in walk.objects.items()
        if value is not state.objects.get(name)
    }
    return {VALUE + name: value for name, value in {**values, **objects}.items()}


def write_tensor(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Write in place; torch refuses a tensor that `expand` repeats, so only its first element is written."""
    if tensor.layout == torch.strided and 0 in tensor.stride():
        first = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())
        tensor, value = tensor[first], value[first]
    tensor.copy_(value)


def _is_same(value: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether both hold the same, NaN for NaN; one may be a copy of the other in a wider type."""
    if value.shape != before.shape or value.layout != before.layout:
        return False
    before = before.to(value.device, value.dtype)
    if value.layout != torch.strided:
        value, before = value.to_dense(), before.to_dense()
    return torch.equal(value, before) or bool(((value == before) | (value.isnan() & before.isnan())).all())


def _collect_tensors(subject: Subject) -> tuple[dict[str, torch.Tensor], _Walk]:
    tensors: dict[str, torch.Tensor] = {}
    if subject.module is not None:
        tensors |= {f"the parameter {name}": tensor for name, tensor in subject.module.named_parameters()}
        tensors |= {f"the buffer {name}": tensor for name, tensor in subject.module.named_buffers()}
    workload = subject.workload
    inputs, kwargs = workload.inputs, workload.kwargs
    for given in (inputs, kwargs):
        tensors |= {_INPUT + path: tensor for path, tensor in iterate_tensors(given)}
    named = {id(tensor) for tensor in tensors.values()}
    walk = _Walk()
    walk.visit([(_INPUT, kwargs), (_INPUT, inputs), ("loss", workload.loss), ("", workload.forward)])
    for path, tensor in walk.tensors.items():
        if id(tensor) not in named:
            tensors[path if path.startswith(_INPUT) else HELD + path] = tensor
    # One that wraps others, as a quantized weight, has no storage to copy.
    return {
        name: tensor for name, tensor in tensors.items() if not is_traceable_wrapper_subclass(tensor)
    }, walk


class _Walk:
    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.values: dict[str, object] = {}
        self.objects: dict[str, object] = {}  # of measured code, by each path to them
        self.holders: list[Restore] = []
        self.has_generator = False
        self._seen: dict[int, object] = {}  # kept alive: another object may get the id of a dead one

    def visit(self, roots: Iterable[tuple[str, object]]) -> None:
        waiting = list(roots)
        while waiting and len(self._seen) < _MOST_OBJECTS:
            path, value = waiting.pop()
            if id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                self.tensors[path] = value
                continue
            self.holders += _list_restores(value)
            self.has_generator |= isinstance(value, torch.Generator)
            for more, item in _list_held(value):
                item_path = (path + more).lstrip(".")
                if isinstance(item, _VALUES):
                    self.values[item_path] = _DECIMALS.sub("#", item) if isinstance(item, str) else item
                    continue
                if isinstance(item, AbstractSet) and all(isinstance(member, _EXACT) for member in item):
                    self.values[item_path] = frozenset(item)
                elif _is_looked_into(item) and not isinstance(item, torch.nn.Module):
                    self.objects[item_path] = item
                if not isinstance(item, _ATOMS):
                    waiting.append((item_path, item))


def _list_held(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f".{name}", cell.cell_contents) for name, cell in cells if cell != CellType())
        yield from _list_globals(value)
    elif isinstance(value, MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, torch.nn.Module):
        yield from _list_parts(value)
    elif _is_looked_into(value):
        yield from ((f".{name}", item) for name, item in vars(value).items())


def _list_parts(module: torch.nn.Module) -> Iterator[tuple[str, object]]:
    yield from ((f".{name}", child) for name, child in module.named_children())
    yield from ((f".{name}", item) for name, item in vars(module).items() if name not in _OF_MODULES)
    measured = [kind for kind in type(module).__mro__ if _is_measured(kind.__module__)]
    methods = [item for kind in measured for item in vars(kind).values() if isinstance(item, FunctionType)]
    yield from (("", method) for method in methods)


def _list_restores(value: object) -> Iterator[Restore]:
    if isinstance(value, dict):
        yield _keep_dict(value)
    elif isinstance(value, (list, deque, set)):
        yield _keep_items(value)
    elif isinstance(value, FunctionType):
        filled = (cell for cell in value.__closure__ or () if cell != CellType())
        yield from (functools.partial(setattr, cell, "cell_contents", cell.cell_contents) for cell in filled)
    elif isinstance(value, torch.Generator):
        yield functools.partial(value.set_state, value.get_state())
    elif isinstance(value, random.Random):
        yield functools.partial(value.setstate, value.getstate())
    elif isinstance(value, torch.nn.Module):
        yield from (_keep_dict(vars(value)[name]) for name in _OF_MODULES)
        yield _keep_dict(vars(value))
    elif _is_looked_into(value):
        yield _keep_dict(vars(value))


def _is_looked_into(value: object) -> bool:
    is_plain = isinstance(value, SimpleNamespace) or _is_measured(type(value).__module__)
    return is_plain and hasattr(value, "__dict__") and not isinstance(value, _ATOMS)


def _is_measured(module: str | None) -> bool:
    return bool(module) and str(module).partition(".")[0] not in _LEFT_ALONE


def _list_globals(function: FunctionType) -> Iterator[tuple[str, object]]:
    if not _is_measured(function.__module__):
        return
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType):
            yield "", value
        elif isinstance(value, torch.Tensor) or _is_plain(value):
            yield f".{name}", value


def _is_plain(value: object) -> bool:
    if not isinstance(value, (dict, list, deque)) or not 0 < len(value) <= _MOST_IN_GLOBAL:
        return False
    items = value.values() if isinstance(value, dict) else value
    return all(isinstance(item, torch.Tensor) or type(item) in _NUMBERS or _is_plain(item) for item in items)


def _keep_dict(held: dict[Any, Any]) -> Restore:
    saved = dict(held)
    base: type[dict[Any, Any]] = OrderedDict if isinstance(held, OrderedDict) else dict

    def put_back() -> None:
        if list(held) != list(saved) or any(held[key] is not item for key, item in saved.items()):
            base.clear(held)
            base.update(held, saved)

    return put_back


def _keep_items(held: Any) -> Restore:  # noqa: ANN401 - a list, a deque or a set
    saved = list(held)

    def put_back() -> None:
        if len(held) != len(saved) or any(
            item is not before for item, before in zip(held, saved, strict=True)
        ):
            held.clear()
            (held.update if isinstance(held, set) else held.extend)(saved)

    return put_back
