"""The first call's arithmetic and the state of the caches."""

import gc

import pytest

from gate.errors import UsageError
from gate.measure.device.cpu import CpuDevice
from gate.measure.first_call import compute_compile_time, time_first_call
from gate.measure.graph import GraphReport
from gate.measure.kinds.protocol import Protocol
from gate.measure.trial import CacheStateError, check_cold
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CacheUse

PLAIN = Protocol(Case(id="m/c", model="m"))


@pytest.mark.parametrize(
    ("first_s", "steady_s", "expected"), [(5.0, 0.5, 4.5), pytest.param(0.1, 0.2, 0.0, id="never negative")]
)
def test_compile_time_is_less_a_steady_call(first_s: float, steady_s: float, expected: float) -> None:
    """The first call also runs the model once."""
    assert expected == compute_compile_time(first_s, steady_s)


def test_a_full_collection_is_not_due_because_of_earlier_objects() -> None:
    """Whichever young generations were collected before, the first call begins with none."""
    held: list[list[int]] = []
    while gc.get_count()[1] < 2:
        held.append([])
    counts: list[tuple[int, int, int]] = []
    time_first_call(lambda: counts.append(gc.get_count()), CpuDevice())
    assert [count[1:] for count in counts] == [(0, 0)]


def test_full_cache_is_no_cold_compile() -> None:
    """When every graph was found, the number would be another metric."""
    with pytest.raises(CacheStateError, match="2 graphs were found"):
        check_cold(CacheUse(hits=2, misses=0))


@pytest.mark.parametrize("cache", [CacheUse(), CacheUse(hits=1, misses=1), CacheUse(misses=3)])
def test_compiled_graphs_are_a_cold_compile(cache: CacheUse) -> None:
    """Equal layers hit the cache that the first of them filled; without graphs nothing is hit."""
    check_cold(cache)


def make_report(*skipped: Fact, **counts: int) -> GraphReport:
    """Return a report with some counts."""
    values = {Metric(name): value for name, value in counts.items()}
    return GraphReport(counts=values, skipped=skipped)


def skip(**names: str) -> Fact:
    return Fact(code=Code.LEFT_TO_EAGER, names=name_words(**names))


@pytest.mark.parametrize(
    ("skipped", "message"),
    [
        ((), "nothing was compiled, 0 graphs: it makes no tensors, or Dynamo is disabled or skips it"),
        (
            (skip(reason="a", location="m.py:3"), skip(reason="b", location=""), skip(reason="c")),
            "0 graphs: a at m.py:3; b\n",
        ),
    ],
)
def test_an_eager_call_is_no_compiled_one(skipped: tuple[Fact, ...], message: str) -> None:
    """Without a graph there is nothing to measure; the error has Dynamo's reasons if there are any."""
    with pytest.raises(UsageError, match=message):
        PLAIN.check_compiled(make_report(*skipped, unique_graphs=0))


@pytest.mark.parametrize(
    "report",
    [
        make_report(unique_graphs=1, generated_kernels=0),
        pytest.param(make_report(), id="a torch that does not tell"),
    ],
)
def test_a_graph_is_a_compile(report: GraphReport) -> None:
    """Library calls need no kernels of their own; an unknown count is no evidence against it."""
    PLAIN.check_compiled(report)
