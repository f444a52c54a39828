"""The timed rounds: eager and compiled in alternating blocks, timed by pytest-benchmark's ``pedantic``.

A *block* is a number of calls of one side, timed together. A *super-block* is four blocks, ``E C C E``
or ``C E E C`` in turn: a linear drift of the machine cancels within it.
"""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gate.measure import graph
from gate.measure.device.device import Device
from gate.measure.private import STANCE
from gate.measure.turns import MAX_WAITED_SHARE, ThreadWaits
from gate.records.protocol import BlockSize, Sampling, Side

BLOCKS_PER_SIDE = 2  # in each super-block
# What the other side leaves in the caches makes the first calls of a block slower, the first by 0.1 to
# 0.3 ms of those that last 1 to 3 ms. So each block is led in by this many seconds of untimed calls.
LEAD_S = 0.005
# A call as long as this needs none: it would have to last 1 % longer to matter, and would cost most.
MAX_LED_CALL_S = 0.030
# A block whose calls are watched is timed in so many parts, or in single calls: of 10 ms a part takes 2. Who
# waits for a slice of the scheduler, 3 to 5 ms, then spoils two or three parts, and not the block.
PARTS_OF_BLOCK = 5
# Decimals of a second that a sample keeps: a tenth of what the clock resolves. The digits after that are
# not information, and would be half of every run.json.
SAMPLE_DECIMALS = 10


# Seconds per call, one entry a block; entry ``i`` of both sides belongs to one pair.
Times = Mapping[Side, tuple[float, ...]]
Step = Callable[[], Any]
MAX_SETTLING_CALLS = 64  # above Dynamo's recompile limit of 8 for several frames; then it is as it is
_SIZING_ATTEMPTS = 4  # a first call after the other side may be slow: size again with what it showed
# Times so many calls of the first argument at most, each after the untimed second; seconds each, in order.
# The first returns the seconds that its block takes undisturbed, as far as it knows.
TimeBlocks = Callable[[Callable[[], float | None], Callable[[], None], int], list[float]]


def make_schedule(super_blocks: int) -> tuple[Side, ...]:
    outer, inner = Side.EAGER, Side.COMPILED
    schedule: list[Side] = []
    for _ in range(super_blocks):
        schedule += [outer, inner, inner, outer]
        outer, inner = inner, outer
    return tuple(schedule)


def compute_block_calls(calls: int, elapsed_s: float, sampling: Sampling) -> int:
    if elapsed_s <= 0:
        return sampling.max_block_calls
    return max(1, min(sampling.max_block_calls, math.ceil(calls * sampling.block_s / elapsed_s)))


def size_block(timed: int, elapsed_s: float) -> BlockSize:
    call_s = elapsed_s / timed
    if call_s >= MAX_LED_CALL_S:
        return BlockSize(timed=timed)
    return BlockSize(timed=timed, led=timed if elapsed_s <= LEAD_S else math.ceil(LEAD_S / call_s))


def split_parts(calls: int) -> tuple[range, ...]:
    size = math.ceil(calls / PARTS_OF_BLOCK)
    return tuple(range(start, min(start + size, calls)) for start in range(0, calls, size))


def split_times(
    schedule: Sequence[Side],
    durations_s: Sequence[float],
    calls: Mapping[Side, int],
    spoilt: frozenset[int] = frozenset(),
) -> Times:
    """Split block durations into seconds per call of each side, in pair order.

    Super-blocks with a block whose index is in ``spoilt`` are left out, unless that would leave none.
    """
    size = 2 * BLOCKS_PER_SIDE
    starts = range(0, len(schedule), size)
    kept = {start for start in starts if spoilt.isdisjoint(range(start, start + size))} or set(starts)
    times: dict[Side, list[float]] = {side: [] for side in Side}
    for index, (side, duration_s) in enumerate(zip(schedule, durations_s, strict=True)):
        if index - index % size in kept:
            times[side].append(round(duration_s / calls[side], SAMPLE_DECIMALS))
    return {side: tuple(times_s) for side, times_s in times.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    times: Times
    calls: Mapping[Side, int]
    recompiled: int  # blocks during which something was compiled
    # Of the calls during which no thread waited for a processor, 0.0 where a block has none; None where
    # not watched.
    undisturbed: Times | None = None


class BlockRunner:
    """Runs the next block of the schedule at each call.

    The first recompile ends the stance that forbids them, and spoils its block. With ``waits`` a block is
    timed in parts; a part during which a thread waited for a processor is disturbed.
    """

    def __init__(
        self,
        steps: Mapping[Side, Step],
        sizes: Mapping[Side, BlockSize],
        schedule: tuple[Side, ...],
        waits: ThreadWaits | None = None,
    ) -> None:
        self._steps = steps
        self._led = {side: range(size.led) for side, size in sizes.items()}
        self._timed = {side: range(size.timed) for side, size in sizes.items()}
        self._parts = {side: split_parts(size.timed) for side, size in sizes.items()}
        self._schedule = schedule
        self._waits = waits
        self._next = 0
        self.stance = _read_stance()
        self.spoilt: set[int] = set()
        self.undisturbed_s: list[float] = []  # of each block, were all of it as its undisturbed calls

    def lead_in(self) -> None:
        if self._waits is not None:
            self._waits.update_threads()
        self._run(self._led[self._schedule[self._next]])

    def __call__(self) -> float | None:
        """Run one block; return the seconds that it takes undisturbed, 0.0 where no call of it was.

        ``None`` where calls are not watched.
        """
        side, undisturbed_s = self._schedule[self._next], None
        if self._waits is None:
            self._run(self._timed[side])
        else:
            undisturbed_s = self._run_parts(self._parts[side], self._waits)
            self.undisturbed_s.append(undisturbed_s)
        self._next += 1
        return undisturbed_s

    def _run_parts(self, parts: Sequence[range], waits: ThreadWaits) -> float:
        took_s, calls, before_s = 0.0, 0, waits.read_s()
        for part in parts:
            begun = time.perf_counter()
            self._run(part)
            part_s = time.perf_counter() - begun
            waited_s = waits.read_s()
            if waited_s - before_s <= MAX_WAITED_SHARE * part_s:
                took_s, calls = took_s + part_s, calls + len(part)
            before_s = waited_s
        return took_s / calls * sum(map(len, parts)) if calls else 0.0

    def _run(self, calls: range) -> None:
        step = self._steps[self._schedule[self._next]]
        try:
            for _ in calls:
                step()
        except RuntimeError as error:
            if not graph.is_recompile_error(error):
                raise
            torch.compiler.set_stance(**self.stance)
            self.spoilt.add(self._next)
            for _ in calls:
                step()


def _read_stance() -> dict[str, Any]:
    """Read the arguments of ``torch.compiler.set_stance`` that measured code has given."""
    stance = STANCE.find()
    return {
        "stance": getattr(stance, "stance", "default"),
        "skip_guard_eval_unsafe": getattr(stance, "skip_guard_eval_unsafe", False),
        "force_backend": getattr(stance, "backend", None),
    }


def call_until_quiet(step: Step, device: Device, quiet_calls: int) -> bool:
    """Call until ``quiet_calls`` in a row compile, capture and tune nothing; return whether they do."""
    quiet, compiles = 0, graph.count_compiles()
    for _ in range(MAX_SETTLING_CALLS):
        step()
        before, compiles = compiles, graph.count_compiles()
        is_due = device.kind.has_cuda_graphs and graph.awaits_capture(device.name.index or 0)
        quiet = 0 if is_due or compiles != before else quiet + 1
        if quiet == quiet_calls:
            break
    device.synchronize()
    return quiet == quiet_calls


def warm_up(step: Step, device: Device, sampling: Sampling) -> int:
    """Warm one side up for ``sampling.warmup_s``; return the calls that make a block of ``block_s``.

    A GPU gets a second at least: in a pair it may have idled for minutes while the other arm compiled.
    """
    calls, begun, attempts = 1, time.perf_counter(), 0
    while True:
        elapsed_s = time_calls(step, device, calls)
        fitting = compute_block_calls(calls, elapsed_s, sampling)
        attempts += 1
        long_enough = time.perf_counter() - begun >= max(sampling.warmup_s, device.kind.warmup_s)
        if long_enough and attempts >= _SIZING_ATTEMPTS:
            return fitting
        calls = fitting


def time_calls(step: Step, device: Device, calls: int) -> float:
    """Time ``calls`` calls together, with the device synchronized around them; seconds in all."""
    device.synchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        step()
    device.synchronize()
    return time.perf_counter() - begun


def compute_percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def size_blocks(
    steps: Mapping[Side, Step], calls: Mapping[Side, int], device: Device
) -> tuple[dict[Side, BlockSize], float]:
    """Time one block of each side; return their sizes, and the seconds that a super-block will take."""
    elapsed_s = {side: time_calls(steps[side], device, calls[side]) for side in Side}
    sizes = {side: size_block(calls[side], elapsed_s[side]) for side in Side}
    lasting_s = (elapsed_s[side] * (1 + size.led / size.timed) for side, size in sizes.items())
    return sizes, BLOCKS_PER_SIDE * sum(lasting_s)


def run_rounds(
    steps: Mapping[Side, Step],
    sizes: Mapping[Side, BlockSize],
    super_blocks: int,
    time_blocks: TimeBlocks,
    waits: ThreadWaits | None = None,
) -> Rounds:
    """Run the schedule of so many super-blocks at most; recompiles are forbidden until one happens."""
    schedule = make_schedule(super_blocks)
    runner = BlockRunner(steps, sizes, schedule, waits)
    calls = {side: size.timed for side, size in sizes.items()}
    gc.collect()
    gc.freeze()  # the collector runs between blocks; what is alive now is not looked at again
    try:
        skips_guards = runner.stance["skip_guard_eval_unsafe"]
        torch.compiler.set_stance("fail_on_recompile", skip_guard_eval_unsafe=skips_guards)
        durations_s = time_blocks(runner, runner.lead_in, len(schedule))
    finally:
        torch.compiler.set_stance(**runner.stance)
        gc.unfreeze()
    schedule = schedule[: len(durations_s)]
    spoilt, watched = frozenset(runner.spoilt), waits is not None
    return Rounds(
        times=split_times(schedule, durations_s, calls, spoilt),
        calls=calls,
        recompiled=len(runner.spoilt),
        undisturbed=split_times(schedule, runner.undisturbed_s, calls, spoilt) if watched else None,
    )
