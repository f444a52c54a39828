"""Two real processes that train one model, and what is reported if one is gone."""

import multiprocessing.resource_tracker
import multiprocessing.spawn
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import torch

from gate.errors import UsageError
from gate.kinds import Strategy
from gate.measure.device.cpu import CpuDevice
from gate.measure.kinds.distributed import Distributed, Member
from gate.measure.kinds.protocol import Protocol, make_protocol
from gate.measure.numerics import reference
from gate.measure.workload.build import Subject, make_subject
from gate.records.cases import Case, Kind, Metric, Task
from gate.workload import Workload

MODEL = """\
import torch
from gate.workload import Workload


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(512, 512) for _ in range(2)])

    def forward(self, value):
        for layer in self.layers:
            value = torch.tanh(layer(value))
        return value


def build():
    return Workload(
        forward=Stack(),
        inputs=(torch.randn(4, 512),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    )
"""
OPENED: list[Protocol] = []


@pytest.fixture(autouse=True)
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let both processes find the factory; end them after the test."""
    (tmp_path / "made_up_ranks.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    while OPENED:
        OPENED.pop().close()
    torch.compiler.reset()
    assert not list(scratch.glob("gate-ranks-*")), "the directory where both meet is left"


def prepare(strategy: Strategy) -> tuple[Protocol, Subject]:
    """Start both processes; the backend runs the captured graph as it is."""
    settings = {"strategy": strategy.value, "bucket_mib": 1}
    case = Case(
        id="m/c",
        model="m",
        factory="made_up_ranks:build",
        task=Task.TRAINING,
        kind=Kind.DISTRIBUTED,
        backend="eager",
        settings=settings,
    )
    protocol = make_protocol(case)
    OPENED.append(protocol)
    return protocol, protocol.make_subject(protocol.build(), CpuDevice())


# Two layers of 512 x 512 floats are 1 MiB each: a bucket each; of the sharded model each layer and the rest.
@pytest.mark.parametrize(("strategy", "buckets"), [(Strategy.DDP, 2), (Strategy.FSDP2, 3)])
def test_both_processes_compute_the_mean_gradient(strategy: Strategy, buckets: int) -> None:
    """Gradients are those of the mean over both batches, before and after other weights are drawn."""
    protocol, subject = prepare(strategy)
    compiled = protocol.compile(subject)
    step = protocol.make_compiled_step(subject, compiled)
    for _ in range(2):
        step()
    for is_redrawn in (False, True):
        if is_redrawn:
            drawn = reference.draw_state(subject, 7)
            reference.write_values(subject.list_state(), drawn or [])
        expected = reference.evaluate(subject, subject.function)
        result = reference.evaluate(subject, compiled)
        torch.testing.assert_close(dict(result.gradients), dict(expected.gradients))
        torch.testing.assert_close(dict(result.outputs), dict(expected.outputs))
    assert not torch.equal(subject.workload.inputs[0][0][0], subject.workload.inputs[1][0][0])
    assert protocol.observe(subject, compiled, step).samples == {Metric.BUCKETS: (buckets,)}


def test_a_second_process_that_is_gone_is_reported() -> None:
    """A step after the other process has ended fails with its status, and does not wait for it."""
    protocol = Distributed(Case(id="m/c", model="m", kind=Kind.DISTRIBUTED, task=Task.TRAINING))
    context = multiprocessing.get_context("spawn")
    protocol._peer = context.Process(target=sys.exit, args=(3,))
    protocol._line, line = context.Pipe()
    protocol._member = cast("Member", object())
    protocol._peer.start()
    protocol._peer.join()
    line.close()
    with pytest.raises(RuntimeError, match="the second process ended with status 3"):
        protocol.make_eager_step(cast("Subject", None))()


def test_a_second_process_that_never_joins_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended before: the first one reports it at once, before its time is up."""
    multiprocessing.resource_tracker.ensure_running()  # of all tests of this process, by its own interpreter
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(str(shutil.which("false"))))
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="the second process ended with status 1; see the log"):
        prepare(Strategy.DDP)
    assert list((tmp_path / "scratch").glob("gate-ranks-*"))
    assert time.monotonic() - begun < 60.0  # torch would wait for half an hour


def test_the_second_process_imports_libraries_as_the_first_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both start in the project's directory, where a file may have the name of a library, or the gate."""
    (tmp_path / "project").mkdir()
    for name in ("statistics.py", "gate.py"):
        (tmp_path / "project" / name).write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path / "project")
    protocol, subject = prepare(Strategy.DDP)
    protocol.make_eager_step(subject)()


def test_a_function_is_refused() -> None:
    """Only a module and its parameters can be distributed."""
    case = Case(id="m/c", model="m", kind=Kind.DISTRIBUTED, task=Task.TRAINING)
    workload = Workload(forward=torch.sin, inputs=(torch.ones(1),), loss=torch.sum)
    subject = make_subject(workload, case, CpuDevice())
    with pytest.raises(UsageError, match="only a module is spread"):
        Member(subject, 0)
