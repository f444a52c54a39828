"""Messages between the two workers of a pair and the lab: :mod:`gate.records.protocol` has the order.

A line is a word and numbers. Times are seconds; ``repr`` of a float keeps all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

BLOCKS_PER_ARM = 4  # of a super-block: two of eager's, two of compiled's
LOADED = "loaded"  # all is compiled, or loaded
KEEP = "keep"  # of ``go``: the next block is this arm's as well


class Side(StrEnum):
    """Which of the two programs a block runs; they share inputs and parameters."""

    EAGER = "eager"
    COMPILED = "compiled"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockSize:
    """How many calls a block of one side has: timed ones, and untimed ones that lead it in."""

    timed: int
    led: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What an arm would run by its own clock: its blocks, and the seconds of one super-block."""

    super_block_s: float
    sizes: Mapping[Side, BlockSize]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundPlan:
    """What both arms run: at most so many super-blocks, of the same blocks."""

    super_blocks: int
    sizes: Mapping[Side, BlockSize]


def agree_on_sizes(first: Offer, second: Offer) -> dict[Side, BlockSize]:
    """Both arms' blocks get the longer one's calls.

    What a block's first calls find in the caches depends on how many there are: an arm that was disturbed
    as it sized its blocks would otherwise be compared by shorter ones.
    """
    pairs = {side: (first.sizes[side], second.sizes[side]) for side in Side}
    return {
        side: BlockSize(timed=max(one.timed, other.timed), led=max(one.led, other.led))
        for side, (one, other) in pairs.items()
    }


def format_ready(offer: Offer) -> str:
    """Write ``ready SECONDS CALLS...``."""
    return f"ready {offer.super_block_s!r} {_format_sizes(offer.sizes)}"


def parse_ready(line: str) -> Offer | None:
    """Parse ``ready SECONDS CALLS...``; ``None`` where a line says something else."""
    try:
        word, seconds, *calls = line.split()
        if word != "ready":
            return None
        return Offer(super_block_s=float(seconds), sizes=_parse_sizes(calls))
    except ValueError:
        return None


def format_rounds(plan: RoundPlan) -> str:
    """Write ``rounds NUMBER CALLS...``."""
    return f"rounds {plan.super_blocks} {_format_sizes(plan.sizes)}"


def parse_rounds(numbers: str) -> RoundPlan:
    """Parse what follows the word ``rounds``.

    Raises:
        ValueError: It is not five whole numbers.
    """
    super_blocks, *calls = numbers.split()
    return RoundPlan(super_blocks=int(super_blocks), sizes=_parse_sizes(calls))


def format_turn(block_s: float) -> str:
    """Write ``turn SECONDS``, of the block before, undisturbed; 0.0 before the first, or where none was."""
    return f"turn {block_s!r}"


def parse_turn(line: str) -> float | None:
    """Parse ``turn SECONDS``; ``None`` where a line says something else."""
    word, _, rest = line.partition(" ")
    try:
        return float(rest) if word == "turn" else None
    except ValueError:
        return None


def _format_sizes(sizes: Mapping[Side, BlockSize]) -> str:
    return " ".join(f"{sizes[side].timed} {sizes[side].led}" for side in Side)


def _parse_sizes(numbers: list[str]) -> dict[Side, BlockSize]:
    eager, eager_led, compiled, compiled_led = map(int, numbers)
    return {
        Side.EAGER: BlockSize(timed=eager, led=eager_led),
        Side.COMPILED: BlockSize(timed=compiled, led=compiled_led),
    }
