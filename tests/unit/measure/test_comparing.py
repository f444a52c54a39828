"""What is compared besides outputs: what a call writes, the loss, and all of it without float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gate.decide.constants import DRIFT_BEYOND_ROUNDING
from gate.measure.context import WorkerContext, use_gradients
from gate.measure.device.device import CpuDevice
from gate.measure.numerics.drift import MISMATCH
from gate.measure.process.logbook import Logbook
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.warm import measure_warm
from gate.measure.workload.build import make_subject
from gate.records import Case, Code, Kind, Metric, Task
from gate.records.protocol import Sampling, WorkerResult, WorkerRole
from gate.workload import Workload
from tests.told import describe_measuring


class Model(torch.nn.Module):
    """Leaves something everywhere; ``wrong`` names what is off by a hundredth, or is not left at all."""

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
    context = WorkerContext(
        case=case, device=CpuDevice(), sampling=Sampling(drift_seeds=1), logbook=logbook, directory=""
    )
    with use_gradients(case):
        subject = make_subject(built, case, CpuDevice())
        model.refuses = compiled.pop("refuses", False)

        def call(*inputs: Any) -> Any:
            vars(model).update(compiled)
            return subject.function(*inputs)

        measure_drift(context, CompiledSubject(subject=subject, compiled=call))
    return logbook.result


def measure_pair(forward: Any, compiled: Any) -> WorkerResult:
    """Measure drift of one function against another under one seed."""
    case = Case(id="m/c", model="m")
    logbook = Logbook(None, WorkerRole.WARM)
    context = WorkerContext(
        case=case, device=CpuDevice(), sampling=Sampling(drift_seeds=1), logbook=logbook, directory=""
    )
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
    """The same program on both sides leaves the same."""
    result = measure(Case(id="m/c", model="m", task=task))
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert not result.warnings


@pytest.mark.parametrize(("lost", "named"), [("mean", "the buffer mean"), ("cache", "the input [1][0]")])
def test_what_compiled_does_not_write_is_seen(lost: str, named: str) -> None:
    """A buffer keeps its old value, and a cache among the inputs does not grow."""
    result = measure(lost=lost)
    assert result.samples[Metric.DRIFT] > (20,)
    assert result.worst[Metric.DRIFT].output == named


def test_a_note_that_compiled_code_does_not_keep_is_told() -> None:
    """Many a model leaves out an attribute of its own where it is compiled: no error, and not silent."""
    result = measure(lost="note")
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert [(Code.OUTPUT_LOST, "the tensor note")] == [
        (one.code, one.name("output")) for one in result.warnings
    ]


def test_the_loss_is_compared() -> None:
    """Gradients may be right where the loss is not; 2.01 % are compared under its name."""
    result = measure(Case(id="m/c", model="m", task=Task.TRAINING), wrong="output", refuses=True)
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert result.worst[Metric.DRIFT].output == "the loss"
    assert {"the loss", "the gradient of weight"} == {one.name("output") for one in result.warnings[1:]}


def test_what_a_package_writes_is_not_seen() -> None:
    """It has tensors of its own: that eager alone wrote its own is no error, and is told."""
    result = measure(Case(id="m/c", model="m", kind=Kind.EXPORT), lost="mean")
    assert result.samples[Metric.DRIFT] == (0.0,)
    (told,) = map(describe_measuring, result.warnings)
    assert told.startswith(
        "what compiled code writes to the buffer mean, the input [1][0], the parameter teacher"
    )


def test_without_float64_a_hundredth_is_seen() -> None:
    """It is 84,000 rounding steps of float32 from eager: rounding explains a thousand."""
    result = measure(wrong="output", refuses=True)
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert [Code.NO_FLOAT64, Code.OUTPUT_FAR] == [one.code for one in result.warnings]
    assert result.warnings[1].numbers["error"] == pytest.approx(0.01, rel=1e-3)
    assert describe_measuring(result.warnings[1]) == (
        "output of compiled is off from eager's by 0.01, relative to its size: rounding explains 0.00012"
    )


def test_without_float64_rounding_is_no_error() -> None:
    """What is right has no drift, and the reason is told."""
    result = measure(refuses=True)
    assert not result.samples
    assert [Code.NO_FLOAT64] == [one.code for one in result.warnings]


@pytest.mark.parametrize(
    ("eager", "compiled", "told"),
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
def test_what_is_no_tensor_is_compared_by_equality(eager: object, compiled: object, told: str) -> None:
    """Another number, word or key than eager's is another answer."""
    result = measure_pair(lambda value: (value, eager), lambda value: (value, compiled))
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert told == describe_measuring(result.warnings[0])


@pytest.mark.parametrize("leaf", [3, "a", None, math.inf, math.nan, 0.1, torch.float32, {"a": []}])
def test_what_is_no_tensor_and_the_same_is_no_error(leaf: object) -> None:
    """NaN among the numbers is one that the model means."""
    result = measure_pair(lambda value: (value, leaf), lambda value: (value, leaf))
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert not result.warnings


def test_a_number_that_was_rounded_is_judged_as_a_tensor_is() -> None:
    """A mean as a number is off by a rounding step where it is compiled, or by a hundredth."""
    for off, drifts in ((1 + 1e-7, False), (1.01, True)):

        def average(value: torch.Tensor, factor: float = off) -> float:
            return value.mean().item() * factor

        result = measure_pair(lambda value: value.mean().item(), average)
        assert (result.samples[Metric.DRIFT] > (10,)) is drifts


def test_an_object_that_nobody_can_compare_is_named() -> None:
    """Two objects without attributes and without an equality of their own may be anything."""
    result = measure_pair(lambda value: (value, object()), lambda value: (value, object()))
    assert result.samples[Metric.DRIFT] == (0.0,)
    (told,) = map(describe_measuring, result.warnings)
    assert told.startswith("output[1], of type object, is not compared")


class Exact(torch.nn.Module):
    """Computes in float64 whatever it is given, as eager's BatchNorm does on a processor."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Multiply, with the only rounding at the end."""
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


class Filling(torch.nn.Module):
    """Reads its input and overwrites it, as the operator of a cache does; wrong where it is compiled."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Triple the input in place, and return what it was."""
        before = value.clone()
        value.mul_(3).clamp_(max=1)
        return before if torch.compiler.is_compiling() else before * 2


def test_a_wrong_call_does_not_destroy_the_evidence() -> None:
    """After some calls the input is all ones, and both sides agree: drift begins from what was before."""
    case = Case(id="m/c", model="m", backend="eager")
    logbook = Logbook(None, WorkerRole.WARM)
    context = WorkerContext(
        case=case,
        device=CpuDevice(),
        sampling=Sampling(min_warmup_calls=1, drift_seeds=1),
        logbook=logbook,
        directory="",
        skips_calls=True,
    )
    measure_warm(context, Workload(forward=Filling(), inputs=(torch.full((4,), 1e-9),)))
    assert logbook.result.samples[Metric.DRIFT] > (20,)
