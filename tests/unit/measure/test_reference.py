"""The float64 reference and its state."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from gate.devices import CUDA
from gate.measure.device.cpu import CpuDevice
from gate.measure.numerics import reference
from gate.measure.numerics.state import copy_state
from gate.measure.workload.build import SEED, Subject, build_workload, make_subject
from gate.records.cases import Case, DType, Task
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
    exact = reference.evaluate_reference(subject).outputs["output"]
    assert subject.module is not None
    assert exact.dtype == torch.float64
    assert torch.equal(exact, subject.workload.inputs[0].double() * subject.module.weight.double())
    assert torch.get_default_dtype() == torch.float32


def test_reference_leaves_the_subject_alone(subject: Subject) -> None:
    """The copy is cast, not the model."""
    reference.evaluate_reference(subject)
    assert {torch.bfloat16} == {tensor.dtype for tensor in subject.list_state()}


def test_training_returns_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of sum(x * w) by w is the sum of x over the batch; the loss is an output."""
    subject = make(monkeypatch, Task.TRAINING)
    evaluation = reference.evaluate_reference(subject)
    expected = subject.workload.inputs[0].double().sum(0)
    assert torch.allclose(evaluation.gradients["the gradient of weight"], expected)
    assert {"the loss": ()} == {name: tuple(value.shape) for name, value in evaluation.outputs.items()}


def test_state_is_restored_in_place(subject: Subject) -> None:
    """The same tensors hold the old values again, so nothing is recompiled."""
    state = copy_state(subject)
    before = [tensor.data_ptr() for tensor in subject.list_state()]
    with torch.no_grad():
        for tensor in subject.list_state():
            tensor.zero_()
    state.restore()
    assert before == [tensor.data_ptr() for tensor in subject.list_state()]
    assert all(map(torch.equal, state.tensors.values(), subject.list_state()))


def test_another_seed_draws_other_values(subject: Subject) -> None:
    """Weights and inputs both change."""
    before = [tensor.clone() for tensor in subject.list_state()]
    reference.write_values(subject.list_state(), reference.draw_state(subject, SEED + 1) or [])
    assert not any(map(torch.equal, before, subject.list_state()))


def test_twin_has_the_rounded_values(subject: Subject) -> None:
    """The float32 twin of a bfloat16 model has its weights, not the ones before rounding."""
    twin = reference.make_twin(subject, torch.float32)
    assert all(
        rounded.dtype == torch.float32 and torch.equal(rounded, value.float())
        for rounded, value in zip(twin.list_state(), subject.list_state(), strict=True)
    )


class SmallGpu(CpuDevice):
    """A processor that plays a GPU and counts how often its memory is freed."""

    kind = CUDA

    def __init__(self) -> None:
        super().__init__()
        self.freed = 0

    def free_memory(self) -> None:
        self.freed += 1


def refuse_float64(subject: Subject, error: RuntimeError, times: int) -> None:
    """Let the subject's model raise ``error`` so many times when it is called in float64."""
    assert subject.module is not None
    raised = iter([error] * times)

    def refuse(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if inputs[0].dtype == torch.float64 and (error := next(raised, None)):
            raise error

    # A deep copy of the model has the hook too, and shares what it has raised.
    subject.module.register_forward_pre_hook(refuse)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 13.00 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
@pytest.mark.parametrize("task", list(Task))
def test_reference_that_has_no_room_is_computed_by_the_processor(
    monkeypatch: pytest.MonkeyPatch, error: RuntimeError, task: Task
) -> None:
    """It is the same reference: no metric goes missing."""
    subject = make(monkeypatch, task)
    expected = reference.evaluate_reference(subject)
    threads, device = torch.get_num_threads(), SmallGpu()
    small = replace(subject, device=device)
    refuse_float64(small, error, times=1)
    exact = reference.evaluate_reference(small)
    for actual, wanted in ((exact.gradients, expected.gradients), (exact.outputs, expected.outputs)):
        assert actual.keys() == wanted.keys()
        assert all(torch.equal(actual[name], wanted[name]) for name in wanted)
    assert (device.freed, torch.get_num_threads()) == (2, threads)


@pytest.mark.parametrize(("task", "needed"), [(Task.INFERENCE, 320), (Task.TRAINING, 640)])
def test_host_memory_is_looked_at_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch, task: Task, needed: int
) -> None:
    """40 values (a weight of 8, inputs of 4 x 8) are 320 bytes in float64, twice as many with gradients.

    A system out of memory kills the largest process, without a message: the case would be called KILLED.
    """
    subject = replace(make(monkeypatch, task), device=SmallGpu())
    monkeypatch.setattr(SmallGpu, "read_peak", lambda _: 0)
    full = torch.OutOfMemoryError("CUDA out of memory.")
    monkeypatch.setattr(reference, "read_free_bytes", lambda: needed - 1)
    refuse_float64(subject, full, times=1)
    with pytest.raises(reference.NoRoomError, match=f"{needed} bytes needed, {needed - 1} free"):
        reference.evaluate_reference(subject)
    monkeypatch.setattr(reference, "read_free_bytes", lambda: needed)
    refuse_float64(subject, full, times=1)
    assert reference.evaluate_reference(subject).outputs


def test_the_attempt_on_the_device_shows_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had taken 12 GiB when it ended: with 11.5 GiB free the processor does not begin."""
    subject = replace(make(monkeypatch, Task.INFERENCE), device=SmallGpu())
    monkeypatch.setattr(SmallGpu, "read_peak", lambda _: 12 * 2**30)
    monkeypatch.setattr(reference, "read_free_bytes", lambda: int(11.5 * 2**30))
    refuse_float64(subject, torch.OutOfMemoryError("CUDA out of memory."), times=1)
    with pytest.raises(reference.NoRoomError, match=f"{12 * 2**30} bytes needed, {23 * 2**29} free"):
        reference.evaluate_reference(subject)


def test_another_error_of_the_reference_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a lack of memory is tried again, and not the processor's own."""
    subject = make(monkeypatch, Task.INFERENCE)
    for device, error in (
        (SmallGpu(), RuntimeError("expected scalar type Half but found Double")),
        (CpuDevice(), torch.OutOfMemoryError("out of memory")),
    ):
        refused = replace(make(monkeypatch, Task.INFERENCE), device=device)
        refuse_float64(refused, error, times=1)
        with pytest.raises(RuntimeError) as caught:
            reference.evaluate_reference(refused)
        assert caught.value is error
    assert reference.evaluate_reference(subject).outputs


class Counting(torch.nn.Module):
    """Adds how often it was called, and doubles its input in place."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return value.mul_(2) + self.calls


@pytest.mark.parametrize("task", Task)
def test_a_call_that_writes_to_buffers_and_inputs_is_asked_the_same_again(task: Task) -> None:
    """The first and the second call give 2 * 3 + 1, and leave 3 and 0 behind."""
    case = Case(id="m/c", model="m", task=task)
    built = Workload(forward=Counting(), inputs=(torch.full((4,), 3.0),), loss=torch.sum)
    subject = make_subject(built, case, CpuDevice())
    if subject.is_training:  # torch writes to no leaf in place
        subject = replace(subject, spread=lambda function: lambda value: function(value * 1))
    evaluations = [reference.evaluate(subject, subject.function) for _ in range(2)]
    outputs = [
        {name: float(value.max()) for name, value in evaluation.outputs.items()} for evaluation in evaluations
    ]
    assert [{"the loss": 28.0} if subject.is_training else {"output": 7.0}] * 2 == outputs
    assert [(0.0,), (3.0, 3.0, 3.0, 3.0)] == [tuple(tensor.tolist()) for tensor in subject.list_state()]


def test_what_expand_repeats_is_written_once() -> None:
    """A mask of one row, repeated for the batch, is one row in memory: torch refuses to write to the rest."""
    case = Case(id="m/c", model="m")
    inputs = (torch.zeros(1, 3).expand(2, 3), torch.zeros(2, 3).to_sparse())
    subject = make_subject(Workload(forward=torch.abs, inputs=inputs), case, CpuDevice())
    reference.write_values(
        subject.list_state(), [torch.tensor([[1.0, 2.0, 3.0]] * 2), torch.ones(2, 3).to_sparse()]
    )
    dense, sparse = (tensor.to_dense().tolist() for tensor in subject.list_inputs())
    assert dense == [[1.0, 2.0, 3.0]] * 2
    assert sparse == [[1.0, 1.0, 1.0]] * 2


class Turning(torch.nn.Module):
    """Turns pairs of numbers by stored angles, as rotary embeddings of position do."""

    angles: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("angles", torch.polar(torch.ones(3), torch.arange(3.0)))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.view_as_complex(value.float()) * self.angles

    def __len__(self) -> int:
        return 0


def test_complex_numbers_stay_complex() -> None:
    """A module's own `to(dtype)` drops the imaginary part; here `exp(2i)` keeps it, and float64 is exact."""
    case = Case(id="m/c", model="m")
    built = Workload(forward=Turning(), inputs=(torch.ones(3, 2),))
    subject = make_subject(built, case, CpuDevice())
    output = reference.evaluate(subject, subject.function).outputs["output"]
    exact = reference.evaluate_reference(subject).outputs["output"]
    assert torch.allclose(output[2], (1 + 1j) * torch.exp(torch.tensor(2j)))
    assert (output.dtype, exact.dtype) == (torch.complex64, torch.complex128)
    assert [torch.complex64] == [tensor.dtype for tensor in subject.list_state() if tensor.is_complex()]


def test_a_nested_tensor_is_compared_by_its_parts() -> None:
    """Sequences of different lengths in one tensor, whose elements no other function of torch picks."""
    parts = [torch.zeros(2, 3), torch.ones(4, 3)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    case = Case(id="m/c", model="m")
    subject = make_subject(Workload(forward=torch.abs, inputs=(nested,)), case, CpuDevice())
    outputs = reference.evaluate(subject, subject.function).outputs
    assert {name: value.tolist() for name, value in outputs.items()} == {
        f"output[{index}]": part.tolist() for index, part in enumerate(parts)
    }
