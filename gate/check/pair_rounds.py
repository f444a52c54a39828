"""How many rounds a live pair runs: more of them make it precise, and another pair may do so sooner. Pure.

After Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013), section 6: where repeating
at one level costs ``c`` and varies by ``s``, and at the level above ``C`` and ``S``, information a second is
greatest with ``sqrt(C / c) * s / S`` repetitions at the lower one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from gate.decide.constants import LIVE_PAIR_SD
from gate.decide.stats.ranks import compute_rank_interval
from gate.records.turns import BLOCKS_PER_ARM

# Two processes of one program differ by as much, whatever their rounds: live pairs of a program with itself
# varied by 0.6 to 3.1 %, typically 1.2 %.
PROCESS_SD = 0.012
# Fewer super-blocks do not tell how much one differs from the next.
MIN_SUPER_BLOCKS = 5
# Where blocks are disturbed there are more of them, up to this multiple of what is wanted. On two cores, one
# of them taken half of the time and a sixth of both by the hypervisor, all noise of 20 pairs was their
# blocks' (3.0 % between pairs, 2.9 % expected from within): twice as many tell what two pairs do, and are
# cheaper. Beyond 10 s of blocks too little time is left for other cases.
MOST_ROUNDS = 4
# A normal estimate is off by more than its standard error, to one side, with this probability.
_ERROR_P = 1 - statistics.NormalDist().cdf(1)
_LEAST_OF_ERROR = 3  # the ranks of fewer are not that certain of anything


def has_enough_rounds(
    base_s: Sequence[float], head_s: Sequence[float], *, wanted: int, opened_s: float, rounds_s: float
) -> bool:
    """Whether a further pair tells more a second than further super-blocks of this one.

    Super-blocks count in which both arms have a block of eager's, and one of compiled's, that was not
    disturbed all the time.

    Args:
        base_s: Seconds of one arm's blocks, in the order in which they ran: whole super-blocks. 0.0 is a
            block without an undisturbed call.
        head_s: The other arm's; both ran equal numbers of calls.
        wanted: So many super-blocks are enough where they make the pair as precise as one is assumed to be.
        opened_s: Seconds from the start of the pair to its first block: what another pair costs.
        rounds_s: Seconds of all blocks so far.
    """
    changes = _list_changes(base_s, head_s)
    done = min(map(len, changes))
    if done < max(_LEAST_OF_ERROR, min(wanted, MIN_SUPER_BLOCKS)):
        return False
    error = max(map(compute_error, changes))
    if done >= wanted and error <= LIVE_PAIR_SD:
        return True
    cost = opened_s / (rounds_s / done)
    return done >= math.sqrt(cost * done) * error / PROCESS_SD


def compute_error(changes: Sequence[float]) -> float:
    """Standard error of the Hodges-Lehmann estimate of at least three values; infinite for fewer.

    Half of its interval by the ranks, which a stray value widens as little as it moves the estimate.
    """
    low, high = compute_rank_interval(changes, _ERROR_P)
    return (high - low) / 2


def _list_changes(base_s: Sequence[float], head_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """The changes of eager and of compiled in super-blocks: ``E C C E`` and ``C E E C`` by turns."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(base_s) // BLOCKS_PER_ARM):
        start = index * BLOCKS_PER_ARM
        for side, blocks in enumerate(((0, 3), (1, 2))):
            pairs = [(base_s[start + block], head_s[start + block]) for block in blocks]
            known = [math.log(head / base) for base, head in pairs if base > 0 and head > 0]
            if known:
                sides[(side + index) % 2].append(statistics.fmean(known))
    return sides
