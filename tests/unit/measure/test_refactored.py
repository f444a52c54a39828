"""Refactored code that computes the same is as exact, and laid out, as before."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from gate.measure.context import use_gradients
from gate.measure.device.cpu import CpuDevice
from gate.measure.logbook import Logbook
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.training import measure_unreturned
from gate.measure.workload.build import compile_function, make_subject, seed_everything
from gate.metrics import SPECS
from gate.records.cases import Case, Metric, Task
from gate.records.protocol import WorkerResult, WorkerRole
from gate.workload import Workload

from .contexts import make_context

WIDTH = 32


class Model(nn.Module):
    """A layer, a norm and state, used by a function."""

    mean: torch.Tensor
    count: torch.Tensor

    def __init__(self, run: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.run = run
        self.first = nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.drop = nn.LayerNorm(WIDTH), nn.Dropout(0.1)
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("count", torch.zeros(()))
        self.calls, self.seen, self.last = 0, {0}, ""

    def forward(self, value: torch.Tensor) -> Any:
        return self.run(self, self.first(value))


def attend_fused(self: Model, value: torch.Tensor) -> torch.Tensor:
    query, key, other = self.inner(value).chunk(3, -1)
    mask = torch.ones(value.shape[1], value.shape[1], dtype=torch.bool).tril()
    return self.outer(functional.scaled_dot_product_attention(query, key, other, attn_mask=mask))  # type: ignore[no-any-return] # torch's


def attend_by_hand(self: Model, value: torch.Tensor) -> torch.Tensor:
    query, key, other = self.inner(value).split(WIDTH, dim=-1)
    later = torch.ones(value.shape[1], value.shape[1], dtype=torch.bool).triu(1)
    scores = (query @ key.transpose(-1, -2) / math.sqrt(WIDTH)).masked_fill(later, -math.inf)
    return self.outer(scores.softmax(-1) @ other)  # type: ignore[no-any-return] # torch's


def average_in_place(self: Model, value: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        self.mean.mul_(0.9).add_(value.mean((0, 1)), alpha=0.1)
    return value - self.mean


def average_by_lerp(self: Model, value: torch.Tensor) -> torch.Tensor:
    self.mean.lerp_(value.detach().mean((0, 1)), 0.1)
    return value - self.mean.clone()


def weigh_by_number(self: Model, value: torch.Tensor) -> torch.Tensor:
    self.calls += 1
    return value * self.calls


def weigh_by_longer_way(self: Model, value: torch.Tensor) -> torch.Tensor:
    number = self.calls + 1
    self.calls = number
    return torch.mul(value, number)


def note_words(self: Model, value: torch.Tensor) -> torch.Tensor:
    self.last = f"{len(self.seen)} seen"
    self.seen.add(len(self.seen))
    return value.sin()


def note_words_again(self: Model, value: torch.Tensor) -> torch.Tensor:
    size = len(self.seen)
    self.last = str(size) + " seen"
    self.seen |= {size}
    return torch.sin(value)


def drop_by_module(self: Model, value: torch.Tensor) -> torch.Tensor:
    return self.outer(self.drop(value.relu()))  # type: ignore[no-any-return] # torch's


def drop_by_function(self: Model, value: torch.Tensor) -> torch.Tensor:
    return self.outer(functional.dropout(functional.relu(value), 0.1, self.training))  # type: ignore[no-any-return] # torch's


def normalize_by_module(self: Model, value: torch.Tensor) -> list[torch.Tensor]:
    return [self.norm(value), value.transpose(0, 1)]


def normalize_by_function(self: Model, value: torch.Tensor) -> list[torch.Tensor]:
    values = [functional.layer_norm(value, (WIDTH,), self.norm.weight, self.norm.bias, self.norm.eps)]
    values.append(value.permute(1, 0, 2))
    return values


def split_with_chunks(self: Model, value: torch.Tensor) -> torch.Tensor:
    first, second, third = (part.tanh() for part in self.inner(value).chunk(3, -1))
    return first * second + third  # type: ignore[no-any-return] # torch's


def split_with_view(self: Model, value: torch.Tensor) -> torch.Tensor:
    first, second, third = self.inner(value).view(*value.shape[:-1], 3, WIDTH).tanh().unbind(-2)
    return torch.addcmul(third, first, second)


def count_in_buffer(self: Model, value: torch.Tensor) -> dict[str, torch.Tensor]:
    self.count.add_(1)
    return {"value": value / self.count, "count": self.count.clone()}


def count_by_copy(self: Model, value: torch.Tensor) -> dict[str, torch.Tensor]:
    self.count.copy_(self.count + 1)
    counted = {"value": value.div(self.count)}
    counted["count"] = self.count + 0
    return counted


def sum_all(returned: Any) -> torch.Tensor:
    values = returned.values() if isinstance(returned, dict) else returned
    parts = [values] if isinstance(values, torch.Tensor) else list(values)
    return torch.stack([(part**2).mean() for part in parts]).sum()


def measure(run: Callable[[Any, torch.Tensor], Any], task: Task) -> WorkerResult:
    """Measure drift of the same weights and inputs."""
    torch.compiler.reset()
    seed_everything(0)
    case = Case(id="m/c", model="m", backend="aot_eager", task=task)
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case)
    workload = Workload(forward=Model(run), inputs=(torch.rand(2, 16, WIDTH),), loss=sum_all)
    with use_gradients(case):
        subject = make_subject(workload, case, CpuDevice())
        compiled = compile_function(subject.plain, case)
        measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
        measure_unreturned(context, subject)
    return logbook.result


@pytest.mark.slow
@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (attend_fused, attend_by_hand),
        (average_in_place, average_by_lerp),
        (weigh_by_number, weigh_by_longer_way),
        (note_words, note_words_again),
        (drop_by_module, drop_by_function),
        (normalize_by_module, normalize_by_function),
        (split_with_chunks, split_with_view),
        (count_in_buffer, count_by_copy),
    ],
)
def test_a_refactoring_is_no_drift(
    before: Callable[[Any, torch.Tensor], Any], after: Callable[[Any, torch.Tensor], Any], task: Task
) -> None:
    """No metric of exactness grows by its limit, and no output lies otherwise."""
    old, new = (measure(module, task).samples for module in (before, after))
    for metric in (Metric.DRIFT, Metric.DRIFT_FLOAT32):
        assert new[metric][0] - old[metric][0] <= SPECS[metric].threshold.absolute
    assert new[Metric.LAYOUT_DIFFERENCES] == old[Metric.LAYOUT_DIFFERENCES]
