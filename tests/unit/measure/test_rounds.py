"""Warming up, sizing blocks and running the schedule, with steps that are no models."""

import itertools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch._dynamo import eval_frame
from torch._dynamo import utils as dynamo_utils
from torch._inductor import cudagraph_trees

from gate.devices import CUDA
from gate.measure import graph, rounds
from gate.measure.device.cpu import CpuDevice
from gate.measure.rounds import BlockRunner, TimeBlocks, call_until_quiet, make_schedule, run_rounds, warm_up
from gate.measure.turns import ThreadWaits
from gate.records.protocol import BlockSize, Sampling, Side

RECOMPILE = "Detected recompile when torch.compile stance is 'fail_on_recompile'."


def time_with(durations_s: list[float]) -> TimeBlocks:
    """Return a timer that calls the target, led in, and gives made-up times."""

    def time_blocks(target: Callable[[], object], lead_in: Callable[[], None], rounds: int) -> list[float]:
        for _ in range(rounds):
            lead_in()
            target()
        return durations_s[:rounds]

    return time_blocks


def make_recompiling() -> Callable[[], None]:
    """Make a step whose first call compiles anew."""
    errors = [RuntimeError(RECOMPILE)]

    def step() -> None:
        if errors:
            raise errors.pop()

    return step


def test_blocks_follow_the_schedule() -> None:
    """Each block calls its side as often as a block of that side has calls, and leads in with as many."""
    called: list[str] = []
    steps = {Side.EAGER: lambda: called.append("E"), Side.COMPILED: lambda: called.append("C")}
    sizes = {Side.EAGER: BlockSize(timed=2), Side.COMPILED: BlockSize(timed=1, led=3)}
    runner = BlockRunner(steps, sizes, make_schedule(1))
    for _ in range(4):
        runner.lead_in()
        called.append(" ")
        runner()
    assert " EECCC CCCC C EE" == "".join(called)


def test_a_recompile_before_a_block_spoils_it() -> None:
    """What is compiled while a block is led in is no part of it, but what ran then was not the usual code."""
    steps = {Side.EAGER: lambda: None, Side.COMPILED: make_recompiling()}
    sizes = dict.fromkeys(Side, BlockSize(timed=1, led=1))
    outcome = run_rounds(steps, sizes, 2, time_with([float(index) for index in range(8)]))
    assert outcome.recompiled == 1
    assert (4.0, 7.0) == outcome.times[Side.COMPILED]


def test_recompile_spoils_its_block_and_the_case_goes_on() -> None:
    """A recompile in the rounds costs one super-block, not the case."""
    steps = {Side.EAGER: lambda: None, Side.COMPILED: make_recompiling()}
    timer = time_with([float(index) for index in range(12)])
    outcome = run_rounds(steps, dict.fromkeys(Side, BlockSize(timed=1)), 3, timer)
    assert outcome.recompiled == 1
    assert (4.0, 7.0, 9.0, 10.0) == outcome.times[Side.COMPILED]


@pytest.mark.parametrize("recompiles", [False, True])
def test_the_stance_of_measured_code_holds(*, recompiles: bool) -> None:
    """Guards that it skips are skipped in timed calls too, and after them all is as it was."""
    seen = []
    recompile = make_recompiling()

    def step() -> None:
        seen.append(eval_frame._stance)
        if recompiles:
            recompile()

    steps, timer = {Side.EAGER: lambda: None, Side.COMPILED: step}, time_with([1.0] * 4)
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        users = eval_frame._stance
        run_rounds(steps, dict.fromkeys(Side, BlockSize(timed=1)), 1, timer)
        assert eval_frame._stance == users
    assert all(stance.skip_guard_eval_unsafe for stance in seen)
    assert (seen[0].stance, seen[-1].stance) == (
        "fail_on_recompile",
        "default" if recompiles else "fail_on_recompile",
    )


class Machine:
    """A clock and a counter of waiting that calls move; the calls with these numbers wait for 4 s."""

    def __init__(self, waiting: set[int]) -> None:
        self.now_s = self.waited_s = 0.0
        self.looked = self._calls = 0
        self._waiting = waiting

    def call(self) -> None:
        disturbed = self._calls in self._waiting
        self._calls += 1
        self.now_s += 5.0 if disturbed else 1.0
        self.waited_s += 4.0 if disturbed else 0.0

    def update_threads(self) -> None:
        self.looked += 1

    def read_s(self) -> float:
        return self.waited_s


def make_watched(waiting: set[int], calls: int) -> tuple[BlockRunner, Machine]:
    """Make a runner of blocks of so many calls on such a machine."""
    machine = Machine(waiting)
    steps, sizes = dict.fromkeys(Side, machine.call), dict.fromkeys(Side, BlockSize(timed=calls))
    return BlockRunner(steps, sizes, make_schedule(1), cast("ThreadWaits", machine)), machine


def test_calls_that_waited_are_no_part_of_what_a_block_takes_undisturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of twelve calls, timed in parts of two, calls 3 and 4 wait: they spoil four, and twelve take 12 s."""
    runner, machine = make_watched({3, 4}, calls=12)
    monkeypatch.setattr(time, "perf_counter", lambda: machine.now_s)
    runner.lead_in()
    assert runner() == 12.0
    assert machine.looked == 1


def test_a_block_in_which_every_call_waited_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.0 means that no call was undisturbed, not that it was fast."""
    runner, machine = make_watched(set(range(3)), calls=3)
    monkeypatch.setattr(time, "perf_counter", lambda: machine.now_s)
    assert [runner(), runner()] == [0.0, 3.0]
    assert runner.undisturbed_s == [0.0, 3.0]


def test_what_nobody_watches_is_not_reported() -> None:
    """Outside a pair, and on a GPU, a block is timed as a whole, by one clock."""
    outcome = run_rounds(
        dict.fromkeys(Side, lambda: None),
        dict.fromkeys(Side, BlockSize(timed=1)),
        1,
        time_with([1.0, 2.0, 3.0, 4.0]),
    )
    assert outcome.undisturbed is None


def test_undisturbed_times_are_those_of_a_call_in_schedule_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """E C C E of two calls each: the first compiled block waits, so that it has none."""
    machine = Machine({2, 3})
    monkeypatch.setattr(time, "perf_counter", lambda: machine.now_s)
    time_blocks, waits = time_with([2.0, 10.0, 2.0, 2.0]), cast("ThreadWaits", machine)
    sizes = dict.fromkeys(Side, BlockSize(timed=2))
    outcome = run_rounds(dict.fromkeys(Side, machine.call), sizes, 1, time_blocks, waits)
    assert outcome.undisturbed == {Side.EAGER: (1.0, 1.0), Side.COMPILED: (0.0, 1.0)}
    assert outcome.times == {Side.EAGER: (1.0, 1.0), Side.COMPILED: (5.0, 1.0)}


def test_other_errors_pass_through() -> None:
    """The model's own exception is raised."""

    def broken() -> None:
        raise RuntimeError("out of memory")

    runner = BlockRunner(
        dict.fromkeys(Side, broken), dict.fromkeys(Side, BlockSize(timed=1)), make_schedule(1)
    )
    with pytest.raises(RuntimeError, match="out of memory"):
        runner()


class IdleGpu(CpuDevice):
    """A processor, asked as a GPU."""

    kind = CUDA


def count_settling(step: Callable[[int], object], device: CpuDevice, quiet_calls: int) -> tuple[bool, int]:
    """Whether a step that gets the number of its call settles, and after how many calls."""
    calls = itertools.count(1)
    return call_until_quiet(lambda: step(next(calls)), device, quiet_calls), next(calls) - 1


def test_settling_goes_on_until_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quiet calls in a row after the last compile: the counters no longer depend on luck."""
    counts = iter([1, 2, 2, 3, 3, 3, 3])
    monkeypatch.setattr(graph, "count_compiles", lambda: next(counts))
    assert count_settling(lambda _: None, CpuDevice(), 3) == (True, 6)


def test_settling_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that compiles at every call is measured as it is."""
    counts = iter(range(1000))
    monkeypatch.setattr(graph, "count_compiles", lambda: next(counts))
    assert count_settling(lambda _: None, CpuDevice(), 3) == (False, rounds.MAX_SETTLING_CALLS)


@pytest.mark.parametrize("column", ["runtime_cudagraphify_time_us", "runtime_triton_autotune_time_us"])
def test_settling_waits_for_what_a_call_captures_or_tunes(column: str) -> None:
    """Torch's own record of a capture, or of a kernel's tuning, in the second call: three more are quiet."""

    def step(number: int) -> None:
        if number == 2:
            with dynamo_utils.dynamo_timed("capture or tune", dynamo_compile_column_us=column):
                pass
            dynamo_utils.get_runtime_metrics_context().finish()  # as a compiled graph's call does

    assert count_settling(step, CpuDevice(), 3) == (True, 5)


@pytest.mark.parametrize("put_off", [1, 9])
def test_settling_waits_for_a_capture_that_is_put_off(put_off: int) -> None:
    """Three quiet calls do not end it while torch's tree of CUDA graphs is at its warm-up."""
    manager = SimpleNamespace(in_warmup=False)
    container = cudagraph_trees.get_container(0)
    container.tree_manager = cast("Any", manager)

    def step(number: int) -> None:
        manager.in_warmup = number <= put_off  # the call after these captures

    try:
        assert count_settling(step, IdleGpu(), 3) == (True, put_off + 3)
    finally:
        container.tree_manager = None


def test_a_gpu_that_may_have_idled_is_warmed_for_a_second() -> None:
    """Its clock rises within the first half second: the first timed blocks would be slower ones."""
    begun = time.perf_counter()
    warm_up(lambda: None, IdleGpu(), Sampling(warmup_s=0.0))
    assert time.perf_counter() - begun >= 1.0
