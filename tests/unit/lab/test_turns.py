"""The lab's side of two workers that take turns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import cast

from gate.lab.workers import turns
from gate.lab.workers.turns import LiveWorker
from gate.records.protocol import BLOCKS_PER_ARM


@dataclass
class Actor:
    """Takes its turn whenever the lab asks."""

    received: list[str] = field(default_factory=list)
    is_gone: bool = False
    heard: Iterator[str] = field(default_factory=lambda: repeat("turn 0.03"))

    def send(self, line: str) -> None:
        self.received.append(line)

    def hear(self) -> str:
        """Report a block, of 30 ms by default."""
        return next(self.heard)


def test_an_arm_hears_where_the_next_block_is_its_own() -> None:
    """0 1 1 0 0 1 1 0: an arm that keeps the turn need not wait for sleeping threads."""
    arms = Actor(), Actor()
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=1, wanted=1, opened_s=math.inf)
    assert arms[0].received == ["go", "go keep", "go", "go"]
    assert arms[1].received == ["go keep", "go", "go keep", "go"]


def test_disturbed_blocks_are_made_up_for() -> None:
    """Three super-blocks are wanted; head has no undisturbed block in the first: a fourth follows."""
    arms = Actor(), Actor(heard=chain(repeat("turn 0.0", 4), repeat("turn 0.03")))
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=6, wanted=3, opened_s=math.inf)
    for arm in arms:
        assert len([line for line in arm.received if line.startswith("go")]) == 4 * BLOCKS_PER_ARM
        assert arm.received[-1] == "stop"
