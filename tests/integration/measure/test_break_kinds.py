"""Dynamo's records of one program with ``nested_graph_breaks`` off and on, compiled for real."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gate.decide.evidence.places import list_changes
from gate.measure import graph
from gate.records.cases import Metric
from gate.records.run import Compiled, GraphBreak

pytestmark = pytest.mark.slow

Program = Callable[[torch.Tensor], Any]


def a(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    print(end="")  # noqa: T201 - it breaks the graph
    return x * 2


def b(x: torch.Tensor) -> torch.Tensor:
    return a(x) + 4


def three_deep(x: torch.Tensor) -> torch.Tensor:
    return b(x) * 3


def and_a_new_one(x: torch.Tensor) -> torch.Tensor:
    x = three_deep(x)
    print(end="")  # noqa: T201 - it breaks the graph
    return x.relu()


def _branch(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x * 2
    return x * 3


def branch(x: torch.Tensor) -> torch.Tensor:
    return _branch(x * 2) + 1


def _take_item(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def item(x: torch.Tensor) -> torch.Tensor:
    return _take_item(x * 2) + 1


def _list(x: torch.Tensor) -> list[torch.Tensor]:
    return [a(x + number) for number in range(2)]


def comprehension(x: torch.Tensor) -> Any:
    return sum(_list(x * 2))


def lambdas(x: torch.Tensor) -> Any:
    call: Program = lambda y: a(y)  # noqa: E731, PLW0108 - a frame of its own
    return call(x) + 1


def loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = a(x)
    return x


def two_in_a_line(x: torch.Tensor) -> torch.Tensor:
    y = three_deep(three_deep(x))
    return y + 1


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    print(end="")  # noqa: T201 - it breaks the graph
    yield


def _manage(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    with _printing():
        return x * 2


def manager(x: torch.Tensor) -> torch.Tensor:
    return _manage(x * 2) + 1


def _validate(x: torch.Tensor) -> Any:
    return torch.distributions.Normal(x, x.abs() + 1, validate_args=True).mean


def in_torch(x: torch.Tensor) -> Any:
    return _validate(x * 2) + 1


def explicit(x: torch.Tensor) -> torch.Tensor:
    def inner(y: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return y * 2

    return inner(x + 1) * 3


def record(program: Program, *, nested: bool) -> Compiled:
    """The records of two calls of the program."""
    torch.compiler.reset()
    graph.start_observation()
    with torch._dynamo.config.patch(nested_graph_breaks=nested):
        compiled = torch.compile(program, backend="eager")
        for _ in range(2):
            compiled(torch.ones(3))
    report = graph.observe_graphs(str(Path(__file__).parent))
    assert report.settings == {"nested_graph_breaks": "on" if nested else "off"}
    torch.compiler.reset()
    return Compiled(graph_breaks=report.graph_breaks, workload=report.settings)


def find_new(before: Compiled, after: Compiled) -> list[list[GraphBreak]]:
    """The new and the removed breaks."""
    evidence: Any = SimpleNamespace(trials=(after,), other_stack=False)
    changes = list_changes(evidence, before, after, Metric.GRAPH_BREAKS)
    assert changes is not None
    return [[site.record for site in side if isinstance(site.record, GraphBreak)] for side in changes]


_PROGRAMS = (
    *(three_deep, branch, item, comprehension, lambdas, loop, two_in_a_line, manager, in_torch, explicit),
)


@pytest.mark.parametrize("program", _PROGRAMS)
def test_one_program_has_the_same_kinds_of_breaks_with_both_settings(program: Program) -> None:
    """However often each is recorded, and whatever reason torch gives, nothing is new or gone."""
    flat, nested = record(program, nested=False), record(program, nested=True)
    assert flat.graph_breaks
    assert nested.graph_breaks
    assert find_new(flat, nested) == find_new(nested, flat) == [[], []]


def test_one_break_is_recorded_for_each_caller_or_once() -> None:
    """A print two calls deep: three records or one, all of the same line, with torch's registry id."""
    flat, nested = record(three_deep, nested=False), record(three_deep, nested=True)
    assert (len(flat.graph_breaks), len(nested.graph_breaks)) == (3, 1)
    places = {(item.location, item.registry) for item in (*flat.graph_breaks, *nested.graph_breaks)}
    assert places == {(f"test_break_kinds.py:{a.__code__.co_firstlineno + 2}", "GB0059")}


def test_a_new_break_is_seen_behind_fewer_records() -> None:
    """From 3 records to 2: the print of the caller is new, and that of ``a``, the same text, is not gone."""
    flat, nested = record(three_deep, nested=False), record(and_a_new_one, nested=True)
    assert (len(flat.graph_breaks), len(nested.graph_breaks)) == (3, 2)
    (new,), gone = find_new(flat, nested)
    assert new.innermost is not None
    assert new.innermost.function == "and_a_new_one"
    assert gone == []
