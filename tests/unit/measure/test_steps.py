"""Parameters after some steps: how much further from float64 compiled code leaves them than eager."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from gate.measure.device.cpu import CpuDevice
from gate.measure.numerics.reference import draw_state, evaluate_reference
from gate.measure.training import STEPS, compute_step_drift, has_steps, move_parameters
from gate.measure.workload.build import Subject, make_subject
from gate.records.cases import Case, Kind, Task
from gate.workload import Workload

RATE = 0.1


def make_line(task: Task = Task.TRAINING, **more: Any) -> Subject:
    """One weight w without a bias, one input of 1, and the loss w: its gradient is 1."""
    layer = torch.nn.Linear(1, 1, bias=False)
    workload = Workload(
        forward=layer,
        inputs=(torch.ones(1, 1),),
        loss=lambda output: output.sum(),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=RATE),
        **more,
    )
    return make_subject(workload, Case(id="m/c", model="m", factory="m:f", task=task), CpuDevice())


def test_parameters_move_by_what_the_optimizer_computes() -> None:
    """Ten steps of SGD with a gradient of 1 and a rate of 0.1 move a weight by 1, and leave no gradient."""
    subject = make_line()

    (moved,) = move_parameters(subject, subject.function).values()
    assert STEPS == 10
    assert moved.item() == pytest.approx(-1.0, rel=1e-6)
    assert all(leaf.grad is None for leaf in subject.list_leaves())


def test_a_small_rate_is_raised() -> None:
    """Ten steps at 1e-5 would move a weight by 1e-4: they are taken at 1e-3, and move it by 0.01."""
    line = make_line()
    slow = replace(line.workload, optimizer=lambda leaves: torch.optim.SGD(leaves, lr=1e-5))
    subject = replace(line, workload=slow)

    (moved,) = move_parameters(subject, subject.function).values()
    assert moved.item() == pytest.approx(-0.01, rel=1e-4)


def test_code_that_steps_as_eager_does_has_no_drift() -> None:
    """The same function on both sides leaves the same parameters, and the subject as it was."""
    subject = make_line()
    before = [leaf.detach().clone() for leaf in subject.list_leaves()]

    assert compute_step_drift(subject, subject.function).log2_ratio == 0.0
    assert all(map(torch.equal, before, subject.list_leaves()))


def test_a_gradient_that_is_off_adds_up() -> None:
    """A gradient that is 1 % too large leaves the weight 1 % too far off: far more than eager's rounding."""
    torch.manual_seed(1)
    layer = torch.nn.Linear(16, 16)
    workload = Workload(
        forward=layer,
        inputs=(torch.randn(8, 16),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=RATE),
    )
    case = Case(id="m/c", model="m", task=Task.TRAINING)
    subject = make_subject(workload, case, CpuDevice())

    def compiled(value: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = subject.function(value)
        return loss * 1.01

    drift = compute_step_drift(subject, compiled)
    assert drift.log2_ratio is not None
    assert drift.log2_ratio > 8


@pytest.mark.parametrize(
    "change",
    [
        lambda subject: replace(subject, case=replace(subject.case, task=Task.INFERENCE)),
        lambda subject: replace(subject, case=replace(subject.case, kind=Kind.DATA)),
        lambda subject: replace(subject, module=None),
        lambda subject: replace(subject, workload=replace(subject.workload, optimizer=None)),
    ],
    ids=["inference", "another kind", "a function", "no optimizer"],
)
def test_what_has_no_steps(change: Callable[[Subject], Subject]) -> None:
    """Only a plain training step of a module with an optimizer is taken ten times."""
    assert has_steps(make_line())
    assert not has_steps(change(make_line()))


def test_the_reference_of_a_quantized_model_is_what_it_was_made_of() -> None:
    """A weight of 1.3 that was rounded to 1 is compared with 1.3, and no other weights are drawn for it."""
    exact, rounded = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(exact.weight, 1.3)
    torch.nn.init.constant_(rounded.weight, 1.0)
    workload = Workload(forward=rounded, inputs=(torch.ones(1, 1),), exact=exact)
    subject = make_subject(workload, Case(id="m/c", model="m", factory="m:f"), CpuDevice())

    (value,) = evaluate_reference(subject).outputs.values()
    assert value.item() == pytest.approx(1.3, rel=1e-6)
    assert draw_state(subject, 1) is None
