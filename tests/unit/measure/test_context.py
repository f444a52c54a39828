"""A case that is made ready, and the warnings of its eager calls."""

import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gate.measure import graph
from gate.measure.context import open_case, record_first, record_graphs
from gate.measure.graph import GraphReport
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.run import CacheUse
from gate.workload import Workload
from tests.words import describe_measuring

from .contexts import make_context


@pytest.mark.parametrize(
    ("caches", "codes"), [({}, []), ({"fx_graph": CacheUse(misses=1)}, [Code.EAGER_COMPILED])]
)
def test_eager_calls_that_compile_are_reported(
    monkeypatch: pytest.MonkeyPatch, caches: dict[str, CacheUse], codes: list[Code]
) -> None:
    """A model that compiles parts of itself has no eager side to compare with."""
    report = GraphReport(counts={}, caches=caches)
    monkeypatch.setattr(graph, "observe_graphs", lambda _: report)
    context = make_context()
    with open_case(context, Workload(forward=torch.nn.ReLU(), inputs=(torch.ones(1),))):
        pass
    assert codes == [fact.code for fact in context.logbook.result.warnings]


@pytest.mark.parametrize(
    ("helper", "codes"),
    [
        (torch.compile(lambda value: value + 1, backend="aot_eager"), [Code.EAGER_COMPILED]),
        (lambda value: torch.cond(value.sum() > 0, torch.sin, torch.cos, (value,)), []),
    ],
)
def test_a_helper_that_is_compiled_by_another_backend_is_reported(helper: Any, codes: list[Code]) -> None:
    """It leaves nothing in a cache; what torch compiles by itself in eager calls is not the model's doing."""
    torch.compiler.reset()
    graph.start_observation()
    context = make_context(case=Case(id="m/c", model="m", backend="eager"))
    with open_case(context, Workload(forward=helper, inputs=(torch.ones(3),))):
        pass
    assert codes == [fact.code for fact in context.logbook.result.warnings]


class Counting(torch.nn.Module):
    """Breaks its graph in its first call, and elsewhere in each call from ``later`` on; each recompiles."""

    def __init__(self, later: int) -> None:
        super().__init__()
        self.later, self.calls = later, 0

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        value = value * self.calls
        torch._dynamo.graph_break()
        if self.calls >= self.later:
            torch._dynamo.graph_break()
        return value + self.calls


@pytest.mark.parametrize(("later", "breaks"), [(4, 2), (99, 1)])
def test_a_break_of_a_later_call_is_counted_once(later: int, breaks: int) -> None:
    """Eager has called twice before, so that the second compiled call is the fourth."""
    torch.compiler.reset()
    context = make_context(case=Case(id="m/c", model="m", backend="eager"))
    with open_case(context, Workload(forward=Counting(later), inputs=(torch.ones(3),))) as prepared:
        graph.start_observation()
        prepared.compiled_step()
        record_first(context, graph.observe_graphs(""), {})
        assert context.logbook.result.samples[Metric.GRAPH_BREAKS] == (1.0,)
        for _ in range(3):
            prepared.compiled_step()
        assert len(graph.observe_graphs("").graph_breaks) > breaks
        record_graphs(context, prepared.protocol)
    assert context.logbook.result.samples[Metric.GRAPH_BREAKS] == (float(breaks),)
    assert len({item.location for item in context.logbook.result.graph_breaks}) == breaks


def test_a_trial_keeps_its_caches_whatever_directory_the_model_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory of the model's own, other compiles' graphs lie, and it is not ours to empty."""
    name, private = "TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "private")
    monkeypatch.setenv(name, private)

    class Setting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            os.environ[name] = str(tmp_path / "shared")

        def forward(self, value: torch.Tensor) -> torch.Tensor:
            os.environ[name] = str(tmp_path / "shared")
            return value + 1

    context = make_context(caches={name: private})
    with open_case(context, Workload(forward=Setting(), inputs=(torch.ones(1),))):
        assert graph.get_cache_directory() == tmp_path / "private"
    (note,) = context.logbook.result.warnings
    assert describe_measuring(note).startswith(f"the measured code sets {name}: that has no effect here")


def test_an_input_that_cannot_be_looked_into_is_named() -> None:
    """An array and a lock are given as they are, and a note says so; numbers and functions need none."""
    context = make_context()
    given = {"array": np.ones(1), "lock": threading.Lock(), "number": 1, "function": torch.sin}
    with open_case(context, Workload(forward=lambda value, _: value, inputs=(torch.ones(1), given))):
        pass
    assert [("inputs[1]['array']", "ndarray"), ("inputs[1]['lock']", "lock")] == [
        (*fact.names["input"], *fact.names["kind"])
        for fact in context.logbook.result.warnings
        if fact.code is Code.INPUT_AS_IT_IS
    ]


def test_a_parameter_that_no_module_holds_is_reported() -> None:
    """The function has only a weak reference to it: nobody can cast, move or copy it."""
    context = make_context()
    weight = torch.nn.Parameter(torch.ones(3))
    hidden: Callable[[], Any] = weakref.ref(weight)
    workload = Workload(forward=lambda value: torch.mul(value, hidden()), inputs=(torch.ones(3),))
    with open_case(context, workload):
        pass
    note = "forward uses a parameter of 3 that no module which can be found has registered"
    notes = [describe_measuring(fact) for fact in context.logbook.result.warnings]
    assert f"{note}: it is not cast, moved or copied for float64" in notes
