"""The order of timed blocks, their size, and the way back from times to samples. Pure.

A *block* is a number of calls of one side, timed together. A *super-block* is four blocks, ``E C C E``
or ``C E E C`` in turn, so that a drift of the machine that is linear in time cancels within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gate.records.protocol import Sampling
from gate.records.turns import BlockSize, Side

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


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTimes:
    """Seconds per call, one entry a block; entry ``i`` of both sides belongs to one pair."""

    eager_s: tuple[float, ...]
    compiled_s: tuple[float, ...]


def make_schedule(super_blocks: int) -> tuple[Side, ...]:
    """Make the order of ``4 * super_blocks`` blocks."""
    outer, inner = Side.EAGER, Side.COMPILED
    schedule: list[Side] = []
    for _ in range(super_blocks):
        schedule += [outer, inner, inner, outer]
        outer, inner = inner, outer
    return tuple(schedule)


def compute_block_calls(calls: int, elapsed_s: float, sampling: Sampling) -> int:
    """Compute how many calls fill ``sampling.block_s`` when ``calls`` of them took ``elapsed_s``."""
    if elapsed_s <= 0:
        return sampling.max_block_calls
    return max(1, min(sampling.max_block_calls, math.ceil(calls * sampling.block_s / elapsed_s)))


def size_block(timed: int, elapsed_s: float) -> BlockSize:
    """Size a block of ``timed`` calls that took ``elapsed_s`` seconds: with calls of ``LEAD_S`` before it."""
    call_s = elapsed_s / timed
    if call_s >= MAX_LED_CALL_S:
        return BlockSize(timed=timed)
    return BlockSize(timed=timed, led=timed if elapsed_s <= LEAD_S else math.ceil(LEAD_S / call_s))


def split_parts(calls: int) -> tuple[range, ...]:
    """Split the calls of a block into at most ``PARTS_OF_BLOCK`` parts, all but the last of equal length."""
    size = math.ceil(calls / PARTS_OF_BLOCK)
    return tuple(range(start, min(start + size, calls)) for start in range(0, calls, size))


def split_times(
    schedule: Sequence[Side],
    durations_s: Sequence[float],
    calls: Mapping[Side, int],
    spoilt: frozenset[int] = frozenset(),
) -> PairedTimes:
    """Split block durations into seconds per call of each side, in pair order.

    Super-blocks with a block whose index is in ``spoilt`` are left out, unless that would leave none.

    Raises:
        ValueError: There is not one duration for each block of the schedule.
    """
    if len(schedule) != len(durations_s):
        raise ValueError(f"{len(durations_s)} durations for {len(schedule)} blocks")
    size = 2 * BLOCKS_PER_SIDE
    starts = range(0, len(schedule), size)
    kept = [start for start in starts if spoilt.isdisjoint(range(start, start + size))] or list(starts)
    blocks = [index for start in kept for index in range(start, start + size)]

    def list_times(side: Side) -> tuple[float, ...]:
        return tuple(
            round(durations_s[index] / calls[side], SAMPLE_DECIMALS)
            for index in blocks
            if schedule[index] == side
        )

    return PairedTimes(eager_s=list_times(Side.EAGER), compiled_s=list_times(Side.COMPILED))
