"""Drift is of three calls in order, of what they leave in Python, and of gradients that the step has not."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional

from gate.measure.context import open_case, use_gradients
from gate.measure.device.cpu import CpuDevice
from gate.measure.kinds.protocol import make_protocol
from gate.measure.logbook import Logbook
from gate.measure.numerics.drift import MISMATCH
from gate.measure.numerics.reference import evaluate
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.training import compare_unreturned, measure_unreturned
from gate.measure.workload.build import compile_function, make_subject
from gate.records.cases import Case, Kind, Metric, Task
from gate.records.codes import Code
from gate.records.protocol import Sampling, WorkerResult, WorkerRole
from gate.records.run import DRIFT_DEFINITION, GRADIENTS
from gate.workload import Workload

from .contexts import make_context


def is_wrong() -> bool:
    return torch.compiler.is_compiling()


def measure(model: Callable[..., Any], task: Task = Task.INFERENCE, **more: Any) -> WorkerResult:
    """Measure drift of a model that behaves otherwise when it is compiled."""
    workload = Workload(forward=model, inputs=(torch.rand(8, 32),), loss=lambda out: (out**2).mean(), **more)
    return measure_workload(workload, Case(id="m/c", model="m", backend="eager", task=task))


def measure_workload(workload: Workload, case: Case) -> WorkerResult:
    """Measure drift under one seed."""
    torch.compiler.reset()
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    with use_gradients(case):
        subject = make_subject(workload, case, CpuDevice())
        compiled = compile_function(subject.plain, case)
        measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
        measure_unreturned(context, subject)
    return logbook.result


class Counting(torch.nn.Module):
    """Weighs its first calls otherwise; a wrong count begins at ``start``."""

    calls: torch.Tensor

    def __init__(self, first_wrong: float) -> None:
        super().__init__()
        self.first_wrong = first_wrong
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        off = torch.where(self.calls >= self.first_wrong, 1.01, 1.0) if is_wrong() else 1.0
        return value * self.calls * off


@pytest.mark.parametrize(("first_wrong", "drifts"), [(1, True), (2, True), (3, True), (4, False)])
def test_three_calls_in_order_are_compared(first_wrong: int, *, drifts: bool) -> None:
    """A hundredth in any of them is 2^16 rounding steps; a fourth call is not compared."""
    result = measure(Counting(first_wrong))
    assert (result.samples[Metric.DRIFT] > (10.0,)) is drifts
    assert result.drift_definition == DRIFT_DEFINITION == 2


def test_the_buffer_begins_once_for_all_calls_of_a_side() -> None:
    """Three calls leave 3 in a counter, and their outputs are named; then all is as it was."""
    case = Case(id="m/c", model="m")
    subject = make_subject(Workload(forward=Counting(9), inputs=(torch.ones(2),)), case, CpuDevice())
    pair = CompiledSubject(subject=subject, compiled=subject.function)
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    measure_drift(context, pair)
    assert logbook.result.workload["outputs"] == "output float32[2]"
    assert [0.0] == [float(tensor) for tensor in subject.list_state()[:1]]


@pytest.mark.parametrize("counts", [True, False])
def test_a_package_is_loaded_anew_and_keeps_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, counts: bool
) -> None:
    """After seven calls its next is not eager's first; one that forgets is off from call 2 on."""

    def load_package(_: str) -> Callable[[torch.Tensor], torch.Tensor]:
        calls = itertools.count(1)
        return lambda value: value * float(next(calls) if counts else 1)

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch._inductor.aoti_load_package", load_package)
    case = Case(id="m/c", model="m", kind=Kind.EXPORT)
    protocol = make_protocol(case)
    with torch.no_grad():
        subject = protocol.make_subject(Workload(forward=Counting(9), inputs=(torch.rand(512),)), CpuDevice())
        (tmp_path / "package-float32.pt2").touch()
        compiled = protocol.compile(subject)
        for _ in range(7):
            compiled(*subject.workload.inputs)
        logbook = Logbook(None, WorkerRole.WARM)
        context = make_context(logbook, case, sampling=Sampling())
        measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
    assert (logbook.result.samples[Metric.DRIFT] > (20.0,)) is not counts
    assert [Code.WRITES_UNSEEN] == [fact.code for fact in logbook.result.warnings]


kept: list[torch.Tensor] = []


@torch.library.custom_op("gate_test::remember", mutates_args=())
def remember(value: torch.Tensor) -> torch.Tensor:
    """Return for ever the result of the first call."""
    kept.append(value.clone())
    return kept[0].clone()


def build_remembering(*, wrong: bool) -> Workload:
    """Build a model that returns its first input when it is compiled."""
    remember.register_fake(torch.empty_like)
    kept.clear()

    def forward(value: torch.Tensor) -> torch.Tensor:
        return remember(value) if wrong and is_wrong() else value.clone()

    return Workload(forward=forward, inputs=(torch.randn(300),))


@pytest.mark.parametrize("wrong", [True, False])
def test_a_second_call_has_other_inputs_where_the_factory_draws_them(*, wrong: bool) -> None:
    """With the same ones a result that is kept for ever would be right."""
    case = Case(
        id="m/c",
        model="m",
        factory=f"{__name__}:build_remembering",
        arguments={"wrong": wrong},
        backend="eager",
    )
    result = measure_workload(build_remembering(wrong=wrong), case)
    assert (result.samples[Metric.DRIFT] > (20.0,)) is wrong
    assert not wrong or result.worst[Metric.DRIFT].output == "output of call 2"


class Leaving(torch.nn.Module):
    """Leaves texts, sets and objects; ``what`` is the one that differs when it is compiled."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.word, self.seen, self.note = "", {0}, SimpleNamespace(text="")
        self.one, self.other = SimpleNamespace(), SimpleNamespace()
        self.current, self.log = self.one, ""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        off = self.what if is_wrong() else ""
        length = len(self.seen)
        self.word = f"{length}{'!' * (off == 'word')}"
        self.note.text = f"{length}{'!' * (off == 'note')}"
        self.log = f"loss {0.25 + 1e-7 * is_wrong()}"  # rounded: no two programs write the same
        self.seen = self.seen | {length + 10 * (off == "seen")}
        if off != "current":
            self.current = self.other if self.current is self.one else self.one
        return value + 1


@pytest.mark.parametrize(
    ("what", "named"),
    [("word", "the value word"), ("note", "the value note.text"), ("seen", "the value seen")],
)
def test_what_is_left_in_python_is_compared_by_value(what: str, named: str) -> None:
    """Text, a set and an attribute of an object are another answer where both sides leave some."""
    result = measure(Leaving(what))
    assert result.samples[Metric.DRIFT] == (MISMATCH,)
    assert named in [fact.name("output") for fact in result.warnings if fact.code is Code.OUTPUT_DIFFERS]


@pytest.mark.parametrize(("what", "left"), [("current", ("the value current",)), ("", ())])
def test_what_only_one_side_leaves_is_counted_and_no_drift(what: str, left: tuple[str, ...]) -> None:
    """Many models leave out notes for themselves when compiled: against a base that counts."""
    result = measure(Leaving(what))
    assert result.samples[Metric.DRIFT] == (0.0,)
    assert result.samples[Metric.LAYOUT_DIFFERENCES] == (len(left),)
    assert left == tuple(fact.name("output") for fact in result.warnings if fact.code is Code.LEFT_BY_ONE)


class Layer(torch.nn.Module):
    """A layer; ``what`` is wrong when it is compiled."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.inner = what, torch.nn.Linear(32, 32)

    def forward(self, value: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.inner(value)
        off = self.what if is_wrong() else ""
        if off == "gradient":
            out = out + value * 0.01 - value.detach() * 0.01
        return {"loss": (out**2).mean(), "logged": out.detach() * (1.01 if off == "logged" else 1.0)}


@pytest.mark.parametrize(
    ("what", "named"),
    [("gradient", "the gradient of inputs[0]"), ("logged", "output['logged']"), ("", "")],
)
def test_a_step_is_right_about_inputs_and_other_outputs_too(what: str, named: str) -> None:
    """Loss and gradients of the weights are right: another gradient or output by a hundredth is not."""
    workload = Workload(forward=Layer(what), inputs=(torch.rand(8, 32),), loss=lambda out: out["loss"])
    case = Case(id="m/c", model="m", backend="eager", task=Task.TRAINING)
    result = measure_workload(workload, case)
    assert result.worst[Metric.DRIFT].output == named
    assert (result.samples[Metric.DRIFT] == (MISMATCH,)) is bool(what)


def test_what_cannot_be_differentiated_is_reported() -> None:
    """An input that the model writes cannot ask for a gradient: the step itself is compared."""

    class Writing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(32, 32)

        def forward(self, value: torch.Tensor) -> torch.Tensor:
            return self.inner(value.mul_(0.5))  # type: ignore[no-any-return] # torch's

    result = measure(Writing(), Task.TRAINING)
    assert result.samples[Metric.DRIFT] == (0.0,)
    (note,) = [fact for fact in result.warnings if fact.code is Code.TRAINING_UNSEEN]
    assert "in-place operation" in note.name("why")


def test_outputs_of_other_draws_are_not_compared_and_a_note_says_so() -> None:
    """Compiled it draws once more than in eager, so its outputs show nothing."""

    class Drawing(torch.nn.Module):
        """Draws a number that it does not use."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, value: torch.Tensor) -> dict[str, torch.Tensor]:
            if torch.compiler.is_compiling():
                torch.rand(())
            applied = self.inner(value)
            return {"loss": applied.sum(), "applied": applied}

    workload = Workload(forward=Drawing(), inputs=(torch.rand(2, 4),), loss=lambda out: out["loss"])
    case = Case(id="m/c", model="m", backend="eager", task=Task.TRAINING)
    torch.compiler.reset()
    assert compare_unreturned(make_subject(workload, case, CpuDevice())) == (
        "compiled code draws other random numbers"
    )


class Masking(torch.autograd.Function):
    """Dropout whose backward draws its mask again, as a recompute without the generator's state does."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, again: bool) -> torch.Tensor:
        mask = torch.bernoulli(torch.full_like(value, 0.5))
        ctx.again = again
        ctx.save_for_backward(mask)
        return value * mask

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Draw the forward's mask, or a new one."""
        (mask,) = ctx.saved_tensors
        return grads[0] * (torch.bernoulli(torch.full_like(mask, 0.5)) if ctx.again else mask), None


class Dropping(torch.nn.Module):
    """A layer with such a dropout; calls of the wrong side are marked by ``again``."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.again = torch.nn.Linear(32, 32), False

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        dropped: torch.Tensor = Masking.apply(self.inner(value), self.again)  # type: ignore[no-untyped-call]
        return dropped


@pytest.mark.parametrize("again", [True, False])
def test_gradients_of_another_mask_are_a_drift(*, again: bool) -> None:
    """Outputs are equal, since the forward draws as eager; gradients are of another model."""
    model = Dropping()
    case = Case(id="m/c", model="m", backend="eager", task=Task.TRAINING)
    workload = Workload(forward=model, inputs=(torch.rand(8, 32),), loss=lambda out: (out**2).mean())
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    subject = make_subject(workload, case, CpuDevice())

    def call(value: torch.Tensor) -> Any:
        model.again = again
        returned = subject.function(value)
        model.again = False
        return returned

    measure_drift(context, CompiledSubject(subject=subject, compiled=call))
    assert (logbook.result.samples[Metric.DRIFT] > (10.0,)) is again
    assert Code.RANDOM_UNJUDGED not in [fact.code for fact in logbook.result.warnings]


def test_dropout_that_compiled_code_leaves_out_is_a_drift() -> None:
    """It draws nothing, and its result is the same under two seeds."""
    result = measure(lambda value: value if is_wrong() else functional.dropout(value, 0.1))
    assert result.samples[Metric.DRIFT] > (20.0,)


_hidden = torch.Generator()


def test_numbers_of_a_hidden_generator_are_not_judged() -> None:
    """Its draws depend on the seed, but no known generator moves."""
    numbers = itertools.count()

    @torch.compiler.disable  # type: ignore[untyped-decorator] # torch's
    def draw(value: torch.Tensor) -> torch.Tensor:
        _hidden.manual_seed(next(numbers))
        return torch.rand(value.shape, generator=_hidden)

    result = measure(lambda value: value + (draw(value) if is_wrong() else torch.rand_like(value)))
    assert Metric.DRIFT not in result.samples
    assert [Code.RANDOM_UNJUDGED] == [fact.code for fact in result.warnings]


class Forces(torch.nn.Module):
    """Returns the gradient of an energy by positions."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(3, 1)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        energy = self.net(positions).tanh().sum()
        return -torch.autograd.grad(energy, positions)[0]


def test_inference_may_take_a_gradient_by_its_input() -> None:
    """An input that asks for it keeps that, gradients are recorded, and a note says so once."""
    logbook = Logbook(None, WorkerRole.WARM)
    case = Case(id="m/c", model="m", backend="eager")
    context = make_context(logbook, case)
    workload = Workload(forward=Forces(), inputs=(torch.randn(16, 3, requires_grad=True),))
    with open_case(context, workload) as prepared:
        assert prepared.eager_step().shape == (16, 3)
        measure_drift(context, CompiledSubject(subject=prepared.subject, compiled=prepared.subject.function))
    assert logbook.result.samples[Metric.DRIFT] == (0.0,)
    assert logbook.result.workload[GRADIENTS] == "inputs[0]"
    codes = [fact.code for fact in logbook.result.warnings]  # of this process, which may have compiled before
    assert codes.count(Code.GRADIENTS_TAKEN) == 1
    assert torch.is_grad_enabled()


def test_an_evaluation_sums_gradients_over_its_calls() -> None:
    """Weight 1 and inputs 1, 2 and 1: the loss is their sum, and its gradient is 4."""
    case = Case(id="m/c", model="m", task=Task.TRAINING)
    layer = torch.nn.Linear(1, 1, bias=False)
    built = Workload(forward=layer, inputs=(torch.ones(1, 1),), loss=lambda out: out.sum())
    subject = make_subject(built, case, CpuDevice())
    first, second = torch.ones(1, 1), torch.full((1, 1), 2.0)
    evaluation = evaluate(subject=_give(subject, second, first), function=subject.function)
    assert {"the gradient of weight": 4.0} == {
        name: float(value) for name, value in evaluation.gradients.items()
    }
    assert list(evaluation.outputs) == ["the loss", "the loss of call 2", "the loss of call 3"]


def _give(subject: Any, *later: torch.Tensor) -> Any:
    return replace(subject, later=tuple([value] for value in later))
