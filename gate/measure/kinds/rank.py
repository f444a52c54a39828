"""What each of the two processes of a distributed case has: a copy of the model and a batch."""

from __future__ import annotations

import copy
from enum import StrEnum
from typing import cast

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from gate.errors import UsageError
from gate.kinds import Strategy, get_setting
from gate.measure.device.device import Device
from gate.measure.workload.build import Function, Subject, compile_function, make_function
from gate.records import Case
from gate.workload import Workload

RANKS = 2


class Command(StrEnum):
    """Commands for the second process, a byte each; it ends when none come any more."""

    EAGER = "e"  # a training step
    COMPILED = "c"  # the same of the compiled model
    EVALUATE = "v"  # take the first process's numbers over, and compute gradients by the compiled model


class Member:
    """One process's part in a case: its copy of the model, its batch and its optimizer."""

    def __init__(self, subject: Subject, workload: Workload, rank: int) -> None:
        plain = subject.forward
        if not isinstance(plain, nn.Module):
            fix = "Give the Workload a torch.nn.Module as its forward, or remove `kind: distributed`."
            raise UsageError("only a module is spread over processes", fix)
        self._subject, self._plain, self._rank = subject, plain, rank
        strategy = Strategy(cast("str", get_setting(subject.case, "strategy")))
        own = copy.deepcopy(plain)
        self.module = (
            _shard(own, subject.device) if strategy is Strategy.FSDP2 else _replicate(own, subject.case)
        )
        self._own = own
        leaves = [one for one in own.parameters() if one.requires_grad]
        self._optimizer = workload.optimizer(leaves) if workload.optimizer else None
        self._functions = {
            Command.EAGER: self._make_function(self.module),
            Command.COMPILED: self._make_function(compile_function(self.module, subject.case)),
        }

    def run_step(self, command: Command) -> None:
        """Run a training step; the other process has to run it as well."""
        self._call(command).backward()  # type: ignore[no-untyped-call] # torch's
        if self._optimizer is not None:
            self._optimizer.step()
        self._drop_gradients()

    def evaluate(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Compute mean loss and gradients with the numbers that the first process's plain model has."""
        self._take_over()
        loss = self._call(Command.COMPILED)
        loss.backward()  # type: ignore[no-untyped-call] # torch's
        gradients = {
            name: _join(one.grad.detach())
            for name, one in self._own.named_parameters()
            if one.grad is not None
        }
        self._drop_gradients()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean / RANKS, gradients

    def _call(self, command: Command) -> torch.Tensor:
        inputs, kwargs = self._subject.inputs[self._rank]
        loss: torch.Tensor = self._functions[command](*inputs, **kwargs)
        return loss

    def _make_function(self, forward: Function) -> Function:
        """The loss stays eager, as in a training loop: torch.compile is given the spread module itself."""
        return make_function(forward, self._subject.loss, self._subject.case.task)

    def _take_over(self) -> None:
        with torch.no_grad():
            for tensor in self._subject.list_state():
                dist.broadcast(tensor, src=0)
            numbers = ([*one.parameters(), *one.buffers()] for one in (self._own, self._plain))
            for own, plain in zip(*numbers, strict=True):
                own.copy_(_spread_like(own, plain))

    def _drop_gradients(self) -> None:
        for one in self._own.parameters():
            one.grad = None


def count_buckets(module: nn.Module) -> int:
    """Count the gradients' buckets of a replicated model, or the groups of a sharded one."""
    if isinstance(module, DistributedDataParallel):
        logged = module._get_ddp_logging_data()  # type: ignore[no-untyped-call] # noqa: SLF001 - no public way
        sizes = str(logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes", ""))
        return len([one for one in sizes.split(",") if one.strip()])
    return sum(isinstance(one, FSDPModule) for one in module.modules())


def _replicate(module: nn.Module, case: Case) -> nn.Module:
    bucket_mib = float(cast("float", get_setting(case, "bucket_mib")))
    return DistributedDataParallel(module, bucket_cap_mb=bucket_mib)


def _shard(module: nn.Module, device: Device) -> nn.Module:
    """Shard each block of a list of modules by itself, and the rest together, as training code does."""
    mesh = init_device_mesh(device.name.type, (RANKS,))
    for inner in module.modules():
        for block in inner if isinstance(inner, nn.ModuleList) else ():
            fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)  # in place
    return module


def _spread_like(own: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
    return distribute_tensor(plain, own.device_mesh, own.placements) if isinstance(own, DTensor) else plain


def _join(gradient: torch.Tensor) -> torch.Tensor:
    whole: torch.Tensor = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
    return whole.clone()
