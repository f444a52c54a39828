"""The lab's side of two workers that take turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

from gate.lab.workers import turns
from gate.lab.workers.turns import LiveWorker


@dataclass
class Actor:
    """Takes its turn whenever it is told to."""

    said: list[str] = field(default_factory=list)
    is_gone: bool = False

    def say(self, line: str) -> None:
        """Hear what the lab says."""
        self.said.append(line)

    def hear(self) -> str:
        """Tell of a block of 30 ms."""
        return "turn 0.03"


def test_an_arm_hears_where_the_next_block_is_its_own() -> None:
    """0 1 1 0 0 1 1 0: who keeps the turn need not wait until its threads sleep."""
    arms = Actor(), Actor()
    turns._alternate([cast("LiveWorker", arm) for arm in arms], super_blocks=1, opened_s=math.inf)
    assert arms[0].said == ["go", "go keep", "go", "go"]
    assert arms[1].said == ["go keep", "go", "go keep", "go"]
