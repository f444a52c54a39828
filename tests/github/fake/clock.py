"""A clock that never waits."""

import time


class FakeClock:
    """Sleeping moves the time and is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._start = time.time()

    def time(self) -> float:
        return self._start + sum(self.slept)

    def monotonic(self) -> float:
        return 1000.0 + sum(self.slept)

    def sleep(self, seconds: float, /) -> None:
        if seconds:
            self.slept.append(seconds)
