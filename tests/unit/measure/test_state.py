"""The state that a call leaves behind is restored."""

import random
from collections import deque
from types import ModuleType
from typing import Any

import torch

from gate.measure.device.cpu import CpuDevice
from gate.measure.numerics.state import copy_state, list_written
from gate.measure.workload.build import Subject, make_subject
from gate.records.cases import Case
from gate.workload import Workload


def make(forward: Any, *inputs: Any, **kwargs: Any) -> Subject:
    workload = Workload(forward=forward, inputs=inputs, kwargs=kwargs)
    return make_subject(workload, Case(id="m/c", model="m"), CpuDevice())


class Cache:
    """A cache as models have them: an object of its own, that grows."""

    def __init__(self) -> None:
        self.keys = [torch.zeros(2)]
        self.length = 0


class Counting(torch.nn.Module):
    """Keeps state in everything that can hold some."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.weight = torch.nn.Parameter(torch.zeros(2))
        self.plain = torch.zeros(2)
        self.calls = 0
        self.seen: set[int] = set()
        self.last: deque[int] = deque([1, 2], maxlen=2)
        self.random, self.generator = random.Random(1), torch.Generator()  # noqa: S311 - a model's noise

    def forward(self, value: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Write it all, in place or by another object."""
        self.mean = self.mean + value.mean()
        self.weight.data.add_(1)
        self.plain.add_(value)
        self.calls += 1
        self.seen.add(self.calls)
        self.last.append(self.calls)
        cache.keys.append(value.clone())
        cache.length += 1
        noise = torch.rand(2, generator=self.generator) + self.random.random()
        added: torch.Tensor = (
            value.add_(1) + len(cache.keys) + cache.length + self.calls + noise + self.mean + self.plain
        )
        return added


def test_the_same_is_asked_again() -> None:
    """A module's counts, caches and draws are restored: a call returns the same."""
    model = Counting()
    subject = make(model, torch.ones(2), cache=Cache())
    (value,), cache = subject.workload.inputs, subject.workload.kwargs["cache"]
    state = copy_state(subject)
    first = subject.function(value, cache=cache)
    state.restore()
    assert torch.equal(first, subject.function(value, cache=cache))
    state.restore()
    assert (model.calls, model.seen, list(model.last), len(cache.keys)) == (0, set(), [1, 2], 1)
    assert model.mean is model.get_buffer("mean") is state.live["the buffer mean"]
    assert [0.0, 0.0, 0.0, 1.0] == [
        float(tensor.detach().max()) for tensor in (model.mean, model.weight, model.plain, value)
    ]


def test_a_tensor_that_grows_is_restored() -> None:
    """A cache whose data a call replaces by longer data is the same tensor, as short as it was."""
    cache = torch.zeros(1, 2)

    def grow(value: torch.Tensor) -> torch.Tensor:
        cache.data = torch.cat([cache, value])
        return cache.sum(0)

    subject = make(grow, torch.ones(1, 2))
    state = copy_state(subject)
    for _ in range(2):
        assert subject.function(*subject.workload.inputs).tolist() == [1.0, 1.0]
        (written,) = list_written(subject, state).values()
        assert written.shape == (2, 2)
        state.restore()
    assert cache.tolist() == [[0.0, 0.0]]


def test_what_is_written_is_named_by_where_it_lies() -> None:
    """Buffers, parameters and inputs have their names, other tensors their paths."""
    subject = make(Counting(), torch.ones(2), cache=Cache())
    state = copy_state(subject)
    subject.function(*subject.workload.inputs, **subject.workload.kwargs)
    assert {name: value.tolist() for name, value in list_written(subject, state).items()} == {
        "the parameter weight": [1.0, 1.0],
        "the buffer mean": [1.0, 1.0],
        "the input [0]": [2.0, 2.0],
        "the tensor plain": [1.0, 1.0],
        "the input ['cache'].keys[1]": [1.0, 1.0],
    }


def test_a_function_keeps_state_in_what_it_closes_over() -> None:
    """A counter of an enclosing function starts anew."""
    calls = 0

    def count(value: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return value + calls

    subject = make(count, torch.zeros(1))
    state = copy_state(subject)
    count(torch.zeros(1))
    state.restore()
    assert calls == 0


def test_a_library_that_a_model_holds_is_left_alone() -> None:
    """What an import adds to it during a call is no state of the model."""

    class Lazy(ModuleType):
        """A package that loads its parts when they are asked for."""

    library = Lazy("library")
    state = copy_state(make(lambda value: (library, value), torch.ones(2)))
    vars(library)["part"] = 1
    state.restore()
    assert vars(library)["part"] == 1


def test_what_nobody_has_filled_is_no_number() -> None:
    """Of a cache of NaN only the element that was written counts."""
    cache = torch.full((3,), torch.nan)
    subject = make(lambda value: value, cache)
    state = copy_state(subject)
    assert not list_written(subject, state)
    cache[1] = 2.0
    assert [0.0, 2.0, 0.0] == list_written(subject, state)["the input [0]"].tolist()
