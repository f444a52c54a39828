"""Cases of the registry with one fault each, in the build while ``planted.json`` beside this file says so.

``kind_faults.py`` copies this file into a project of its own. A fault comes in where a user's change would:
through the factory, whose case keeps its definition.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader

from gate.measure.kinds import variants
from gate.measure.workload.build import Subject, load_factory
from gate.workload import Workload

ODD_LENGTH = 64  # the last of the lengths over which `tokens` passes
DRIFT = 1e-4  # relative; a float32 block's own error is some 1e-7
SALT = 1e-12  # makes a constant too small to matter of a process id
STALL_S = 0.2  # of reading one batch: two workers cannot hide it behind a busy machine's training steps
SPIKE_S, SPIKE_CALLS = 0.6, 40  # of every 40th call after a pause: two or three of a hundred requests
PAUSE_S = 0.01  # between requests; blocks of calls have none

Around = Callable[[Any, Any], Any]  # gets the inputs and the outputs, returns the outputs


class Wrapped(nn.Module):
    """A module whose outputs pass through ``after``."""

    def __init__(self, inner: nn.Module, after: Around) -> None:
        super().__init__()
        self.inner, self.after = inner, after

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        """Call the module."""
        return self.after((inputs, kwargs), self.inner(*inputs, **kwargs))


def build(*, factory: str, fault: str, arguments: Mapping[str, Any], **varied: object) -> Workload:
    """Build what ``factory`` builds, with ``fault`` in it where it is planted; ``varied`` is the shape's."""
    planted = json.loads(Path(__file__).with_name("planted.json").read_text())
    whole = {**arguments, **varied}
    return FAULTS[fault](factory, whole) if planted else build_plain(factory, whole)


def build_plain(factory: str, arguments: Mapping[str, Any]) -> Workload:
    """Build what the registry's factory builds."""
    workload = load_factory(factory)(**arguments)
    assert isinstance(workload, Workload)  # noqa: S101 - told to mypy
    return workload


class _Integers(nn.Module):
    """A linear layer whose weights are bytes and a scale a row, as weight-only quantization makes it."""

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        exact = torch.randn(out, width) / width**0.5
        scale = exact.abs().amax(1) / 127
        self.register_buffer("weight", (exact / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Multiply by the integers, then by the scale."""
        return functional.linear(value, self.weight.to(value.dtype)) * self.scale


class _Floats(nn.Module):
    """The same numbers as a layer of floats: what a quantizer leaves where it does not know the layer."""

    def __init__(self, layer: _Integers) -> None:
        super().__init__()
        self.weight = nn.Parameter(layer.weight.float() * layer.scale[:, None])

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Multiply by the floats."""
        return functional.linear(value, self.weight)


def build_integers(*, batch: int, width: int, depth: int, fallen: int = 0) -> Workload:
    """Build ``depth`` layers of integers, of which the first ``fallen`` are floats."""
    layers = [_Integers(width, width) for _ in range(depth)]
    stack = [_Floats(layer) if index < fallen else layer for index, layer in enumerate(layers)]
    return Workload(forward=nn.Sequential(*stack), inputs=(torch.randn(batch, width),))


_CALLS = {"paused": 0, "ended_s": 0.0}


@torch.library.custom_op("kind_faults::wait_now_and_then", mutates_args=())
def wait_now_and_then(value: torch.Tensor) -> torch.Tensor:
    """Copy ``value``, and wait at every 40th call that comes after a pause."""
    if time.perf_counter() - _CALLS["ended_s"] > PAUSE_S:
        _CALLS["paused"] += 1
        if _CALLS["paused"] % SPIKE_CALLS == 0:
            time.sleep(SPIKE_S)
    _CALLS["ended_s"] = time.perf_counter()
    return value.clone()


wait_now_and_then.register_fake(torch.empty_like)


def _map_tensors(change: Callable[[torch.Tensor], torch.Tensor], outputs: Any) -> Any:  # noqa: ANN401 - any model's
    """Change tensors by pytrees, which Dynamo knows: this is compiled with the model."""
    return pytree.tree_map_only(torch.Tensor, change, outputs)


def _ask_for_a_size(factory: str, arguments: Mapping[str, Any]) -> Workload:
    def after(inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - any model's
        length = next(filter(torch.is_tensor, pytree.tree_leaves(inputs))).shape[1]
        return _map_tensors(lambda tensor: tensor + 1, outputs) if length == ODD_LENGTH else outputs

    return _wrap(factory, arguments, after)


def _drift(factory: str, arguments: Mapping[str, Any]) -> Workload:
    def after(inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - any model's
        del inputs
        is_compiled = torch.compiler.is_compiling()
        return _map_tensors(lambda tensor: tensor * (1 + DRIFT), outputs) if is_compiled else outputs

    return _wrap(factory, arguments, after)


def _differ_by_process(factory: str, arguments: Mapping[str, Any]) -> Workload:
    salt = os.getpid()  # a whole number, which Dynamo takes for a constant

    def after(inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - any model's
        del inputs
        return _map_tensors(lambda tensor: tensor + salt * SALT, outputs)

    return _wrap(factory, arguments, after)


class _Far(tuple[Any, ...]):
    """Batches that are read slowly, as from a disk that is far away."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - any model's inputs
        time.sleep(STALL_S)
        return super().__getitem__(index)


def _stall(factory: str, arguments: Mapping[str, Any]) -> Workload:
    make = variants.make_loader

    def make_far(subject: Subject, workers: int) -> DataLoader[Any]:
        far = replace(subject.workload, inputs=_Far(subject.workload.inputs))
        return make(replace(subject, workload=far), workers)

    if "far" not in make.__name__:  # the factory is called once a batch
        variants.make_loader = make_far
    return build_plain(factory, arguments)


def _spike(factory: str, arguments: Mapping[str, Any]) -> Workload:
    def after(inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - any model's
        del inputs
        return _map_tensors(wait_now_and_then, outputs) if torch.compiler.is_compiling() else outputs

    return _wrap(factory, arguments, after)


def _keep_activations(factory: str, arguments: Mapping[str, Any]) -> Workload:
    return build_plain(factory, {**arguments, "checkpointed": False})


def _fall_back(factory: str, arguments: Mapping[str, Any]) -> Workload:
    return build_plain(factory, {**arguments, "fallen": 1})


def _leave_a_block_out(factory: str, arguments: Mapping[str, Any]) -> Workload:
    """Leave the first block to eager, as a decorator does that somebody forgot."""
    workload = build_plain(factory, arguments)
    block = _list_blocks(workload)[0]
    leave_out: Any = torch.compiler.disable  # it has no types
    block.forward = leave_out(block.forward)
    return workload


def _tell_blocks_apart(factory: str, arguments: Mapping[str, Any]) -> Workload:
    """Let blocks be alike no more: the code of the first does not serve the others."""
    workload = build_plain(factory, arguments)
    for index, block in enumerate(_list_blocks(workload)):
        norm: Any = next(module for module in block.modules() if hasattr(module, "variance_epsilon"))
        norm.variance_epsilon = 1e-6 * (1 + index * 1e-3)
    return workload


def _list_blocks(workload: Workload) -> list[nn.Module]:
    assert isinstance(workload.forward, nn.Module)  # noqa: S101 - the registry's are; told to mypy
    return [workload.forward.get_submodule(name) for name in variants.list_blocks(workload.forward)]


def _reduce_coarsely(factory: str, arguments: Mapping[str, Any]) -> Workload:
    """Let gradients travel as float16, as a hook that saves bandwidth does."""
    make = DistributedDataParallel.__init__

    def make_coarse(self: DistributedDataParallel, *inputs: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
        make(self, *inputs, **kwargs)
        self.register_comm_hook(None, fp16_compress_hook)

    if make.__name__ != make_coarse.__name__:  # the factory is called once a rank
        DistributedDataParallel.__init__ = make_coarse  # type: ignore[method-assign] # the fault
    return build_plain(factory, arguments)


def _wrap(factory: str, arguments: Mapping[str, Any], after: Around) -> Workload:
    workload = build_plain(factory, arguments)
    assert isinstance(workload.forward, nn.Module)  # noqa: S101 - the registry's are; told to mypy
    return replace(workload, forward=Wrapped(workload.forward, after))


FAULTS: Mapping[str, Callable[[str, Mapping[str, Any]], Workload]] = {
    "a length that code asks for": _ask_for_a_size,
    "exported code off by 1e-4": _drift,
    "a constant that is another in every process": _differ_by_process,
    "a dataset that takes 0.2 s a batch": _stall,
    "every 40th request takes 0.6 s": _spike,
    "activations kept after all": _keep_activations,
    "one of four quantized layers left in floats": _fall_back,
    "a block that the compiler is told to leave out": _leave_a_block_out,
    "a number of each block's own that its code reads": _tell_blocks_apart,
    "gradients that travel as float16": _reduce_coarsely,
}
