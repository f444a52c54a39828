"""What both protocols share: the context of a measurement and the workload made ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gate.measure import precision
from gate.measure.build import (
    Function,
    Subject,
    build_workload,
    compile_subject,
    load_factory,
    make_compiled_step,
    make_step,
    make_subject,
)
from gate.measure.device import Device
from gate.measure.drift import check_finite
from gate.measure.logbook import Logbook
from gate.measure.schedule import Side
from gate.measure.tensors import iterate_tensors
from gate.measure.turns import Turns
from gate.protocol import Sampling, Stage
from gate.records import Case, Task
from gate.workload import Workload

EAGER_CALLS = 2  # the first sets libraries up, the second shows that it worked


@dataclass(frozen=True, kw_only=True)
class Context:
    """One measurement: of what, where, how much, and where it is written down."""

    case: Case
    device: Device
    sampling: Sampling
    logbook: Logbook
    directory: str  # of the measured code; places in it are told relative to it
    turns: Turns | None = None  # in a pair


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A subject with one step for each side, eager called, nothing compiled yet."""

    subject: Subject
    compiled: Function
    eager_step: Callable[[], Any]
    compiled_step: Callable[[], Any]


def prepare(context: Context, workload: Workload | None) -> Prepared:
    """Build the workload, unless the caller brings one, and call it eagerly.

    Raises:
        NotFiniteError: The first output holds NaN or infinity.
    """
    logbook = context.logbook
    if workload is None:
        logbook.enter(Stage.IMPORT)
        load_factory(context.case.factory)
    logbook.enter(Stage.BUILD)
    subject = make_subject(workload or build_workload(context.case), context.case, context.device)
    settings = precision.describe_settings(context.device.kind)  # the workload's own, once it is built
    logbook.record(workload={"parameters": str(count_parameters(subject)), "settings": settings})
    logbook.enter(Stage.EAGER)
    eager_step = make_step(subject, subject.function)
    for _ in range(EAGER_CALLS):
        returned = eager_step()
    check_finite({f"output{path}": value for path, value in iterate_tensors(returned)}, Side.EAGER)
    logbook.enter(Stage.COMPILE)  # torch refuses wrong options and backends here, before the first call
    compiled = compile_subject(subject)
    return Prepared(
        subject=subject,
        compiled=compiled,
        eager_step=eager_step,
        compiled_step=make_compiled_step(subject, compiled),
    )


def try_case(context: Context, workload: Workload | None) -> None:
    """Build the workload and call it eagerly, as a measurement begins; raises as :func:`prepare`."""
    with use_gradients(context.case):
        prepare(context, workload)


def count_parameters(subject: Subject) -> int:
    """Count the elements of the module's parameters; 0 for a function."""
    return sum(parameter.numel() for parameter in subject.module.parameters()) if subject.module else 0


@contextmanager
def use_gradients(case: Case) -> Iterator[None]:
    """Record gradients within for a training case, and not for inference; the same for both sides."""
    with torch.set_grad_enabled(case.task == Task.TRAINING):
        yield
