"""A training step of two processes, each with its own batch: the model replicated, or sharded.

This worker is the first; it starts the second, ``python -m gate.measure.kinds.distributed``, commands it by a
byte each what to run, and both meet in torch's collectives. The plain model of a case stays as it is, for
the reference in float64; each process trains a copy that is spread over both.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

from gate import models
from gate.errors import UsageError
from gate.files import codec
from gate.measure.device.device import Device
from gate.measure.device.opening import open_device
from gate.measure.kinds.protocol import Protocol, Seen, join_workloads
from gate.measure.kinds.rank import RANKS, Command, Member, count_buckets
from gate.measure.process.checkout import take_models
from gate.measure.timing.rounds import Step
from gate.measure.workload.build import SEED, Function, Subject, build_workload
from gate.programs import die_with_parent, end_process
from gate.records import Case, Metric
from gate.workload import Workload

_SEED_STEP = 1000  # between the batches of two ranks
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # the second process has its own
_PEER = "peer"
# As a worker is started: what lies in the project's directory must not shadow a library or the gate.
_ARGUMENTS = ("-P", "-m", "gate.measure.kinds.distributed")
_POLL_S = 0.01  # how often the second process is looked after until it joins
_LOOPBACK = "lo"  # both processes are on one machine, whatever its name resolves to


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """All that the second process has to know."""

    case: Case
    device: str
    store: str  # the file where both meet
    threads: int
    parent: int
    models: str  # where the first process has the reference models from


class Distributed(Protocol):
    """An input of a case is a pair a rank: the positional arguments of its batch, and the keyword ones."""

    shares_state = False

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._member: Member | None = None
        self._peer: subprocess.Popen[bytes] | None = None
        self._threads = 0  # what torch had before the second process came

    def build(self, seed: int = SEED) -> Workload:
        """Call the factory once for each rank; the model is that of the first."""
        return join_workloads([build_workload(self.case, seed + _SEED_STEP * rank) for rank in range(RANKS)])

    def spread(self, function: Function) -> Function:
        """Average over the ranks' batches, in one process: what all of them together compute."""

        def average(*batches: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:  # noqa: ANN401 - any model's
            return sum(function(*inputs, **kwargs) for inputs, kwargs in batches) / RANKS

        return average

    def make_subject(self, workload: Workload, device: Device) -> Subject:
        """Build this process's part, and start the other.

        Raises:
            UsageError: There is no second device.
            RuntimeError: The other process has ended.
        """
        _check_devices(device)
        subject = super().make_subject(workload, device)
        store = Path(tempfile.mkdtemp(prefix="gate-ranks-")) / "store"
        self._threads = torch.get_num_threads()
        torch.set_num_threads(max(1, self._threads // RANKS))  # both share the cores: see torchrun
        self._peer = _start_peer(subject, str(store))
        _await_peer(self._peer, str(store))
        self._member = self.join(subject, workload, str(store), rank=0)
        return subject

    def join(self, subject: Subject, workload: Workload, store: str, *, rank: int) -> Member:
        """Meet the other process, and build this one's part."""
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
        backend = dist.get_default_backend_for_device(subject.device.name)
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
        return Member(subject, workload, rank)

    def make_eager_step(self, subject: Subject) -> Step:
        """Make one eager training step of both processes."""
        del subject
        return self._make_step(Command.EAGER)

    def make_compiled_step(self, subject: Subject, compiled: Function) -> Step:
        """Make one compiled training step of both processes."""
        del subject, compiled
        return self._make_step(Command.COMPILED)

    def compile(self, subject: Subject) -> Function:
        """Make a function from inputs to the loss, whose backward pass hands over the joint gradients."""

        def evaluate(*batches: Any) -> Any:  # noqa: ANN401 - the subject's own, which both processes have
            del batches
            with torch.enable_grad():
                loss, gradients = self._tell(Command.EVALUATE).evaluate()
            leaves = subject.name_leaves()
            return _Handed.apply(loss, [gradients.get(name) for name in leaves], *leaves.values())  # type: ignore[no-untyped-call] # torch's

        return evaluate

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Count the groups of parameters whose gradients are reduced together."""
        del subject, compiled, step
        assert self._member is not None  # noqa: S101 - make_subject comes first
        return Seen(samples={Metric.BUCKETS: (count_buckets(self._member.module),)})

    def close(self) -> None:
        """End the other process, which may wait for this one for ever, and leave the group."""
        if self._peer is not None:
            self._peer.kill()
            self._peer.communicate()
            if dist.is_initialized():
                dist.destroy_process_group()
            torch.set_num_threads(self._threads)

    def _make_step(self, command: Command) -> Step:
        return lambda: self._tell(command).run_step(command)

    def _tell(self, command: Command) -> Member:
        assert self._member is not None  # noqa: S101 - make_subject comes first
        assert self._peer is not None  # noqa: S101 - as well
        assert self._peer.stdin is not None  # noqa: S101 - a pipe
        try:
            self._peer.stdin.write(command.encode())
        except BrokenPipeError:
            raise _describe_end(self._peer) from None
        return self._member


PROTOCOL = Distributed


class _Handed(torch.autograd.Function):
    """A loss whose gradients are known already."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 - torch's
        loss: torch.Tensor,
        gradients: list[Any],
        *leaves: torch.Tensor,
    ) -> torch.Tensor:
        """Return the loss."""
        del leaves
        context.gradients = gradients
        return loss.clone()

    @staticmethod
    def backward(context: Any, *above: torch.Tensor) -> Any:  # noqa: ANN401 - torch's
        """Return the known gradients."""
        given = [None if one is None else one * above[0] for one in context.gradients]
        return None, None, *given


def _check_devices(device: Device) -> None:
    if device.kind.is_gpu and torch.cuda.device_count() < RANKS:
        message = "UNAVAILABLE: two processes need a GPU each, and a worker sees one"
        raise UsageError(message, "Leave the case out on a GPU.")


def _start_peer(subject: Subject, store: str) -> subprocess.Popen[bytes]:
    """Start the second process, with caches that hold what the first one's hold now: the toolchain."""
    device = subject.device.name
    order = Order(
        case=subject.case,
        device=f"{device.type}:{RANKS - 1}" if subject.device.kind.is_gpu else device.type,
        store=store,
        threads=torch.get_num_threads(),
        parent=os.getpid(),
        models=models.__path__[0],
    )
    variables = {**os.environ, **dict(_copy_caches()), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    peer = subprocess.Popen((sys.executable, *_ARGUMENTS), stdin=subprocess.PIPE, bufsize=0, env=variables)
    assert peer.stdin is not None  # noqa: S101 - a pipe
    with suppress(BrokenPipeError):  # it has ended: the code that waits for it says so
        peer.stdin.write(codec.dump(order).encode() + b"\n")
    return peer


def _await_peer(peer: subprocess.Popen[bytes], store: str) -> None:
    """Wait until the second process is about to join: torch waits for it there, though it may have ended.

    Raises:
        RuntimeError: It has.
    """
    while not _find_arrival(store).exists():
        if peer.poll() is not None:
            raise _describe_end(peer)
        time.sleep(_POLL_S)


def _find_arrival(store: str) -> Path:
    """The file that says that the second process is about to join."""
    return Path(store).with_name("arrived")


def _describe_end(peer: subprocess.Popen[bytes]) -> RuntimeError:
    return RuntimeError(f"the second process ended with status {peer.wait()}; see the log")


def _copy_caches() -> Iterator[tuple[str, str]]:
    """Copy this process's caches, unless a second process of this trial has left its own."""
    for name in _CACHES:
        if not (own := os.environ.get(name)):
            continue
        copied = Path(own).with_name(f"{Path(own).name}-{_PEER}")
        if Path(own).is_dir() and not copied.exists():
            shutil.copytree(own, copied)
        yield name, str(copied)


def main() -> None:
    """Be the second process."""
    commands = sys.stdin.buffer
    order = codec.decode(Order, json.loads(commands.readline()), "the order")
    die_with_parent(order.parent)
    take_models(order.models)
    torch.set_num_threads(order.threads)
    protocol = Distributed(order.case)
    workload = protocol.build()
    subject = Protocol.make_subject(protocol, workload, open_device(order.device))
    _find_arrival(order.store).touch()
    member = protocol.join(subject, workload, order.store, rank=RANKS - 1)
    while command := commands.read(1):
        if (wanted := Command(command.decode())) is Command.EVALUATE:
            member.evaluate()
        else:
            member.run_step(wanted)


if __name__ == "__main__":
    main()
    end_process(0)
