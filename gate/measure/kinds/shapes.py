"""A pass over a fixed list of shapes: what is recompiled as sizes vary, and what each shape takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gate.kinds import Dims, get_setting
from gate.measure.kinds.protocol import Protocol, Seen, join_workloads
from gate.measure.timing.rounds import Step, time_calls
from gate.measure.workload.build import SEED, Function, Subject, build_workload, compile_function
from gate.measure.workload.tensors import iterate_tensors
from gate.records import Case, Task
from gate.workload import Workload

_CALLS = 5  # of each shape, whose median is recorded
_DYNAMIC = {Dims.AUTOMATIC: None, Dims.STATIC: False, Dims.DYNAMIC: True, Dims.MARKED: None}


class Shapes(Protocol):
    """Each input of a call is a pair: the positional arguments of one shape, and its keyword arguments."""

    def build(self, seed: int = SEED) -> Workload:
        """Call the factory once for each shape; the model is that of the first."""
        return join_workloads([build_workload(one, seed) for one in list_shapes(self.case)])

    def spread(self, function: Function) -> Function:
        """Go through the shapes; a training step's loss is the sum of theirs."""

        def run_shapes(*shapes: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:  # noqa: ANN401 - any model's
            returned = tuple(function(*inputs, **kwargs) for inputs, kwargs in shapes)
            return sum(returned) if self.case.task is Task.TRAINING else returned

        return run_shapes

    def compile(self, subject: Subject) -> Function:
        """Compile as the setting ``dims`` says."""
        dims = get_setting(self.case, "dims", Dims)
        if dims is Dims.MARKED:
            mark_varying(subject.inputs)
        return self.spread(compile_function(subject.plain, replace(self.case, dynamic=_DYNAMIC[dims])))

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Time each shape by itself; without its backward pass."""
        parts_s = {}
        for name, shape in zip(name_shapes(self.case), subject.inputs, strict=True):
            call = partial(compiled, shape)
            times_s = (time_calls(call, subject.device, 1) for _ in range(_CALLS))
            parts_s[name] = statistics.median(times_s)
        return Seen(parts_s=parts_s)


PROTOCOL = Shapes


def list_shapes(case: Case) -> Iterator[Case]:
    """List the case with the factory's arguments of each shape."""
    for arguments in _list_arguments(case):
        yield replace(case, arguments={**case.arguments, **arguments})


def name_shapes(case: Case) -> Iterator[str]:
    """Name each shape by its arguments: ``sequence=32``."""
    for arguments in _list_arguments(case):
        yield ", ".join(f"{name}={value}" for name, value in arguments.items())


def mark_varying(shapes: tuple[Any, ...]) -> None:
    """Mark as dynamic the dimensions in which tensors of one place differ between shapes."""
    tensors: dict[str, list[torch.Tensor]] = {}
    for shape in shapes:
        for path, tensor in iterate_tensors(shape):
            tensors.setdefault(path, []).append(tensor)
    for alike in tensors.values():
        for dim in range(alike[0].dim()):
            if len({tensor.shape[dim] for tensor in alike}) > 1:
                for tensor in alike:
                    torch._dynamo.mark_dynamic(tensor, dim)  # noqa: SLF001 - its documented name


def _list_arguments(case: Case) -> Iterator[dict[str, object]]:
    vary: dict[str, list[object]] = get_setting(case, "vary", dict)
    for values in zip(*vary.values(), strict=True):
        yield dict(zip(vary, values, strict=True))
