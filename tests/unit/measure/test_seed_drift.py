"""The float32 comparison of drift, with TF32 off."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch

from gate.devices import CUDA
from gate.measure.device.cpu import CpuDevice
from gate.measure.failures import NotFiniteError
from gate.measure.logbook import Logbook
from gate.measure.numerics.drift import MISMATCH, Drift
from gate.measure.seed_drift import CompiledSubject, measure_drift, record_drift
from gate.measure.workload.build import Subject, make_subject
from gate.records.cases import Case, DType, Metric, Mode
from gate.records.codes import Code
from gate.records.protocol import WorkerResult, WorkerRole
from gate.workload import Workload

from .contexts import make_context


class PlayedGpu(CpuDevice):
    """The processor, as a device with TF32."""

    kind = CUDA


@pytest.fixture
def _tf32() -> Iterator[None]:
    """Allow TF32 to cuDNN alone, by the interface of torch 2.9 on."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.fp32_precision, cudnn.fp32_precision
    cudnn.fp32_precision, matmul.fp32_precision = "tf32", "ieee"
    yield
    matmul.fp32_precision, cudnn.fp32_precision = before
    torch.compiler.reset()


def make_layer(device: CpuDevice, mode: Mode = Mode.DEFAULT) -> Subject:
    """Return a float32 layer."""
    case = Case(id="m/c", model="m", mode=mode)
    workload = Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),))
    return make_subject(workload, case, device)


def measure(compiled: Callable[..., object], subject: Subject, device: CpuDevice) -> WorkerResult:
    """Measure drift under one seed."""
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, subject.case, device=device)
    measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
    return logbook.result


@pytest.mark.usefixtures("_tf32")
def test_code_with_tf32_in_it_is_compiled_anew() -> None:
    """A convolution that Inductor tuned keeps the TF32 of its compile.

    Compared with eager without TF32, an unchanged program would exceed the limit of drift.
    """
    seen: list[str] = []

    def note_precision(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        seen.append(torch.backends.cudnn.fp32_precision)
        return graph.forward

    device = PlayedGpu()
    subject = make_layer(device)
    compiled = torch.compile(subject.function, backend=note_precision)
    with torch.no_grad():
        compiled(*subject.workload.inputs)
        samples = measure(compiled, subject, device).samples
    assert seen == ["tf32", "ieee"]
    assert samples[Metric.DRIFT_FLOAT32] == (0.0,)


@pytest.mark.parametrize(("mode", "compiles"), [(Mode.DEFAULT, 1), (Mode.REDUCE_OVERHEAD, 2)])
def test_only_what_keeps_tf32_is_compiled_anew(mode: Mode, compiles: int) -> None:
    """Compiling costs minutes. But a CUDA graph replays the convolutions that it was recorded with."""
    seen: list[object] = []

    def note_compile(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        seen.append(graph)
        return graph.forward

    device = PlayedGpu()
    subject = make_layer(device, mode)
    compiled = torch.compile(subject.function, backend=note_compile)
    with torch.no_grad():
        compiled(*subject.workload.inputs)
        measure(compiled, subject, device)
    assert len(seen) == compiles


class Heavy(torch.nn.Linear):
    """A layer that the card has room for in its own type alone, and in what the reference has."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        if value.dtype == torch.float32:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 56.00 GiB")
        return super().forward(value)


def measure_heavy(device: CpuDevice) -> WorkerResult:
    """Measure the drift of that layer in bfloat16."""
    case = Case(id="m/c", model="m", dtype=DType.BFLOAT16)
    subject = make_subject(Workload(forward=Heavy(8, 8), inputs=(torch.randn(4, 8),)), case, device)
    with torch.no_grad():
        return measure(subject.function, subject, device)


def test_no_room_for_a_copy_in_float32_leaves_the_drift_of_the_case() -> None:
    """The drift in the case's own type stays, with a note on the other."""
    result = measure_heavy(PlayedGpu())
    assert (result.samples[Metric.DRIFT], Metric.DRIFT_FLOAT32 in result.samples) == ((0.0,), False)
    (note,) = result.warnings
    assert (note.code, note.metrics) == (Code.UNMEASURED, (Metric.DRIFT_FLOAT32,))
    assert note.name("why").startswith("the device has no memory")


def test_what_cannot_be_done_in_float32_leaves_the_drift_of_the_case() -> None:
    """A note explains why only the case's own type was compared."""
    result = measure_heavy(CpuDevice())
    assert (result.samples[Metric.DRIFT], Metric.DRIFT_FLOAT32 in result.samples) == ((0.0,), False)
    (note,) = result.warnings
    assert (note.code, note.name("why").partition(":")[0]) == (Code.UNMEASURED, "OutOfMemoryError")


class Boxed:
    """An output that nobody can look into."""

    def __init__(self, value: torch.Tensor) -> None:
        self.get = lambda: value


def test_an_output_without_a_tensor_is_not_called_as_good_as_eager() -> None:
    """A wrong value in it would be a drift of 0."""
    case = Case(id="m/c", model="m")
    subject = make_subject(Workload(forward=Boxed, inputs=(torch.ones(4),)), case, CpuDevice())
    result = measure(lambda value: Boxed(value + 1), subject, CpuDevice())
    assert Metric.DRIFT not in result.samples
    assert [Code.NO_TENSORS, Code.OUTPUT_UNSEEN] == [fact.code for fact in result.warnings]


def overflow_float64(value: torch.Tensor) -> torch.Tensor:
    """A function that is finite in float32 alone."""
    return value * math.nan if value.dtype == torch.float64 else value + 1


def test_a_reference_without_a_finite_number_gives_no_drift() -> None:
    """A drift of 0 would mean that all is well."""
    case = Case(id="m/c", model="m")
    subject = make_subject(Workload(forward=overflow_float64, inputs=(torch.ones(4),)), case, CpuDevice())
    result = measure(lambda value: value + 2, subject, CpuDevice())
    assert Metric.DRIFT not in result.samples
    (warning,) = result.warnings
    assert (warning.code, warning.numbers) == (Code.REFERENCE_NOT_FINITE, {"unknown": 4, "elements": 4})


@pytest.mark.parametrize(("most", "is_far"), [(0.5, True), (1.0, False)])
def test_a_reference_that_computes_something_else_is_noted(most: float, *, is_far: bool) -> None:
    """A model that branches on the type: half of what eager returns is no rounding."""

    def clamp(value: torch.Tensor) -> torch.Tensor:
        return value.clamp(max=1.0 if value.dtype is torch.float32 else most)

    device = CpuDevice()
    workload = Workload(forward=clamp, inputs=(torch.ones(64),))
    result = measure(clamp, make_subject(workload, Case(id="m/c", model="m"), device), device)
    codes = [fact.code for fact in result.warnings]
    assert codes == ([Code.REFERENCE_FAR] if is_far else [])
    assert result.samples[Metric.DRIFT] == (0.0,)


def refuse_float64(value: torch.Tensor) -> torch.Tensor:
    """A function that has no float64, as many a kernel of one's own."""
    if value.dtype == torch.float64:
        raise TypeError("no float64 here")
    return value + 1


def make_inexact() -> Subject:
    """Return a subject that no reference can be made of."""
    workload = Workload(forward=refuse_float64, inputs=(torch.ones(4),))
    return make_subject(workload, Case(id="m/c", model="m"), CpuDevice())


def test_without_a_reference_what_is_right_has_no_drift() -> None:
    """How exact it is stays unknown: a note, and no number."""
    result = measure(lambda value: value + 1, make_inexact(), CpuDevice())
    assert Metric.DRIFT not in result.samples
    assert [Code.NO_FLOAT64] == [fact.code for fact in result.warnings]


def test_without_a_reference_nan_is_still_an_error() -> None:
    with pytest.raises(NotFiniteError, match="NaN in output of the compiled call"):
        measure(lambda value: value * float("nan"), make_inexact(), CpuDevice())


def test_without_a_reference_another_answer_is_still_a_mismatch() -> None:
    """Another shape is the largest drift there is, which no limit lets pass."""
    result = measure(lambda value: value[:2], make_inexact(), CpuDevice())
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert [Code.NO_FLOAT64, Code.LAYOUT_DIFFERS, Code.OUTPUT_RESHAPED] == [
        fact.code for fact in result.warnings
    ]


def test_another_answer_under_one_seed_is_another_answer() -> None:
    """It is no drift to be averaged with that of the other seeds, and its output is named."""
    logbook = Logbook(None, WorkerRole.WARM)
    record_drift(logbook, Metric.DRIFT, [Drift(log2_ratio=0.5), Drift(log2_ratio=MISMATCH, worst="ids")])
    assert logbook.result.samples[Metric.DRIFT] == (MISMATCH,)
    assert logbook.result.worst[Metric.DRIFT].output == "ids"
