"""Drift of training: how much further from float64 compiled code leaves the parameters after some steps.

Gradients that are right once may still train another model: an error can add up in the optimizer's moments.
What is compared is how far the parameters have moved. A step that is smaller than the rounding of what it
changes is lost in eager alike, so the optimizer steps at a usual rate where the case's own is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch

from gate.measure.numerics import reference
from gate.measure.numerics.drift import Drift, compute_drift
from gate.measure.numerics.float64 import in_float64
from gate.measure.numerics.state import copy_state
from gate.measure.workload.build import Function, Subject
from gate.records import Kind

STEPS = 10
# A case's rate is small so that thousands of timed steps leave its weights as they were: at 1e-5 the weights'
# own rounding is all that ten steps show.
LEAST_RATE = 1e-3

Moves = Mapping[str, torch.Tensor]


def has_steps(subject: Subject) -> bool:
    """Whether there is something to step: a plain training step with parameters and an optimizer."""
    return (
        subject.is_training
        and subject.case.kind is Kind.CALL
        and bool(subject.name_parameters())
        and subject.make_optimizer is not None
    )


def compute_step_drift(subject: Subject, compiled: Function) -> Drift:
    """Compute the drift of the parameters after ``STEPS`` steps; the subject's state is as before.

    Raises:
        NotFiniteError: A parameter of eager or compiled became NaN or infinite.
    """
    twin = reference.make_exact_twin(subject)
    exact = move_parameters(twin, twin.function, in_float64)
    del twin
    state = copy_state(subject)
    moves = []
    try:
        for function in (subject.function, compiled):
            moves.append(move_parameters(subject, function))
            state.restore()
    finally:
        state.restore()
    return compute_drift(exact, *moves, pooled=True)


def move_parameters(
    subject: Subject, function: Function, mode: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Moves:
    """Take the steps with an optimizer of their own; tell how far each parameter has moved, in float64.

    ``mode`` is what gradients are computed in. The optimizer has no part in it: its own numbers, as a
    scaler's, have the types that they ask for.
    """
    leaves = {name: one for name, one in subject.name_parameters().items() if one.requires_grad}
    before = {name: leaf.detach().double().clone() for name, leaf in leaves.items()}
    make = subject.make_optimizer
    optimizer = make(list(leaves.values())) if make else None
    for group in getattr(optimizer, "param_groups", ()):
        group["lr"] = max(group["lr"], LEAST_RATE)
    for _ in range(STEPS):
        subject.device.mark_step()
        with mode():
            function(*subject.inputs, **subject.kwargs).backward()
        if optimizer is not None:
            optimizer.step()
        for leaf in subject.list_leaves():
            leaf.grad = None
    return {name: leaf.detach().double() - before[name] for name, leaf in leaves.items()}
