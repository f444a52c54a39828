"""Walking nested values: what a model gets and returns, of whatever types it is made."""

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from gate.errors import UsageError

# What nothing is looked for in. A module's tensors are its own, a set has no order to name items by.
_WHOLE = (
    torch.Tensor,
    torch.nn.Module,
    type(None),
    str,
    bytes,
    int,
    float,
    complex,
    Enum,
    AbstractSet,
    type,
    torch.dtype,
    torch.device,
    torch.Size,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    ModuleType,
)
# The standard library's own objects are locks, files, loggers; but these hold what is put into them.
_CLOSED_MODULES = sys.stdlib_module_names - {"builtins", "collections", "types", "argparse"}

Items = list[tuple[str, Any]]
Visit = tuple[str, Any, Items]  # where, what, and what is in it; nothing is in a leaf


def iterate_leaves(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any model's
    """Yield all parts of a value, with their paths, e.g. ``[0].logits``; the root's is empty.

    It goes through tuples, lists, mappings, dataclasses, what is registered with torch's pytrees, and the
    attributes of other objects. An empty container is a leaf, and so is what it cannot look into.
    """
    return ((path, leaf) for path, leaf, items in visit(value) if not items)


def iterate_tensors(value: Any) -> Iterator[tuple[str, torch.Tensor]]:  # noqa: ANN401 - any model's
    return ((path, leaf) for path, leaf in iterate_leaves(value) if isinstance(leaf, torch.Tensor))


def compare_leaves(left: Any, right: Any) -> bool | None:  # noqa: ANN401 - any model's
    """Compare two leaves that are no tensors: ``None`` where it is unknown whether they are the same."""
    if left is right:
        return True
    if is_opaque(left) or is_opaque(right):
        return None
    if type(left) is not type(right):
        return False
    try:
        same = (left == right) | ((left != left) & (right != right))  # noqa: PLR0124 - NaN
        return bool(same.all() if hasattr(same, "all") else same)
    except Exception:  # noqa: BLE001 - whatever an object's own comparison does
        return None


def is_opaque(leaf: object) -> bool:
    """Whether a leaf may hold what cannot be seen: ``==`` shows only whether two of them are one object."""
    if isinstance(leaf, AbstractSet):
        return any(isinstance(member, torch.Tensor) or is_opaque(member) for member in leaf)
    if isinstance(leaf, (torch.Tensor, type(None), type, torch.dtype)):
        return False
    return type(leaf).__eq__ is object.__eq__


def is_foreign(leaf: object) -> bool:
    return hasattr(leaf, "__array_interface__") or (is_opaque(leaf) and not callable(leaf))


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:  # noqa: ANN401 - any model's
    """Copy a value with ``function`` applied once to every tensor.

    What cannot be looked into, as a lock, is the same object in the copy.

    Raises:
        UsageError: It holds tensors, and cannot be copied with others in their place.
    """
    visits = list(visit(value))  # holds all of it, so that ids stay its own
    memo: dict[int, Any] = {}  # of deepcopy: what stands for an object in the copy
    devices = {}
    for path, leaf, items in visits:
        if isinstance(leaf, torch.Tensor) and id(leaf) not in memo:
            memo[id(leaf)] = mapped = function(leaf)
            devices[leaf.device] = mapped.device
        elif isinstance(leaf, AbstractSet) and not items and any(True for _ in iterate_tensors(list(leaf))):
            message = f"{path or 'what was given'} is a set of tensors, which has no order to name them by"
            raise UsageError(message, "Give a list or a tuple.")
    for _, leaf, items in visits:
        if isinstance(leaf, torch.device):  # where an object has its tensors
            memo[id(leaf)] = devices.get(leaf, leaf)
        elif not items and is_opaque(leaf):
            memo[id(leaf)] = leaf
    return _copy_with(value, visits, memo)


def _copy_with(value: Any, visits: list[Visit], memo: dict[int, Any]) -> Any:  # noqa: ANN401 - see above
    wanted = [memo[id(leaf)] for _, leaf, _ in visits if isinstance(leaf, torch.Tensor)]
    try:
        for _, node, items in reversed(visits):  # what is within a node comes after it
            if items and type(node) in pytree.SUPPORTED_NODES and id(node) not in memo:
                memo[id(node)] = _rebuild_node(node, memo)
        copied = copy.deepcopy(value, memo)
    except Exception as error:
        raise _make_refusal(visits, f"{type(error).__name__}: {error}") from error
    tensors = [tensor for _, tensor in iterate_tensors(copied)]
    if len(tensors) != len(wanted) or any(
        tensor is not expected for tensor, expected in zip(tensors, wanted, strict=True)
    ):
        raise _make_refusal(visits, "its copy holds other tensors")
    return copied


def _rebuild_node(node: Any, memo: dict[int, Any]) -> Any:  # noqa: ANN401 - see above
    spec = pytree.SUPPORTED_NODES[type(node)]
    items, context = spec.flatten_fn(node)
    return spec.unflatten_fn([copy.deepcopy(item, memo) for item in items], context)


def _make_refusal(visits: list[Visit], why: str) -> UsageError:
    kinds = (type(node) for _, node, items in visits if items)
    named = dict.fromkeys(kind.__qualname__ for kind in kinds if kind.__module__ != "builtins")
    fix = "Give the tensors in a tuple, a dict or a dataclass."
    return UsageError(f"{', '.join(named) or 'a value'} cannot be copied with other tensors: {why}", fix)


def visit(value: Any) -> Iterator[Visit]:  # noqa: ANN401 - see above
    """Visit a value and all that is in it, a node before what it holds; an object of attributes once."""
    todo: list[tuple[str, Any, tuple[Any, ...]]] = [("", value, ())]
    opened: dict[int, Any] = {}
    while todo:
        path, node, above = todo.pop()
        if id(node) in opened or any(outer is node for outer in above):
            continue
        items = list_items(node)
        if items and not _is_container(node):
            opened[id(node)] = node
        yield path, node, items
        todo.extend((path + key, item, (*above, node)) for key, item in reversed(items))


def list_items(node: Any) -> Items:  # noqa: ANN401 - see above
    if isinstance(node, _WHOLE):
        return []
    if isinstance(node, PackedSequence):  # its batch sizes are whole numbers that stay on the processor
        names = ("data", "sorted_indices", "unsorted_indices")
        sizes = node.batch_sizes.tolist()
        return [(".batch_sizes", sizes), *((f".{name}", getattr(node, name)) for name in names)]
    if spec := pytree.SUPPORTED_NODES.get(type(node)):
        if spec.flatten_with_keys_fn:
            return [(str(key), item) for key, item in spec.flatten_with_keys_fn(node)[0]]
        return _number(spec.flatten_fn(node)[0])
    if not _is_container(node):
        return _list_attributes(node)
    return (
        [(f"[{key!r}]", item) for key, item in node.items()] if isinstance(node, Mapping) else _number(node)
    )


def _is_container(node: Any) -> bool:  # noqa: ANN401 - see above
    return isinstance(node, (Mapping, tuple, list)) or type(node) in pytree.SUPPORTED_NODES


def _number(items: Iterable[Any]) -> Items:
    return [(f"[{index}]", item) for index, item in enumerate(items)]


def _list_attributes(node: Any) -> Items:  # noqa: ANN401 - see above
    modules = {kind.__module__.partition(".")[0] for kind in type(node).__mro__[:-1]}  # `object` is the last
    if modules <= _CLOSED_MODULES:
        return []
    try:
        state = object.__getstate__(node)  # what any object has to be copied
    except TypeError:
        return []
    parts = state if isinstance(state, tuple) else (state,)
    return [(f".{name}", item) for part in parts if part for name, item in part.items()]


def list_held(module: torch.nn.Module) -> list[torch.Tensor]:
    return [*module.parameters(), *module.buffers()]


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
    """Convert in place all that a module holds; its own ``to(dtype)`` makes complex numbers real."""
    module._apply(lambda tensor: convert_tensor(tensor, device, dtype))  # type: ignore[no-untyped-call] # noqa: SLF001 - as `to` does


def copy_module(module: torch.nn.Module, device: torch.device | str, dtype: torch.dtype) -> torch.nn.Module:
    """Copy a module; each tensor is converted as it is copied, so there is no plain copy of all."""
    converted: dict[int, Any] = {
        id(tensor): _copy_converted(tensor, device, dtype)
        for tensor in list_held(module)
        if type(tensor) in {torch.Tensor, torch.nn.Parameter}
    }
    copied = copy.deepcopy(module, converted)
    convert_module(copied, device, dtype)  # what is no plain tensor, and what it keeps of them
    return copied


def _copy_converted(tensor: torch.Tensor, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    plain = tensor.detach()
    converted = convert_tensor(plain, device, dtype)
    if converted is plain:  # it was so already
        converted = plain.clone()
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(converted, tensor.requires_grad)
    return converted.requires_grad_(tensor.requires_grad)


def compute_bytes(tensors: Iterator[torch.Tensor] | list[torch.Tensor]) -> int:
    """Compute the bytes that the tensors' storages hold, each storage once."""
    plain = (part for tensor in tensors for part in _list_plain(tensor))
    storages = {storage.data_ptr(): storage.nbytes() for storage in (t.untyped_storage() for t in plain)}
    return sum(storages.values())


def _list_plain(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if not is_traceable_wrapper_subclass(tensor):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()
    for name in names:
        yield from _list_plain(getattr(tensor, name))
