"""pytest-benchmark's rows: blocks become calls of two sides."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gate.measure.rounds import Rounds
from gate.records.cases import Case
from gate.records.protocol import Side
from gate.suite.fixture import BlockTimer


class Benchmark:
    """A stand-in for pytest-benchmark's fixture."""

    def __init__(
        self, rows: list[Any], *, disabled: bool = False, params: dict[str, object] | None = None
    ) -> None:
        self.stats: Any = None
        self._params = params
        self._rows = rows
        self._disabled = disabled

    def pedantic(
        self,
        target: Callable[[], object],
        setup: Callable[[], None] | None = None,
        rounds: int = 1,
        iterations: int = 1,
    ) -> None:
        """Add a row of blocks: call the target, after the set-up if there is one."""
        data: list[float] = []
        if not self._disabled:
            stats = SimpleNamespace(data=data)
            self.stats = SimpleNamespace(stats=stats, fullname="t.py::t", name="t", params=self._params)
            self._rows.append(self.stats)
        for index in range(rounds * iterations):
            if setup:
                setup()
            target()
            data.append(float(index))


def test_two_rows_replace_the_blocks() -> None:
    """The table shows each side's seconds per call, grouped by case."""
    rows: list[Any] = []
    timer = BlockTimer(Benchmark(rows), rows)
    assert [0.0, 1.0] == timer(lambda: None, lambda: None, 2)
    times = {Side.EAGER: (1.0, 3.0), Side.COMPILED: (0.5, 0.25)}
    calls = {Side.EAGER: 4, Side.COMPILED: 8}
    timer.split_row("m/c", Rounds(times=times, calls=calls, recompiled=0), {"task": "inference"})
    assert ["eager", "compiled"] == [row.name for row in rows]
    assert ["t.py::t[eager]", "t.py::t[compiled]"] == [row.fullname for row in rows]
    assert [[1.0, 3.0], [0.5, 0.25]] == [row.stats.data for row in rows]
    assert {"m/c"} == {row.group for row in rows}
    expected = {
        "task": "inference",
        "case_id": "m/c",
        "arm": "compiled",
        "calls_per_block": 8,
    }
    assert expected == rows[1].extra_info


def test_arm_of_a_pair_sends_each_block_and_stops_when_asked() -> None:
    """After the lab's stop no block and no leading calls run."""
    rows: list[Any] = []
    blocks: list[float] = []
    ran: list[str] = []

    def wait(block_s: float) -> bool:
        blocks.append(block_s)
        return len(blocks) <= 2

    timer = BlockTimer(Benchmark(rows), rows, wait)
    assert [0.0, 1.0] == timer(lambda: ran.append("block"), lambda: ran.append("lead"), 5)
    assert ["lead", "block", "lead", "block"] == ran
    assert [0.0, 0.0, 1.0] == blocks


def test_arm_sends_what_its_target_knows_of_a_block() -> None:
    """A disturbed block takes less than the clock's time, or is unknown: 0.0."""
    blocks: list[float] = []
    times = iter([0.25, 0.0, 0.5])

    def wait(block_s: float) -> bool:
        blocks.append(block_s)
        return True

    timer = BlockTimer(Benchmark([]), [], wait)
    timer(lambda: next(times), lambda: None, 3)
    assert [0.0, 0.25, 0.0] == blocks


def test_parameters_can_be_written() -> None:
    """pytest-benchmark's JSON has the case's id; a test's own parameters stay."""
    rows: list[Any] = []
    params = {"gate_case": Case(id="m/c", model="m", factory="a:b"), "width": 64}
    timer = BlockTimer(Benchmark(rows, params=params), rows)
    timer(lambda: None, lambda: None, 1)
    times = {Side.EAGER: (1.0,), Side.COMPILED: (0.5,)}
    calls = {Side.EAGER: 1, Side.COMPILED: 1}
    timer.split_row("m/c", Rounds(times=times, calls=calls, recompiled=0), {})
    assert {"gate_case": "m/c", "width": 64} == rows[0].params


def test_skipping_leaves_no_row() -> None:
    """A process that times no rounds shows none."""
    rows: list[Any] = []
    BlockTimer(Benchmark(rows), rows).skip()
    assert [] == rows


def test_disabled_benchmarks_are_an_error() -> None:
    """A run that timed nothing must not look like one that did."""
    with pytest.raises(RuntimeError, match="disabled"):
        BlockTimer(Benchmark([], disabled=True), [])(lambda: None, lambda: None, 2)
