"""What a forward or a loss that is no module holds: the modules and tensors that it closes over."""

from __future__ import annotations

import copy
import dis
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import torch

from gate.errors import UsageError
from gate.measure.workload.tensors import Items, list_held, list_items

_READS = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))
_LIBRARIES = sys.stdlib_module_names | {"torch"}  # of their functions no globals are looked at

Function = Callable[..., Any]
Memo = dict[int, Any]  # what stands for an object in a copy, by the object's id, as deepcopy wants it
_HELD = (torch.nn.Module, torch.Tensor)


class Held(torch.nn.Module):
    """Modules and tensors that functions hold, as one module: cast, copied, trained and restored together."""

    def __init__(self, parts: dict[str, Any]) -> None:
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, torch.nn.Module):
                self.add_module(name, part)
            elif isinstance(part, torch.nn.Parameter):
                self.register_parameter(name, part)
            else:
                self.register_buffer(name, part, persistent=False)

    def list_loose(self) -> list[torch.Tensor]:
        return [*self.parameters(recurse=False), *self.buffers(recurse=False)]

    def _apply(self, function: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Held:
        for module in self.children() if recurse else ():
            module._apply(function)  # type: ignore[no-untyped-call] # noqa: SLF001 - as torch does
        for tensor in self.list_loose():
            tensor.data = function(tensor.data)
        return self


def find_held(forward: Function, loss: Function | None = None) -> torch.nn.Module | None:
    """Find the modules and tensors that a forward and its loss hold; ``None`` where they hold nothing."""
    reached = [(name, node) for name, node, _ in _visit(forward) if isinstance(node, _HELD)]
    if loss is not None:
        criteria = ((name, node) for name, node, _ in _visit(loss) if isinstance(node, _HELD))
        reached += [
            (name, node) for name, node in criteria if isinstance(node, torch.Tensor) or list_held(node)
        ]
    inner = {id(part) for _, node in reached for part in _list_parts(node)}
    outer = {id(node): (name, node) for name, node in reversed(reached) if id(node) not in inner}
    if not outer:
        return None
    held: dict[str, Any] = {}
    for name, node in reversed(outer.values()):
        held[_make_name(name, held)] = node
    first = next(iter(held.values()))
    return first if len(held) == 1 and isinstance(first, torch.nn.Module) else Held(held)


def pair_up(module: torch.nn.Module, copied: torch.nn.Module) -> Memo:
    kinds = ((whole.modules(), whole.parameters(), whole.buffers()) for whole in (module, copied))
    pairs = (pair for two in zip(*kinds, strict=True) for pair in zip(*two, strict=True))
    return {id(original): replacement for original, replacement in pairs}


def rebind(function: Function, replaced: Memo) -> Function:
    """Make the same function over other modules and tensors; what leads to none of them is shared.

    Raises:
        UsageError: It holds one in a way that cannot be copied.
    """
    visits = list(_visit(function))
    touched = _collect_touched(visits, replaced)
    if id(function) not in touched:
        return function
    memo = {id(node): node for _, node, _ in visits if id(node) not in touched} | replaced
    try:
        _rebuild_functions(
            [node for _, node, _ in visits if id(node) in touched - replaced.keys()], touched, memo
        )
        rebound: Function = copy.deepcopy(function, memo)
    except Exception as error:
        raise _make_refusal(function, f"{type(error).__name__}: {error}") from error
    if any(replaced.get(id(node), node) is not node for _, node, _ in _visit(rebound)):
        raise _make_refusal(function, "its copy has the original's modules")
    return rebound


def _make_refusal(function: Function, why: str) -> UsageError:
    named = getattr(function, "__qualname__", type(function).__qualname__)
    fix = "Give the module itself as forward, or a method of it."
    return UsageError(f"{named} holds modules, and cannot be copied with others: {why}", fix)


def _list_parts(node: torch.nn.Module | torch.Tensor) -> Iterator[Any]:
    if isinstance(node, torch.nn.Module):
        yield from (part for part in node.modules() if part is not node)
        yield from list_held(node)


def _make_name(name: str, taken: dict[str, Any]) -> str:
    plain = re.sub(r"\W+", "_", name).strip("_") or "held"
    tries = (plain, *(f"{plain}_{index}" for index in range(2, len(taken) + 3)))
    return next(
        attempt for attempt in tries if attempt not in taken and not hasattr(torch.nn.Module, attempt)
    )


def _visit(function: Function) -> Iterator[tuple[str, Any, Items]]:
    todo: Items = [("model", function)]
    seen: dict[int, Any] = {}
    package = ""  # the user's: other packages' functions are not searched for what they call
    while todo:
        name, node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if isinstance(node, FunctionType):
            owner = _find_package(node)
            package = package or owner
            items = [*_list_closed(node), *(_list_globals(node) if owner and owner == package else ())]
        else:
            items = _list_reached(node)
        yield name, node, items
        todo.extend(reversed(items))


def _find_package(function: FunctionType) -> str:
    package = str(function.__globals__.get("__name__", "")).partition(".")[0]
    return "" if package in _LIBRARIES else package


def _list_reached(node: Any) -> Items:  # noqa: ANN401 - anything
    if isinstance(node, _HELD):
        return []
    if isinstance(node, MethodType):
        return [("self", node.__self__), ("function", node.__func__)]
    if isinstance(node, partial):
        return [
            ("function", node.func),
            *(("argument", argument) for argument in node.args),
            *node.keywords.items(),
        ]
    wrapped = getattr(node, "__wrapped__", None) if callable(node) else None  # as functools.cache has it
    return [*list_items(node), *([("function", wrapped)] if wrapped is not None else [])]


def _list_closed(function: FunctionType) -> Items:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    defaults = ("default", function.__defaults__ or ())
    closed = [(name, cell.cell_contents) for name, cell in cells if cell != CellType()]
    return [*closed, defaults, *(function.__kwdefaults__ or {}).items(), *function.__dict__.items()]


def _list_globals(function: FunctionType) -> Items:
    read = {
        instruction.argval
        for code in _list_codes(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname in _READS
    }
    return [(name, function.__globals__[name]) for name in sorted(read) if name in function.__globals__]


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_codes(constant)


def _collect_touched(visits: list[tuple[str, Any, Items]], replaced: Memo) -> set[int]:
    touched, size = set(replaced), -1
    while size < len(touched):
        size = len(touched)
        touched |= {
            id(node) for _, node, items in reversed(visits) if any(id(item) in touched for _, item in items)
        }
    return touched


def _rebuild_functions(nodes: list[Any], touched: set[int], memo: Memo) -> None:
    functions = [node for node in nodes if isinstance(node, FunctionType)]  # first all, then their parts
    for node in functions:
        memo[id(node)] = _make_shell(node, touched, memo)
    for node in functions:
        _fill_shell(memo[id(node)], node, memo)
    for node in nodes:
        if isinstance(node, MethodType):
            function, owner = copy.deepcopy(node.__func__, memo), copy.deepcopy(node.__self__, memo)
            memo[id(node)] = MethodType(function, owner)


def _make_shell(function: FunctionType, touched: set[int], memo: Memo) -> FunctionType:
    cells = tuple(
        memo.setdefault(id(cell), CellType())
        if cell != CellType() and id(cell.cell_contents) in touched
        else cell
        for cell in function.__closure__ or ()
    )
    is_global = any(id(value) in touched for _, value in _list_globals(function))
    names = dict(function.__globals__) if is_global else function.__globals__
    return FunctionType(function.__code__, names, function.__name__, None, cells)


def _fill_shell(shell: FunctionType, function: FunctionType, memo: Memo) -> None:
    for cell, original in zip(shell.__closure__ or (), function.__closure__ or (), strict=True):
        if cell is not original:
            cell.cell_contents = copy.deepcopy(original.cell_contents, memo)
    if shell.__globals__ is not function.__globals__:
        for name, value in _list_globals(function):
            shell.__globals__[name] = copy.deepcopy(value, memo) if id(value) in memo else value
    shell.__defaults__ = copy.deepcopy(function.__defaults__, memo)
    shell.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__, memo)
    shell.__dict__.update(copy.deepcopy(function.__dict__, memo))
