"""What drift compares besides outputs: what a call writes, and the loss, also without float64."""

import math
import time
from typing import Any

import numpy as np
import pytest
import torch

from gate.decide.constants import DRIFT_BEYOND_ROUNDING
from gate.measure.context import open_case, use_gradients
from gate.measure.device.cpu import CpuDevice
from gate.measure.logbook import Logbook
from gate.measure.numerics.drift import MISMATCH
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.trial import measure_warm
from gate.measure.workload.build import make_subject
from gate.records.cases import Case, DType, Kind, Metric, Task
from gate.records.codes import Code
from gate.records.protocol import WorkerResult, WorkerRole
from gate.workload import Workload
from tests.words import describe_measuring

from .contexts import make_context


class Model(torch.nn.Module):
    """Writes everywhere; ``wrong`` names what is off by a hundredth, or is not written at all."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(64))
        self.teacher = torch.nn.Parameter(torch.ones(64), requires_grad=False)
        self.weight = torch.nn.Parameter(torch.rand(64))
        self.last = torch.zeros(64)
        self.wrong, self.lost, self.refuses = "", "", False

    def forward(self, value: torch.Tensor, cache: list[torch.Tensor]) -> torch.Tensor:
        """Write a buffer, a parameter, an attribute and a list among the inputs."""
        if self.refuses and value.dtype == torch.float64:
            raise TypeError("no float64 here")
        left = ("mean", "teacher", "last", "cache", "output")
        off = {name: 1.01 if name == self.wrong else 1.0 for name in left}
        if self.lost != "mean":
            self.mean = self.mean.lerp(value.mean(0), 0.1 * off["mean"])
        with torch.no_grad():
            self.teacher.mul_(0.99 * off["teacher"])
        self.last = value[0] * off["last"]
        if self.lost != "cache":
            cache.append(value.sin() * off["cache"])
        if self.lost != "note":
            self.note = value.mean()
        return value * self.weight * off["output"]


def measure(case: Case | None = None, **compiled: Any) -> WorkerResult:
    """Measure drift under one seed; the compiled model differs from eager's in these attributes."""
    case = case or Case(id="m/c", model="m")
    model = Model()
    built = Workload(
        forward=model, inputs=(torch.rand(8, 64), []), loss=lambda output: output.square().mean()
    )
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    with use_gradients(case):
        subject = make_subject(built, case, CpuDevice())
        model.refuses = compiled.pop("refuses", False)

        def call(*inputs: Any) -> Any:
            before = {name: getattr(model, name) for name in compiled}
            vars(model).update(compiled)
            try:
                return subject.function(*inputs)
            finally:
                vars(model).update(before)

        measure_drift(context, CompiledSubject(subject=subject, compiled=call))
    return logbook.result


def measure_pair(forward: Any, compiled: Any, case: Case | None = None) -> WorkerResult:
    """Measure drift of one function against another under one seed."""
    case = case or Case(id="m/c", model="m")
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    subject = make_subject(Workload(forward=forward, inputs=(torch.rand(64),)), case, CpuDevice())
    measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
    return logbook.result


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("mean", "the buffer mean"),
        ("teacher", "the parameter teacher"),
        ("last", "the tensor last"),
        ("cache", "the input [1][0]"),
    ],
)
def test_what_a_call_leaves_behind_is_compared(task: Task, wrong: str, named: str) -> None:
    """A hundredth is 2^16 rounding steps of float32, and at most 1 of them is eager's own error."""
    result = measure(Case(id="m/c", model="m", task=task), wrong=wrong)
    (drift,) = result.samples[Metric.DRIFT]
    assert drift > 14
    assert result.worst[Metric.DRIFT].output == named


@pytest.mark.parametrize("task", Task)
def test_what_is_left_alike_has_no_drift(task: Task) -> None:
    """Both sides run the same program."""
    result = measure(Case(id="m/c", model="m", task=task))
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert not result.warnings


@pytest.mark.parametrize(("lost", "named"), [("mean", "the buffer mean"), ("cache", "the input [1][0]")])
def test_what_compiled_does_not_write_is_seen(lost: str, named: str) -> None:
    """A buffer keeps its old value, and a cache among the inputs does not grow."""
    result = measure(lost=lost)
    assert result.samples[Metric.DRIFT] > (20,)
    assert result.worst[Metric.DRIFT].output == named


def test_a_note_that_compiled_code_does_not_keep_is_reported() -> None:
    """Compiled models often leave out an attribute of their own: a warning, no error."""
    result = measure(lost="note")
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert result.samples[Metric.LAYOUT_DIFFERENCES] == (1.0,)
    assert [(Code.LEFT_BY_ONE, "the tensor note")] == [
        (fact.code, fact.name("output")) for fact in result.warnings
    ]


def test_the_loss_is_compared() -> None:
    """Gradients may be right where the loss is not; 2.01 % are compared under its name."""
    result = measure(Case(id="m/c", model="m", task=Task.TRAINING), wrong="output", refuses=True)
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert result.worst[Metric.DRIFT].output == "the loss"
    assert {"the loss", "the gradient of weight"} == {fact.name("output") for fact in result.warnings[1:]}


def test_what_a_package_writes_is_not_seen() -> None:
    """It has tensors of its own: the warning says that eager alone wrote."""
    result = measure(Case(id="m/c", model="m", kind=Kind.EXPORT), lost="mean")
    assert result.samples[Metric.DRIFT] == (0.0,)
    (warning,) = map(describe_measuring, result.warnings)
    assert warning.startswith(
        "what compiled code writes to the buffer mean, the input [1][0], the input [1][1], "
    )


def test_without_float64_a_hundredth_is_seen() -> None:
    """It is 84,000 rounding steps of float32 from eager: rounding explains a thousand."""
    result = measure(wrong="output", refuses=True)
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert [Code.NO_FLOAT64, Code.OUTPUT_FAR] == [fact.code for fact in result.warnings]
    assert result.warnings[1].numbers["error"] == pytest.approx(0.01, rel=1e-3)
    assert describe_measuring(result.warnings[1]) == (
        "output of compiled is off from eager's by 0.01, relative to its size: rounding explains 0.00012"
    )


def test_without_float64_rounding_is_no_error() -> None:
    """A right result has no drift, and the warning gives the reason."""
    result = measure(refuses=True)
    assert Metric.DRIFT not in result.samples
    assert [Code.NO_FLOAT64] == [fact.code for fact in result.warnings]


@pytest.mark.parametrize(
    ("eager", "compiled", "warning"),
    [
        (3, 4, "output[1] differs between eager and compiled: int"),
        (True, 1, "output[1] differs between eager and compiled: bool"),
        ("a", "b", "output[1] differs between eager and compiled: str"),
        (0.25, math.inf, "output[1] is returned by one of eager and compiled only"),
        (0.5, None, "output[1] is returned by one of eager and compiled only"),
        ([], {}, "output[1] differs between eager and compiled: list"),
        ({"a": 1}, {"b": 1}, "output[1]['a'] is returned by one of eager and compiled only"),
    ],
)
def test_what_is_no_tensor_is_compared_by_equality(eager: object, compiled: object, warning: str) -> None:
    """Another number, word or key than eager's is another answer."""
    result = measure_pair(lambda value: (value, eager), lambda value: (value, compiled))
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert warning == describe_measuring(result.warnings[0])


@pytest.mark.parametrize("leaf", [3, "a", None, math.inf, math.nan, 0.1, torch.float32, {"a": []}])
def test_what_is_no_tensor_and_the_same_is_no_error(leaf: object) -> None:
    """A NaN number may be meant."""
    result = measure_pair(lambda value: (value, leaf), lambda value: (value, leaf))
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert not result.warnings


def test_a_number_that_was_rounded_is_judged_as_a_tensor_is() -> None:
    """A compiled mean is off by a rounding step, or by a hundredth."""
    for off, drifts in ((1 + 1e-7, False), (1.01, True)):

        def average(value: torch.Tensor, factor: float = off) -> float:
            return value.mean().item() * factor

        result = measure_pair(lambda value: value.mean().item(), average)
        assert (result.samples[Metric.DRIFT] > (10,)) is drifts


@pytest.mark.parametrize(
    "convert",
    [lambda value: value.numpy(), lambda value: value.numpy().mean(), lambda value: value.numpy() * 1j],
)
def test_arrays_are_judged_as_tensors_are(convert: Any) -> None:
    """A compiled array is off by a rounding step, or by a hundredth."""
    for off, drifts in ((1 + 1e-7, False), (1.01, True)):
        result = measure_pair(
            lambda value: convert(value.sin()), lambda value, factor=off: convert(value.sin() * factor)
        )
        assert (result.samples[Metric.DRIFT] > (10,)) is drifts
        assert MISMATCH not in result.samples[Metric.DRIFT]


@pytest.mark.parametrize("wrong", [[1, 3], [1.0, math.nan], math.inf])
def test_other_arrays_are_compared_by_equality(wrong: object) -> None:
    """Whole numbers are exact, and NaN or an infinity may be meant."""
    for compiled, drift in ((wrong, 0.0), ([1, 2], MISMATCH)):
        result = measure_pair(
            lambda value: (value, np.array(wrong)), lambda value, other=compiled: (value, np.array(other))
        )
        assert result.samples[Metric.DRIFT] == (drift,)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, that these are new
@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda value: value.view(8, 8).to_sparse(), id="sparse"),
        pytest.param(lambda value: value.view(8, 8).to_sparse_csr(), id="compressed"),
        pytest.param(lambda value: torch.nested.nested_tensor([value[:9], value[9:]]), id="nested"),
        pytest.param(lambda value: value.to(torch.float8_e4m3fn), id="of 8 bits"),
        pytest.param(lambda value: (value * 1e4).to(torch.float8_e5m2), id="of 8 bits, some infinite"),
    ],
)
def test_tensors_that_functions_cannot_compare_are_compared(convert: Any) -> None:
    """By copies that they can: eager's own answer has no drift, and one that is off by half has."""

    def forward(value: torch.Tensor) -> Any:
        return convert(value.sin())

    with open_case(make_context(), Workload(forward=forward, inputs=(torch.rand(64),))):
        pass
    for off, drifts in ((1.0, False), (1.5, True)):
        result = measure_pair(forward, lambda value, factor=off: convert(value.sin() * factor))
        assert (result.samples[Metric.DRIFT] > (1.0,)) is drifts
        assert not result.warnings


def test_another_layout_than_eagers_is_named() -> None:
    """Its elements are eager's."""
    result = measure_pair(lambda value: value.to_sparse(), lambda value: value + 0)
    assert result.samples[Metric.DRIFT] == (0.0,)
    (warning,) = map(describe_measuring, result.warnings)
    assert "of layout sparse_coo" in warning


def test_a_sparse_gradient_is_compared() -> None:
    """Of an embedding: rows that no input names have none."""
    case = Case(id="m/c", model="m", task=Task.TRAINING)
    built = Workload(
        forward=torch.nn.Embedding(100, 4, sparse=True), inputs=(torch.arange(64),), loss=torch.Tensor.sum
    )
    for off, drifts in ((1.0, False), (1.01, True)):
        with use_gradients(case):
            subject = make_subject(built, case, CpuDevice())
            context = make_context(case=case)

            def call(indices: torch.Tensor, factor: float = off, subject: Any = subject) -> Any:
                return subject.workload.forward(indices).mul(factor).sum()

            measure_drift(context, CompiledSubject(subject=subject, compiled=call))
        assert (context.logbook.result.samples[Metric.DRIFT] > (10.0,)) is drifts


def test_an_object_that_nobody_can_compare_is_named() -> None:
    """Two objects without attributes and without an equality of their own may be anything."""
    result = measure_pair(lambda value: (value, object()), lambda value: (value, object()))
    assert result.samples[Metric.DRIFT] == (0.0,)
    (warning,) = map(describe_measuring, result.warnings)
    assert warning.startswith("output[1], of type object, is not compared")


class Exact(torch.nn.Module):
    """Computes in float64 for any input, as eager's BatchNorm does on a processor."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return (value.double() * 3).to(value.dtype)


@pytest.mark.parametrize(("off", "is_beyond"), [(1 + 2**-20, False), (1 + 1e-3, True)])
def test_what_rounding_may_cost_is_measured_where_eager_is_better(off: float, is_beyond: bool) -> None:
    """Eight rounding steps are what 16 in the input make of it, a thousandth is more than four times that.

    Both are far beyond eager's own error, which is below half a step.
    """
    result = measure_pair(Exact(), lambda value: value * 3 * off)
    assert result.samples[Metric.DRIFT] > (3.0,)
    beyond = result.worst[Metric.DRIFT].beyond
    assert beyond is not None
    assert (beyond > DRIFT_BEYOND_ROUNDING) is is_beyond


class Deciding(torch.nn.Module):
    """Makes whole numbers of rounded ones: the largest of each row, eight bits, and what is positive."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(64, 32, dtype=dtype)
        self.wrong, self.adds = "", 0.0

    def forward(self, value: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute them; ``adds`` is what another order of sums adds, relative to the whole."""
        scores = self.layer(value)
        scores = scores + scores.roll(1, 1) * self.adds
        token, level = scores.argmax(-1), (scores.sigmoid() * 255).to(torch.uint8)
        keep = scores > 0
        rows = torch.arange(len(token), device=token.device)
        if self.wrong == "token":
            token = torch.where(rows % 100 == 7, (token + 1) % 32, token)
        if self.wrong == "level":
            level = level - (torch.arange(32) == 3).byte()
        if self.wrong == "keep":
            keep = keep ^ (rows % 64 == 0)[:, None]
        return {"token": token, "level": level, "keep": keep}


def decide(case: Case, **compiled: Any) -> WorkerResult:
    """Measure drift of 2048 rows under one seed, with these attributes of eager and compiled."""
    model = Deciding()
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    torch.manual_seed(2)
    subject = make_subject(Workload(forward=model, inputs=(torch.randn(2048, 64),)), case, CpuDevice())

    def call(value: torch.Tensor) -> Any:
        vars(subject.module).update(compiled)
        return subject.function(value)

    with use_gradients(case):
        measure_drift(context, CompiledSubject(subject=subject, compiled=call))
    return logbook.result


@pytest.mark.parametrize(("dtype", "adds"), [(DType.FLOAT32, 3e-7), (DType.BFLOAT16, 4e-3)])
def test_a_whole_number_that_rounding_turns_is_no_other_answer(dtype: DType, adds: float) -> None:
    """Of 65,536 some lie within a step of the next: float64 turns them too when weights are off by steps."""
    samples = decide(Case(id="m/c", model="m", dtype=dtype, backend="eager"), adds=adds).samples
    assert samples[Metric.DRIFT] == (0.0,)


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [
        *((DType.FLOAT32, wrong) for wrong in ("token", "level", "keep")),
        *((DType.BFLOAT16, wrong) for wrong in ("token", "keep")),  # which has no more than eight bits
    ],
)
def test_a_whole_number_that_is_wrong_is_another_answer(dtype: DType, wrong: str) -> None:
    """Each 100th token, one channel of eight bits, each 64th row of booleans: where nothing is close."""
    result = decide(Case(id="m/c", model="m", dtype=dtype, backend="eager"), wrong=wrong)
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert result.worst[Metric.DRIFT].output == f"output['{wrong}']"


class Cast(torch.nn.Module):
    """Returns float32 of what it computed in 16 bits, and has no other type."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        if self.weight.dtype != torch.bfloat16:
            raise TypeError("no such kernel")
        return (value * self.weight).float()


@pytest.mark.parametrize(("off", "is_wrong"), [(1.01, False), (1.2, True)])
def test_without_a_reference_the_type_that_computes_sets_the_limit(off: float, *, is_wrong: bool) -> None:
    """A hundredth is 1.3 steps of bfloat16, where 16 are rounding; of float32 it is 84,000."""
    case = Case(id="m/c", model="m", dtype=DType.BFLOAT16)
    model = Cast()
    result = measure_pair(model, lambda value: model(value) * off, case)
    assert result.samples.get(Metric.DRIFT) == ((MISMATCH,) if is_wrong else None)


TABLE: dict[str, Any] = {"last": torch.zeros(64), "calls": 0}


class Noting(torch.nn.Module):
    """Writes outside of any model."""

    def __init__(self, factor: float = 1.0, calls: int = 1) -> None:
        super().__init__()
        self.factor, self.calls = factor, calls

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        TABLE["last"].copy_(value * self.factor)
        TABLE["calls"] += self.calls
        return value.sin()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [((1.01,), "the tensor TABLE['last']"), ((1.0, 2), "the value TABLE['calls']")],
)
def test_state_in_a_python_module_is_compared(wrong: tuple[Any, ...], named: str) -> None:
    """A forward's globals lead to it; it is restored as the model's own is."""
    result = measure_pair(Noting(), Noting(*wrong))
    assert result.samples[Metric.DRIFT] > (14.0,)
    assert result.worst[Metric.DRIFT].output == named
    assert TABLE["calls"] == 0


class Counter(torch.nn.Module):
    """Counts, keeps a scale and reads a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.scale, self.began, self.by, self.factor = 0, 0.0, 0, 1, 1.0

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.calls += self.by
        self.scale = value.abs().max().item() * self.factor
        self.began = time.perf_counter_ns()
        return value.sin()


@pytest.mark.parametrize(
    ("wrong", "named"), [({}, ""), ({"by": 2}, "the value calls"), ({"factor": 1.01}, "the value scale")]
)
def test_numbers_that_a_call_changes_are_compared(wrong: dict[str, Any], named: str) -> None:
    """A counter is right or wrong, a scale is rounded, and a clock is what two eager calls differ in."""
    model = Counter()

    def call(value: torch.Tensor) -> torch.Tensor:
        before = {name: getattr(model, name) for name in wrong}
        vars(model).update(wrong)
        returned: torch.Tensor = model(value)
        vars(model).update(before)
        return returned

    result = measure_pair(model, call)
    assert (result.samples[Metric.DRIFT] > (10.0,)) is bool(wrong)
    assert not wrong or result.worst[Metric.DRIFT].output == named


class Scaling(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return value * self.weight


def test_the_gradient_of_an_input_that_asks_for_it_is_compared() -> None:
    """It counts as a parameter's; the compiled one lacks a hundredth."""
    model, given = Scaling(), torch.rand(64, requires_grad=True)
    built = Workload(forward=model, inputs=(given,), loss=lambda output: output.square().mean())
    case = Case(id="m/c", model="m", task=Task.TRAINING)
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    subject = make_subject(built, case, CpuDevice())

    def lose(value: torch.Tensor) -> Any:
        return subject.function(value * 0.99 + value.detach() * 0.01)

    measure_drift(context, CompiledSubject(subject=subject, compiled=lose))
    assert logbook.result.samples[Metric.DRIFT] > (10.0,)
    assert logbook.result.worst[Metric.DRIFT].output == "the gradient of inputs[0]"


def test_float64_is_excused_by_no_rounding_of_float32() -> None:
    """A forward that computes in float64 on purpose, and compiled in float32, is off by millions of steps."""
    result = measure_pair(lambda value: value.double() * 1.1, lambda value: (value * 1.1).double())
    beyond = result.worst[Metric.DRIFT].beyond
    assert beyond is not None
    assert beyond > DRIFT_BEYOND_ROUNDING


class Filling(torch.nn.Module):
    """Reads its input and overwrites it, as the operator of a cache does; wrong where it is compiled."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Triple the input in place, and return what it was."""
        before = value.clone()
        value.mul_(3).clamp_(max=1)
        return before if torch.compiler.is_compiling() else before * 2


def test_a_wrong_call_does_not_destroy_the_evidence() -> None:
    """After some calls the input is all ones on both sides: drift begins from the state before."""
    case = Case(id="m/c", model="m", backend="eager")
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case, skips_calls=True)
    measure_warm(context, Workload(forward=Filling(), inputs=(torch.full((4,), 1e-9),)))
    assert logbook.result.samples[Metric.DRIFT] > (20,)
