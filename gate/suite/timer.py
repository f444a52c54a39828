"""The timer that pytest-benchmark reads: the wall clock, once the device has done its work. Torch-free."""

from __future__ import annotations

import time
from collections.abc import Callable


class SynchronizedTimer:
    """Waits for the device, then reads the clock; seconds. pytest-benchmark shows it by its name."""

    __name__ = "synchronized_perf_counter"

    def __init__(self) -> None:
        self.synchronize: Callable[[], None] | None = None

    def __call__(self) -> float:
        """Read the clock; without a device to wait for, at once."""
        if self.synchronize is not None:
            self.synchronize()
        return time.perf_counter()


TIMER = SynchronizedTimer()
