"""Modules behind a forward that is none itself are found, cast, trained and copied."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gate.errors import UsageError
from gate.measure.context import call_watched
from gate.measure.device.cpu import CpuDevice
from gate.measure.numerics.reference import evaluate_reference, make_exact_twin
from gate.measure.workload.build import Subject, make_step, make_subject
from gate.measure.workload.holding import find_held, rebind
from gate.records.cases import Case, DType, Task
from gate.workload import Workload

WEIGHT = 0.5  # of a layer that multiplies by it
GLOBAL = torch.nn.Linear(1, 1, bias=False)


class Layer(torch.nn.Module):
    """A module with a method besides its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = make_layer()

    def encode(self, value: Any, *, twice: bool = False) -> Any:
        """Call the inner module; training and inference differ."""
        assert self.inner.training == self.training
        return self.inner(value) * (2 if twice else 1)


class Pipeline:
    """An object that is no module, and holds one deep within."""

    def __init__(self) -> None:
        self.parts = {"layers": [make_layer()]}

    def __call__(self, value: Any) -> Any:
        return self.parts["layers"][0](value)

    def run(self, value: Any) -> Any:
        return self(value)


def make_layer() -> torch.nn.Linear:
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, WEIGHT)
    return layer


def call_global(value: Any) -> Any:
    """Read a module from the file's top."""
    return GLOBAL(value)


def call_other(value: Any) -> Any:
    """Call a function that reads one."""
    return call_global(value)


def _close_over_layer() -> Callable[..., Any]:
    layer = make_layer()
    return lambda value: layer(value)  # noqa: PLW0108 - a closure


def _close_over_two() -> Callable[..., Any]:
    first, second = make_layer(), torch.nn.Identity()
    return lambda value: second(first(value))


def _close_over_weight() -> Callable[..., Any]:
    weight = torch.full((1, 1), WEIGHT, requires_grad=True)
    return lambda value: value @ weight


def _nest() -> Callable[..., Any]:
    inner = _close_over_layer()
    return lambda value: inner(value)  # noqa: PLW0108 - a closure of a closure


def _recurse() -> Callable[..., Any]:
    layer = make_layer()

    def run(value: Any, depth: int = 1) -> Any:
        return layer(value) if depth == 0 else run(value, depth - 1)

    return run


def _default() -> Callable[..., Any]:
    layer = make_layer()
    return lambda value, layer=layer: layer(value)


def _read_global() -> Callable[..., Any]:
    torch.nn.init.constant_(GLOBAL.to(torch.float32).weight, WEIGHT)
    GLOBAL.zero_grad()
    return call_other


FORWARDS: dict[str, Callable[[], Callable[..., Any]]] = {
    "module": make_layer,
    "bound method": lambda: Layer().encode,
    "its __call__": lambda: make_layer().__call__,
    "partial": lambda: functools.partial(Layer().encode, twice=False),
    "partial of a function": lambda: functools.partial(lambda layer, value: layer(value), make_layer()),
    "closure": _close_over_layer,
    "two": _close_over_two,
    "tensor": _close_over_weight,
    "nested": _nest,
    "recursive": _recurse,
    "default": _default,
    "decorated": lambda: torch.enable_grad()(_close_over_layer()),
    "vmap": lambda: torch.vmap(_close_over_layer()),
    "object": Pipeline,
    "object's method": lambda: Pipeline().run,
    "global": _read_global,
}


def build(forward: Callable[..., Any], **changes: Any) -> Subject:
    """Make a training subject of a forward, whose loss is the mean."""
    workload = Workload(
        forward=forward,
        inputs=(torch.ones(4, 1),),
        loss=torch.mean,
        optimizer=lambda leaves: torch.optim.SGD(leaves, lr=1.0),
    )
    case = Case(**{"id": "m/c", "model": "m", "factory": "m:f", "task": Task.TRAINING, **changes})
    return make_subject(workload, case, CpuDevice())


@pytest.mark.parametrize("kind", FORWARDS)
def test_parameters_are_trained_and_inputs_are_not(kind: str) -> None:
    """A step of rate 1 on the mean of w * 1 lowers w by 1; the ones that go in stay ones."""
    subject = build(FORWARDS[kind]())
    (leaf,) = subject.list_leaves()
    make_step(subject, subject.function)()
    assert leaf.item() == WEIGHT - 1
    assert subject.workload.inputs[0].tolist() == [[1.0]] * 4
    assert leaf.grad is None


@pytest.mark.parametrize("kind", FORWARDS)
def test_what_is_held_is_cast(kind: str) -> None:
    """A case in bfloat16 computes in it."""
    subject = build(FORWARDS[kind](), dtype=DType.BFLOAT16, task=Task.INFERENCE)
    assert subject.workload.forward(*subject.workload.inputs).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", FORWARDS)
def test_the_reference_is_made_of_a_copy(kind: str) -> None:
    """The copy computes in float64 with weights of its own; the original stays what it was."""
    subject = build(FORWARDS[kind]())
    twin = make_exact_twin(subject)
    (leaf,), (copied,) = subject.list_leaves(), twin.list_leaves()
    with torch.no_grad():
        copied.fill_(3.0)
    assert twin.workload.forward(*twin.workload.inputs).tolist() == [[3.0]] * 4
    assert twin.workload.forward(*twin.workload.inputs).dtype == torch.float64
    assert (leaf.item(), leaf.dtype) == (WEIGHT, torch.float32)
    assert subject.workload.forward(*subject.workload.inputs).tolist() == [[WEIGHT]] * 4
    exact = evaluate_reference(subject)
    assert [1.0] == [gradient.item() for gradient in exact.gradients.values()]


def test_a_module_is_set_to_eval() -> None:
    """A dropout behind a closure drops nothing in inference."""
    dropout = torch.nn.Dropout(0.5)
    subject = build(lambda value: dropout(value), task=Task.INFERENCE)  # noqa: PLW0108 - a closure
    assert subject.workload.forward(*subject.workload.inputs).tolist() == [[1.0]] * 4


def test_a_loss_holds_tensors_as_well() -> None:
    """A target that the loss closes over is cast with the rest, and the model's weights are its own still."""
    layer, target = make_layer(), torch.ones(4, 1)
    workload = Workload(
        forward=layer,
        inputs=(torch.ones(4, 1),),
        loss=lambda output: (output - target).square().mean() + 3 * layer.weight.square().sum(),
    )
    case = Case(id="m/c", model="m", factory="m:f", task=Task.TRAINING, dtype=DType.BFLOAT16)
    subject = make_subject(workload, case, CpuDevice())
    assert subject.function(*subject.workload.inputs).dtype == torch.bfloat16
    exact = evaluate_reference(subject)
    # 2 (w - 1) + 6 w, of which the second half is the copy's own weight
    assert {name: value.item() for name, value in exact.gradients.items()} == {
        "the gradient of model.weight": 2 * (WEIGHT - 1) + 6 * WEIGHT
    }


def test_a_criterion_without_weights_changes_no_name() -> None:
    """Most losses are modules that hold nothing: the model alone is what is trained."""
    layer = make_layer()
    assert find_held(layer, torch.nn.MSELoss()) is layer
    assert find_held(torch.sin, torch.sum) is None


def test_a_module_within_another_is_held_once() -> None:
    """By the outer one."""
    layer = Layer()
    inner = layer.inner
    assert find_held(lambda value: layer.encode(inner(value))) is layer


def test_frozen_modules_are_refused_in_training() -> None:
    """Nothing would be trained, without a sign of it."""
    with pytest.raises(UsageError, match="nothing requires a gradient") as caught:
        build(make_layer().requires_grad_(requires_grad=False))
    assert caught.value.fix.startswith("Call requires_grad_(True) on what is trained")


def test_what_cannot_be_copied_is_named() -> None:
    """A cached function keeps its module: the error names what to give instead."""
    layer = make_layer()
    cached = functools.cache(lambda value: layer(value))  # noqa: PLW0108 - a closure
    with pytest.raises(UsageError, match="holds modules, and cannot be copied") as caught:
        rebind(cached, {id(layer): make_layer()})
    assert caught.value.fix == "Give the module itself as forward, or a method of it."


def test_what_leads_to_no_module_is_shared() -> None:
    """A counter next to the module is shared with the copy; other functions stay as they are."""
    layer, other, seen = make_layer(), make_layer(), []

    def run(value: Any) -> Any:
        seen.append(1)
        return layer(value)

    rebound = rebind(run, {id(layer): other})
    assert rebound is not run
    rebound(torch.ones(1))
    assert seen == [1]
    assert rebind(torch.sin, {id(layer): other}) is torch.sin


@pytest.mark.parametrize("given", [make_layer(), _close_over_layer()], ids=["module", "function"])
def test_a_module_among_the_inputs_is_refused(given: Callable[..., Any]) -> None:
    """It would be neither cast nor copied."""
    workload = Workload(forward=lambda function, value: function(value), inputs=(given, torch.ones(1, 1)))
    case = Case(id="m/c", model="m", factory="m:f")
    with pytest.raises(UsageError, match=r"m:f: inputs\[0\] is or holds a module") as caught:
        make_subject(workload, case, CpuDevice())
    assert "functools.partial(function, module)" in caught.value.fix


class Shared:
    """An object whose module is its class's."""

    layer = make_layer()

    def run(self, value: Any) -> Any:
        return self.layer(value)


def _refer_weakly() -> Callable[..., Any]:
    reference = weakref.ref(GLOBAL)
    return lambda value: reference()(value)  # type: ignore[misc] # noqa: PLW0108 - a closure


class Unregistered(torch.nn.Module):
    """A module with a layer in a list that torch does not look into."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.own = [make_layer()], make_layer()

    def forward(self, value: Any) -> Any:
        return self.own(self.layers[0](value))


@pytest.mark.parametrize(
    "make", [_refer_weakly, Unregistered, lambda: Shared().run], ids=["weak", "list", "class"]
)
def test_parameters_that_nobody_finds_are_seen_in_use(make: Callable[[], Any]) -> None:
    """A note in inference; in training, or if their type is wrong, an error with the fix."""
    message = "forward uses a parameter of 1x1 that no module which can be found has registered"
    inference = build(make(), task=Task.INFERENCE)
    assert call_watched(inference, lambda: inference.workload.forward(*inference.workload.inputs)) == message
    for changes in ({}, {"task": Task.INFERENCE, "dtype": DType.BFLOAT16}):
        subject = build(make(), **changes)
        with pytest.raises(UsageError, match=message) as caught:
            call_watched(subject, make_step(subject, subject.function))
        assert caught.value.fix.startswith("Register what it uses in a module")


@pytest.mark.parametrize("kind", FORWARDS)
def test_parameters_that_are_found_are_not_reported(kind: str) -> None:
    """For any kind of forward."""
    subject = build(FORWARDS[kind]())
    assert not call_watched(subject, make_step(subject, subject.function))


def test_a_module_without_values_is_refused() -> None:
    """One on the meta device has sizes alone."""
    with pytest.raises(UsageError, match="weight is on the meta device"):
        build(torch.nn.Linear(1, 1, device="meta"))
