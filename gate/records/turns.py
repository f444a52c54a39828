"""What two workers of a pair and the lab tell each other: :mod:`gate.records.protocol` has the order.

A line is a word and numbers. Times are seconds; ``repr`` of a float keeps all of it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

BLOCKS_PER_ARM = 4  # of a super-block: two of eager's, two of compiled's
KEEP = "keep"  # of ``go``: the next block is this arm's as well


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCalls:
    """How many calls a block of each side has: timed ones, and untimed ones that lead it in."""

    eager: int
    eager_led: int
    compiled: int
    compiled_led: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What an arm would run by its own clock: calls of its blocks, and the seconds of one super-block."""

    super_block_s: float
    calls: BlockCalls


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundPlan:
    """What both arms run: at most so many super-blocks, of the same blocks."""

    super_blocks: int
    calls: BlockCalls


def agree_on_calls(first: Offer, second: Offer) -> BlockCalls:
    """Both arms' blocks get the longer one's calls.

    What a block's first calls find in the caches depends on how many there are: an arm that was disturbed
    as it sized its blocks would otherwise be compared by shorter ones.
    """
    return BlockCalls(
        eager=max(first.calls.eager, second.calls.eager),
        eager_led=max(first.calls.eager_led, second.calls.eager_led),
        compiled=max(first.calls.compiled, second.calls.compiled),
        compiled_led=max(first.calls.compiled_led, second.calls.compiled_led),
    )


def format_ready(offer: Offer) -> str:
    """Write ``ready SECONDS CALLS...``."""
    return " ".join(["ready", repr(offer.super_block_s), *map(str, astuple(offer.calls))])


def parse_ready(line: str) -> Offer | None:
    """Parse ``ready SECONDS CALLS...``; ``None`` where a line says something else."""
    try:
        word, seconds, *calls = line.split()
        if word != "ready":
            return None
        return Offer(super_block_s=float(seconds), calls=_parse_calls(calls))
    except ValueError:
        return None


def format_rounds(plan: RoundPlan) -> str:
    """Write ``rounds NUMBER CALLS...``."""
    return " ".join(["rounds", str(plan.super_blocks), *map(str, astuple(plan.calls))])


def parse_rounds(numbers: str) -> RoundPlan:
    """Parse what follows the word ``rounds``.

    Raises:
        ValueError: It is not five whole numbers.
    """
    super_blocks, *calls = numbers.split()
    return RoundPlan(super_blocks=int(super_blocks), calls=_parse_calls(calls))


def format_turn(block_s: float) -> str:
    """Write ``turn SECONDS``, of the block before; 0.0 before the first."""
    return f"turn {block_s!r}"


def parse_turn(line: str) -> float | None:
    """Parse ``turn SECONDS``; ``None`` where a line says something else."""
    word, _, rest = line.partition(" ")
    try:
        return float(rest) if word == "turn" else None
    except ValueError:
        return None


def _parse_calls(numbers: list[str]) -> BlockCalls:
    eager, eager_led, compiled, compiled_led = map(int, numbers)
    return BlockCalls(eager=eager, eager_led=eager_led, compiled=compiled, compiled_led=compiled_led)
