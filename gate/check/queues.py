"""Which case a lane takes next: sticky where one was begun, and by a hash of its name before."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable
from hashlib import blake2b

Rank = tuple[int, ...]  # the smallest is next


def choose_lane(case_id: str, lanes: Collection[str]) -> str:
    """Choose the lane of a case by rendezvous hashing: a lane more or less moves only its own cases.

    So the nightly run finds the card again that recorded the baseline.
    """
    return max(lanes, key=lambda lane: blake2b(f"{lane}\n{case_id}".encode(), digest_size=8).digest())


class Queues:
    """Cases that wait for a lane: begun ones for theirs alone, all others for the lane that idles first."""

    def __init__(self, lanes: Iterable[str]) -> None:
        self._begun: dict[str, list[tuple[Rank, str]]] = {lane: [] for lane in lanes}
        self._waiting: dict[str, deque[tuple[Rank, str]]] = {lane: deque() for lane in self._begun}

    def put_begun(self, lane: str, rank: Rank, case_id: str) -> None:
        """Let a case wait for the lane that began it."""
        heapq.heappush(self._begun[lane], (rank, case_id))

    def put_waiting(self, lane: str, rank: Rank, case_id: str) -> None:
        """Let a case that no lane has begun wait for this lane first; ranks come in order."""
        self._waiting[lane].append((rank, case_id))

    def take(self, lane: str) -> str | None:
        """Take the next case for a lane; without one of its own, what the busiest other is to begin last.

        That comes before further trials of its own: a case is begun where there is time.
        """
        begun, mine = self._begun[lane], self._waiting[lane]
        other = max(self._waiting.values(), key=len)
        heads = [queue[0] for queue in (begun, mine) if queue]
        if not mine and other and (not heads or other[-1] < heads[0]):
            return other.pop()[1]
        if not heads:
            return None
        return (heapq.heappop(begun) if begun and begun[0] == min(heads) else mine.popleft())[1]

    def drop(self, lane: str) -> list[tuple[Rank, str]]:
        """Take a lost lane out; what waited for it, in order."""
        return sorted((*self._begun.pop(lane), *self._waiting.pop(lane)))
