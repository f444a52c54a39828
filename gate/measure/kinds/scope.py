"""A model of which only a part is compiled, or of which repeated blocks are compiled once."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import cast

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gate.errors import UsageError
from gate.kinds import Part, get_setting
from gate.measure.kinds.protocol import Protocol
from gate.measure.workload.build import Function, Subject, compile_function, make_function


class Scope(Protocol):
    """The compiled side is a copy of the module that shares its tensors, since eager has none of it."""

    def compile(self, subject: Subject) -> Function:
        """Mark or compile the part in the copy; what is around a compiled part stays eager, the loss too."""
        if not isinstance(subject.forward, nn.Module):
            fix = "Give the Workload a torch.nn.Module as its forward, or remove `kind: scope`."
            raise UsageError("a function has no parts to compile", fix)
        part = get_setting(self.case, "part", Part)
        names = [find_hottest(subject)] if part is Part.HOTTEST else list_blocks(subject.forward)
        module = share_tensors(subject.forward)
        blocks = {name: module.get_submodule(name) for name in names}
        whole = make_function(module, subject.loss, self.case.task)
        if part is Part.REGIONS:
            mark_regions(list(blocks.values()))
            return compile_function(whole, self.case)
        for name, block in blocks.items():
            compiled = cast("nn.Module", compile_function(block, self.case))  # of a module it is one
            module.set_submodule(name, compiled)
        return whole


PROTOCOL = Scope


def share_tensors(module: nn.Module) -> nn.Module:
    """Copy a module; parameters and buffers are the original's."""
    return copy.deepcopy(module, {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())})


def list_blocks(module: nn.Module) -> list[str]:
    """List the names of the repeated blocks: what the module's outermost lists hold.

    Raises:
        UsageError: It has no list of modules.
    """
    if found := list(_walk_blocks(module)):
        return found
    fix = "Hold them in a torch.nn.ModuleList or torch.nn.Sequential, or compile another `part`."
    raise UsageError("the model has no list of blocks", fix)


def mark_regions(blocks: list[nn.Module]) -> None:
    """Let the compiler compile the code of each class of blocks once.

    Each class gets a marked subclass, since eager has the class itself. The forward of a block alone cannot
    be marked: torch 2.13 takes such functions for one, and all blocks compute with the first one's weights.
    """
    marked: dict[type[nn.Module], type[nn.Module]] = {}
    for block in blocks:
        own = type(block)
        if own not in marked:
            region = torch.compiler.nested_compile_region(own.forward)
            marked[own] = type(own.__name__, (own,), {"forward": region})
        block.__class__ = marked[own]


def find_hottest(subject: Subject) -> str:
    """Find the submodule with the most floating-point operations of a call, of those that hold no blocks.

    Counted, not timed: it is the same in every trial. Of equals it is the first.
    """
    with FlopCounterMode(display=False) as counter:
        subject.function(*subject.inputs, **subject.kwargs)
    counts = {
        name.partition(".")[2]: sum(found.values()) for name, found in counter.get_flop_counts().items()
    }
    known = subject.forward.named_modules() if isinstance(subject.forward, nn.Module) else ()
    parts = [name for name, one in known if name and counts.get(name) and not list(_walk_blocks(one))]
    if not parts:
        fix = "Compile another `part`, or the whole model."
        raise UsageError("no submodule has products, convolutions or attention of its own", fix)
    hottest: str = max(parts, key=lambda name: counts[name])
    return hottest


def _walk_blocks(module: nn.Module, prefix: str = "") -> Iterator[str]:
    for name, child in module.named_children():
        if isinstance(child, (nn.ModuleList, nn.Sequential)):
            yield from (f"{prefix}{name}.{inner}" for inner, _ in child.named_children())
        else:
            yield from _walk_blocks(child, f"{prefix}{name}.")
