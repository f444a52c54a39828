"""An epoch through a DataLoader: how much longer it takes than the same batches already in memory."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Iterable
from typing import Any

from torch.utils.data import DataLoader

from gate.kinds import get_setting
from gate.measure.kinds.protocol import Seen, join_workloads
from gate.measure.kinds.shapes import Shapes
from gate.measure.timing.rounds import Step, time_calls
from gate.measure.workload.build import SEED, Function, Subject, build_workload, compile_function
from gate.measure.workload.tensors import map_tensors
from gate.records import Metric
from gate.workload import Workload

_EPOCHS = 5  # of each, in turn; the ratio of their medians is recorded


class Data(Shapes):
    """One call is an epoch; its batches have one shape and different numbers."""

    def build(self, seed: int = SEED) -> Workload:
        """Call the factory once for each batch; the model is that of the first."""
        batches = get_setting(self.case, "batches", int)
        return join_workloads([build_workload(self.case, seed + 1000 * index) for index in range(batches)])

    def compile(self, subject: Subject) -> Function:
        """Compile the model's own function: a batch is a call of it."""
        return self.spread(compile_function(subject.plain, self.case))

    def make_eager_step(self, subject: Subject) -> Step:
        """Make one eager epoch."""
        return self.make_compiled_step(subject, subject.function)

    def make_compiled_step(self, subject: Subject, compiled: Function) -> Step:
        """Make one epoch of ``compiled``; it reads the loader, whose processes live as long as the step."""
        loader = make_loader(subject, get_setting(self.case, "workers", int))
        place = subject.device.name

        def run_loader() -> None:
            moved = (map_tensors(lambda one: one.to(place, non_blocking=True), batch) for batch in loader)
            run_epoch(subject, compiled, moved)

        return run_loader

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Time epochs through the loader and out of memory in turn."""

        def run_memory() -> None:
            run_epoch(subject, compiled, subject.inputs)

        times_s: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(_EPOCHS):
            for loads, call in ((True, step), (False, run_memory)):
                times_s[loads].append(time_calls(call, subject.device, 1))
        ratio = statistics.median(times_s[True]) / statistics.median(times_s[False])
        return Seen(samples={Metric.DATA_RATIO: (ratio,)})


PROTOCOL = Data


def make_loader(subject: Subject, workers: int) -> DataLoader[Any]:
    """Make a loader of the subject's batches, with memory that a GPU reads by itself.

    Its processes are forked, and must not be the ones that free what other cases left in this one: a session
    of onnxruntime waits there for threads that a fork does not have.
    """
    gc.collect()
    # On the processor; any sequence is a dataset that is read item by item.
    batches: Any = map_tensors(lambda tensor: tensor.detach().cpu(), subject.inputs)
    return DataLoader(
        batches,
        batch_size=None,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=subject.device.kind.is_gpu,
    )


def run_epoch(subject: Subject, function: Function, batches: Iterable[Any]) -> None:
    """Run one call, or one training step, for each batch."""
    for batch in batches:
        returned = function(batch)
        if subject.is_training:
            returned.backward()
            if subject.optimizer is not None:
                subject.optimizer.step()
            for leaf in subject.list_leaves():
                leaf.grad = None
