"""A training step of two processes, each with its own batch: the model replicated, or sharded."""

from __future__ import annotations

import copy
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from gate import models
from gate.errors import UsageError
from gate.kinds import Strategy, get_setting
from gate.measure.checkout import take_models
from gate.measure.device.choice import open_device
from gate.measure.device.device import Device
from gate.measure.kinds.protocol import Protocol, Seen, join_workloads
from gate.measure.rounds import Step
from gate.measure.workload.build import (
    SEED,
    Function,
    Subject,
    build_workload,
    compile_function,
    make_function,
)
from gate.measure.workload.tensors import list_held
from gate.programs import die_with_parent, end_process
from gate.records.cases import Case, Metric
from gate.workload import Workload

RANKS = 2
_SEED_STEP = 1000  # between the batches of two ranks
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # the second process has its own
_LOOPBACK = "lo"  # both processes are on one machine, whatever its name resolves to


class Command(StrEnum):
    EAGER = "e"  # a training step
    COMPILED = "c"  # the same of the compiled model
    EVALUATE = "v"  # take the first process's numbers over, and compute gradients by the compiled model


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    case: Case
    device: str
    store: str  # the file where both meet
    threads: int
    parent: int
    models: str  # where the first process has the reference models from


class Distributed(Protocol):
    """An input of a case is what one rank's batch is called with: positional and keyword arguments."""

    shares_state = False
    calls_follow = False  # each takes the first process's numbers over
    # Once there is a subject.
    _member: Member
    _line: Connection  # to the second process

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._peer: BaseProcess | None = None
        self._store: tempfile.TemporaryDirectory[str] | None = None  # of the file where both meet
        self._threads = 0  # what torch had before the second process came

    def build(self, seed: int = SEED) -> Workload:
        return join_workloads([build_workload(self.case, seed + _SEED_STEP * rank) for rank in range(RANKS)])

    def spread(self, function: Function) -> Function:
        def average(*batches: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:  # noqa: ANN401 - any model's
            return sum(function(*inputs, **kwargs) for inputs, kwargs in batches) / RANKS

        return average

    def make_subject(self, workload: Workload, device: Device) -> Subject:
        """Build this process's part, and start the other.

        Raises:
            UsageError: There is no second device.
            RuntimeError: The other process has ended.
        """
        if device.kind.is_gpu and torch.cuda.device_count() < RANKS:
            message = "UNAVAILABLE: two processes need a GPU each, and a worker sees one"
            raise UsageError(message, "Leave the case out on a GPU.")
        subject = super().make_subject(workload, device)
        self._store = tempfile.TemporaryDirectory(prefix="gate-ranks-", ignore_cleanup_errors=True)
        store = str(Path(self._store.name) / "store")
        self._threads = torch.get_num_threads()
        torch.set_num_threads(max(1, self._threads // RANKS))  # both share the cores: see torchrun
        self._start_peer(subject, store)
        self._member = self.join(subject, store, rank=0)
        return subject

    def join(self, subject: Subject, store: str, *, rank: int) -> Member:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
        backend = dist.get_default_backend_for_device(subject.device.name)
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
        return Member(subject, rank)

    def make_eager_step(self, subject: Subject) -> Step:
        return self._make_step(Command.EAGER)

    def make_compiled_step(self, subject: Subject, compiled: Function) -> Step:
        return self._make_step(Command.COMPILED)

    def compile(self, subject: Subject) -> Function:
        def evaluate(*_: Any) -> Any:  # noqa: ANN401 - the subject's own, which both processes have
            with torch.enable_grad():
                loss, gradients = self._send(Command.EVALUATE).evaluate()
            for name, leaf in subject.list_named_leaves().items():
                leaf.grad = gradients.get(name)
            return loss.requires_grad_()  # a leaf: its backward pass adds to no other

        return evaluate

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        return Seen(samples={Metric.BUCKETS: (count_buckets(self._member.module),)})

    def close(self) -> None:
        """End the other process, which may wait for this one for ever, and leave the group."""
        if self._store is None:
            return
        if self._peer is not None:
            self._peer.kill()
            self._peer.join()
        if dist.is_initialized():
            dist.destroy_process_group()
        torch.set_num_threads(self._threads)
        self._store.cleanup()

    def _make_step(self, command: Command) -> Step:
        return lambda: self._send(command).run_step(command)

    def _send(self, command: Command) -> Member:
        try:
            self._line.send_bytes(command.encode())
        except OSError:
            raise self._describe_end() from None
        return self._member

    def _start_peer(self, subject: Subject, store: str) -> None:
        device = subject.device.name
        order = Order(
            case=subject.case,
            device=f"{device.type}:{RANKS - 1}" if subject.device.kind.is_gpu else device.type,
            store=store,
            threads=torch.get_num_threads(),
            parent=os.getpid(),
            models=models.__path__[0],
        )
        context = multiprocessing.get_context("spawn")
        self._line, line = context.Pipe()
        peer = context.Process(target=_serve, args=(order, line), daemon=True)
        with patch.dict(os.environ, dict(_copy_caches())):
            peer.start()
        self._peer = peer
        line.close()  # else its end is not seen
        try:
            self._line.recv_bytes()
        except EOFError:
            raise self._describe_end() from None

    def _describe_end(self) -> RuntimeError:
        assert self._peer is not None  # noqa: S101 - it was started
        self._peer.join()
        return RuntimeError(f"the second process ended with status {self._peer.exitcode}; see the log")


def _copy_caches() -> Iterator[tuple[str, str]]:
    for name in _CACHES:
        if not (directory := os.environ.get(name)):
            continue
        copied = Path(directory).with_name(f"{Path(directory).name}-peer")
        if Path(directory).is_dir() and not copied.exists():
            shutil.copytree(directory, copied)
        yield name, str(copied)


def _serve(order: Order, line: Connection) -> None:
    die_with_parent(order.parent)
    take_models(order.models)
    torch.set_num_threads(order.threads)
    protocol = Distributed(order.case)
    caches = {name: os.environ[name] for name in _CACHES if name in os.environ}
    subject = Protocol.make_subject(protocol, protocol.build(), open_device(order.device))
    os.environ.update(caches)  # whatever the factory made of them
    line.send_bytes(b"joining")
    member = protocol.join(subject, order.store, rank=RANKS - 1)
    while True:
        try:
            command = Command(line.recv_bytes().decode())
        except EOFError:
            end_process(0)
        if command is Command.EVALUATE:
            member.evaluate()
        else:
            member.run_step(command)


class Member:
    def __init__(self, subject: Subject, rank: int) -> None:
        plain, make_optimizer = subject.workload.forward, subject.workload.optimizer
        if not isinstance(plain, nn.Module):
            fix = "Give the Workload a torch.nn.Module as its forward, or remove `kind: distributed`."
            raise UsageError("only a module is spread over processes", fix)
        self._subject, self._plain, self._rank = subject, plain, rank
        self._copied = model = copy.deepcopy(plain)
        if get_setting(subject.case, "strategy", Strategy) is Strategy.FSDP2:
            self.module = _shard(model, subject.device)
        else:
            bucket_mib = get_setting(subject.case, "bucket_mib", float)
            self.module = DistributedDataParallel(model, bucket_cap_mb=bucket_mib)
        leaves = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._optimizer = make_optimizer(leaves) if make_optimizer else None
        self._functions = {
            Command.EAGER: self._make_function(self.module),
            Command.COMPILED: self._make_function(compile_function(self.module, subject.case)),
        }

    def run_step(self, command: Command) -> None:
        self._call(command).backward()  # type: ignore[no-untyped-call] # torch's
        if self._optimizer is not None:
            self._optimizer.step()
        self._copied.zero_grad()

    def evaluate(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        self._take_over()
        loss = self._call(Command.COMPILED)
        loss.backward()  # type: ignore[no-untyped-call] # torch's
        gradients = {
            name: (parameter.grad.full_tensor() if isinstance(parameter.grad, DTensor) else parameter.grad)
            .detach()
            .clone()
            for name, parameter in self._copied.named_parameters()
            if parameter.grad is not None
        }
        self._copied.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean / RANKS, gradients

    def _call(self, command: Command) -> torch.Tensor:
        inputs, kwargs = self._subject.workload.inputs[self._rank]
        loss: torch.Tensor = self._functions[command](*inputs, **kwargs)
        return loss

    def _make_function(self, forward: Function) -> Function:
        """The loss stays eager, as in a training loop: torch.compile gets the spread module itself."""
        return make_function(forward, self._subject.workload.loss, self._subject.case.task)

    def _take_over(self) -> None:
        with torch.no_grad():
            for tensor in self._subject.list_state():
                dist.broadcast(tensor, src=0)
            for sharded, plain in zip(list_held(self._copied), list_held(self._plain), strict=True):
                sharded.copy_(
                    distribute_tensor(plain, sharded.device_mesh, sharded.placements)
                    if isinstance(sharded, DTensor)
                    else plain
                )


def count_buckets(module: nn.Module) -> int:
    if isinstance(module, DistributedDataParallel):
        logged = module._get_ddp_logging_data()  # type: ignore[no-untyped-call] # noqa: SLF001 - no public way
        sizes = str(logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes", ""))
        return len([size for size in sizes.split(",") if size.strip()])
    return sum(isinstance(part, FSDPModule) for part in module.modules())


def _shard(module: nn.Module, device: Device) -> nn.Module:
    mesh = init_device_mesh(device.name.type, (RANKS,))
    for inner in module.modules():
        for block in inner if isinstance(inner, nn.ModuleList) else ():
            fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)  # in place
    return module
