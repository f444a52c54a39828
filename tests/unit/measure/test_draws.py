"""Random forwards and Python state: the same draws on all sides, or a warning that drift is unknown."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from gate.measure.context import use_gradients
from gate.measure.device.cpu import CpuDevice
from gate.measure.logbook import Logbook
from gate.measure.numerics.draws import DrawsError, Recording, replay
from gate.measure.numerics.drift import MISMATCH
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.workload.build import compile_function, make_subject
from gate.records.cases import Case, Kind, Metric, Task
from gate.records.codes import Code
from gate.records.protocol import WorkerResult, WorkerRole
from gate.workload import Workload

from .contexts import make_context

_calls = itertools.count(1)


def drop(value: torch.Tensor) -> torch.Tensor:
    """Drop a tenth, in all three ways that models do it."""
    heads = value.reshape(1, 2, 8, 16)
    attended = functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1)
    return (
        functional.dropout(value, 0.1) + attended.reshape(value.shape) + functional.alpha_dropout(value, 0.1)
    )


def sample(value: torch.Tensor) -> torch.Tensor:
    """Add noise, as an autoencoder does, by operators that take a tensor's type or one that is given."""
    noise = torch.randn_like(value) + torch.rand(value.shape, dtype=torch.float32)
    return value + noise * torch.bernoulli(value.sigmoid()) + torch.empty_like(value).exponential_()


_generator = torch.Generator()


def sample_by_itself(value: torch.Tensor, generator: torch.Generator = _generator) -> torch.Tensor:
    """Add noise of a generator that no seed reaches."""
    return value + torch.randn(value.shape, generator=generator)


def count(value: torch.Tensor) -> torch.Tensor:
    """Count calls where nobody finds it."""
    return value * next(_calls)


def measure(forward: Callable[..., Any], factor: float = 1.0, **more: Any) -> tuple[WorkerResult, bool]:
    """Measure drift of a function under one seed; compiled it is multiplied. Also whether calls repeat."""

    def model(value: torch.Tensor) -> Any:
        return forward(value) * (factor if torch.compiler.is_compiling() else 1.0)

    return measure_model(model, more)


def measure_model(model: Callable[..., Any], more: dict[str, Any]) -> tuple[WorkerResult, bool]:
    """Measure drift of a model that is wrong by itself when compiled."""
    torch.compiler.reset()  # each compiles the same function, and Dynamo stops at its limit of recompiles
    case = Case(id="m/c", model="m", **{"backend": "eager", **more})
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    workload = Workload(forward=model, inputs=(torch.rand(256),), loss=lambda output: output.square().mean())
    with use_gradients(case):
        subject = make_subject(workload, case, CpuDevice())
        compiled = compile_function(subject.plain, case)
        repeats = measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
    return logbook.result, repeats


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("forward", [drop, sample])
def test_with_the_same_draws_only_a_fault_has_drift(forward: Callable[..., Any], task: Task) -> None:
    """One percent is 2^16 rounding steps; numbers of their own in float64 would hide it."""
    for factor, drifts in ((1.0, False), (1.01, True)):
        result, repeats = measure(forward, factor, task=task)
        assert (result.samples[Metric.DRIFT] > (10.0,)) is drifts
        assert not result.warnings
        assert not repeats


def test_a_generator_of_its_own_draws_the_same_in_float64() -> None:
    """It is put back before each call; float64 would draw others from it, and hide what is wrong."""
    for factor, drifts in ((1.0, False), (1.01, True)):
        result, _ = measure(functools.partial(sample_by_itself, generator=_generator), factor)
        assert (result.samples[Metric.DRIFT] > (10.0,)) is drifts


def draw_more(value: torch.Tensor) -> torch.Tensor:
    """Draw other numbers when compiled, as a compiler with its own generator does."""
    if torch.compiler.is_compiling():
        torch.rand(1)
    return value + torch.randn_like(value)


@pytest.mark.parametrize(
    ("forward", "more", "code"),
    [
        (draw_more, {}, Code.RANDOM_UNJUDGED),
        (sample, {"kind": Kind.EXPORT}, Code.RANDOM_UNJUDGED),
        (count, {}, Code.STATE_UNJUDGED),
    ],
)
def test_what_cannot_be_compared_is_reported(
    forward: Callable[..., Any], more: dict[str, Any], code: Code
) -> None:
    """No number is invented, neither 0 nor a large one."""
    result, repeats = measure(forward, **more)
    assert not result.samples
    assert [code] == [fact.code for fact in result.warnings]
    assert not repeats


@torch.library.custom_op("gate_test::jitter", mutates_args=())
def jitter(value: torch.Tensor) -> torch.Tensor:
    """Add noise where no dispatch mode sees it."""
    return value + torch.randn_like(value)


@pytest.mark.parametrize(("factor", "is_wrong"), [(1.0, False), (1.05, True)])
def test_an_operator_that_draws_inside_is_compared_with_eager(factor: float, *, is_wrong: bool) -> None:
    """Float64 cannot have its draws, as a warning reports; five percent are another answer."""
    jitter.register_fake(torch.empty_like)
    result, _ = measure(jitter, factor)
    assert result.samples.get(Metric.DRIFT) == ((MISMATCH,) if is_wrong else None)
    codes = [Code.NO_FLOAT64, *([Code.OUTPUT_FAR] if is_wrong else [])]
    assert codes == [fact.code for fact in result.warnings]


def test_numbers_that_change_nothing_are_no_reason() -> None:
    """Unused draws count as none."""
    result, repeats = measure(lambda value: (torch.rand(3), value.sin())[1])
    assert (set(result.samples.values()), repeats) == ({(0.0,)}, True)


def test_other_draws_than_eagers_are_an_error() -> None:
    """More of them, fewer, or by another operator: the reference would be of another call."""
    with Recording() as recording:
        torch.rand(2)
    for draws in (lambda: None, lambda: torch.randn(2), lambda: (torch.rand(2), torch.rand(2))):
        with pytest.raises(DrawsError), replay(recording.drawn):
            draws()


def test_what_dropout_drops_is_dropped_in_float64() -> None:
    """A fused operator returns what it kept: there float64 has its own value, over 0.9."""
    value = torch.rand(64)
    with Recording() as recording:
        kept = torch.native_dropout(value, 0.1, train=True)[0] != 0
    with replay(recording.drawn):
        exact, _ = torch.native_dropout(value.double(), 0.1, train=True)
    assert torch.equal(exact, value.double() * kept / 0.9)


def test_an_operator_that_computes_as_it_draws_has_no_reference() -> None:
    """Its result in float32 is rounded: the reference would be no better than eager."""
    value = torch.randn(8)
    with Recording() as recording:
        functional.rrelu(value, training=True)
    with pytest.raises(DrawsError, match="rrelu"), replay(recording.drawn):
        functional.rrelu(value.double(), training=True)


def sample_twice(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return samples, and others that are a percent off where they are compiled."""
    return sample(value), sample(value) * (1.01 if torch.compiler.is_compiling() else 1.0)


@pytest.mark.slow
def test_inductor_draws_as_eager_does_for_drift() -> None:
    """With numbers of its own both outputs would be off by millions of steps; one is, by a percent."""
    case = {"backend": "inductor"}
    result, _ = measure_model(sample_twice, case)
    worst = result.worst[Metric.DRIFT]
    assert worst.output.startswith("output[1]")  # of the call in which it was worst
    assert worst.steps == pytest.approx(0.01 * 2**23, rel=0.01)
    assert not result.warnings
