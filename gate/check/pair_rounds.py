"""How many rounds a live pair runs: more of them make it precise, and another pair may do so sooner. Pure.

After Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013), section 6: where repeating
at one level costs ``c`` and varies by ``s``, and at the level above ``C`` and ``S``, information a second is
greatest with ``sqrt(C / c) * s / S`` repetitions at the lower one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from gate.records.turns import BLOCKS_PER_ARM

# Two processes of one program differ by as much, whatever their rounds: live pairs of a program with itself
# varied by 0.6 to 3.1 %, typically 1.2 %.
PROCESS_SD = 0.012
# Fewer super-blocks do not tell how much one differs from the next.
MIN_SUPER_BLOCKS = 5
# The value of a pair is a median of its blocks, whose variance is as much larger than a mean's.
_MEDIAN_VARIANCE = math.pi / 2


def has_enough_rounds(
    base_s: Sequence[float], head_s: Sequence[float], *, opened_s: float, rounds_s: float
) -> bool:
    """Whether a further pair tells more a second than further super-blocks of this one.

    Args:
        base_s: Seconds of one arm's blocks, in the order in which they ran: whole super-blocks.
        head_s: The other arm's; both ran equal numbers of calls.
        opened_s: Seconds from the start of the pair to its first block: what another pair costs.
        rounds_s: Seconds of all blocks so far.
    """
    done = len(base_s) // BLOCKS_PER_ARM
    if done < MIN_SUPER_BLOCKS:
        return False
    deviation = max(map(statistics.stdev, _list_changes(base_s, head_s)))
    cost = opened_s / (rounds_s / done)
    return done >= math.sqrt(cost * _MEDIAN_VARIANCE) * deviation / PROCESS_SD


def _list_changes(base_s: Sequence[float], head_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """The change of eager and of compiled in each super-block: ``E C C E`` and ``C E E C`` by turns."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(base_s) // BLOCKS_PER_ARM):
        start = index * BLOCKS_PER_ARM
        for side, blocks in enumerate(((0, 3), (1, 2))):
            base, head = (sum(times[start + block] for block in blocks) for times in (base_s, head_s))
            sides[(side + index) % 2].append(math.log(head / base))
    return sides
