"""The float64 reference and its state."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from gate.measure import reference
from gate.measure.build import SEED, Subject, build_workload, make_subject
from gate.measure.device import CpuDevice
from gate.records import Case, DType, Task
from gate.workload import Workload


class Casting(torch.nn.Module):
    """A layer that computes in float32 whatever its input is, as norms do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Multiply in float32, in three spellings of it."""
        precise = value.float() * self.weight.to(torch.float32) + torch.zeros(8, dtype=torch.float32)
        return precise.to(value.dtype)


def build() -> Workload:
    """Build the casting layer."""
    return Workload(forward=Casting(), inputs=(torch.randn(4, 8),), loss=torch.sum)


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    """Return a bfloat16 subject of the casting layer."""
    return make(monkeypatch, Task.INFERENCE)


def make(monkeypatch: pytest.MonkeyPatch, task: Task) -> Subject:
    """Return a subject whose factory can be called again."""
    module = ModuleType("made_up_reference")
    module.build = build  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up_reference", module)
    case = Case(id="m/c", model="m", factory="made_up_reference:build", dtype=DType.BFLOAT16, task=task)
    return make_subject(build_workload(case), case, CpuDevice())


def test_reference_is_float64_throughout(subject: Subject) -> None:
    """Casts to float32 inside the model become float64; the weights are those that were rounded."""
    exact = reference.evaluate_reference(subject).values["output"]
    assert subject.module is not None
    assert exact.dtype == torch.float64
    assert torch.equal(exact, subject.inputs[0].double() * subject.module.weight.double())
    assert torch.get_default_dtype() == torch.float32


def test_reference_leaves_the_subject_alone(subject: Subject) -> None:
    """The copy is cast, not the model."""
    reference.evaluate_reference(subject)
    assert {torch.bfloat16} == {tensor.dtype for tensor in subject.list_state()}


def test_training_returns_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of sum(x * w) by w is the sum of x over the batch; the loss is an output."""
    subject = make(monkeypatch, Task.TRAINING)
    evaluation = reference.evaluate_reference(subject)
    expected = subject.inputs[0].double().sum(0)
    assert torch.allclose(evaluation.values["the gradient of weight"], expected)
    assert [()] == [tuple(value.shape) for value in evaluation.outputs.values()]


def test_state_is_restored_in_place(subject: Subject) -> None:
    """The same tensors hold the old values again, so nothing is compiled anew."""
    state = reference.copy_state(subject)
    before = [tensor.data_ptr() for tensor in subject.list_state()]
    with torch.no_grad():
        for tensor in subject.list_state():
            tensor.zero_()
    reference.restore_state(subject, state)
    assert before == [tensor.data_ptr() for tensor in subject.list_state()]
    assert all(map(torch.equal, state, subject.list_state()))


def test_another_seed_draws_other_values(subject: Subject) -> None:
    """Weights and inputs both change."""
    before = reference.copy_state(subject)
    assert reference.redraw_state(subject, SEED + 1)
    assert not any(map(torch.equal, before, subject.list_state()))


def test_twin_has_the_rounded_values(subject: Subject) -> None:
    """The float32 twin of a bfloat16 model has its weights, not the ones before rounding."""
    twin = reference.make_twin(subject, torch.float32)
    assert all(
        own.dtype == torch.float32 and torch.equal(own, other.float())
        for own, other in zip(twin.list_state(), subject.list_state(), strict=True)
    )
