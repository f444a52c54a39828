"""Memory that calls keep is seen to the byte, and a cache that fills up does not count."""

import functools
import inspect
import itertools
from collections import deque
from collections.abc import Callable

import pytest
import torch

from gate.measure.device import cpu
from gate.measure.device.cpu import CpuDevice
from gate.measure.kept import find_keeper, measure_kept

KIB, MIB = 1024, 2**20
HISTORY: deque[torch.Tensor] = deque(maxlen=40)


class CountingDevice(CpuDevice):
    """A device whose memory in use is what the calls keep."""

    def __init__(self, keeps: Callable[[int], int]) -> None:
        super().__init__()
        self.keeps, self.calls, self.used = keeps, 0, 10 * MIB

    def call(self) -> None:
        self.calls += 1
        self.used += self.keeps(self.calls)

    def read_used(self) -> int:
        return self.used


@pytest.mark.parametrize(
    ("keeps", "kept_bytes", "calls"),
    [
        (lambda _: 0, 0, range(3, 18)),
        (lambda _: 1000, 0, range(3, 18)),  # less than what calls may differ by
        (lambda _: 64 * KIB, 64 * KIB, range(2048, 4096)),
        (lambda call: 64 * KIB if call <= 1000 else 0, 0, range(1000, 4096)),  # a history of 1000 calls
        (lambda _: 300 * MIB, 300 * MIB, range(17, 18)),  # so much that waiting would fill the memory
        (lambda call: 4 * KIB if call % 2 else 0, 2 * KIB, range(2048, 4096)),
    ],
)
def test_what_still_grows_after_thousands_of_calls_is_kept(
    keeps: Callable[[int], int], kept_bytes: int, calls: range
) -> None:
    """A bounded history is not, however many calls fill it; what keeps nothing costs few calls."""
    device = CountingDevice(keeps)
    kept = measure_kept(device.call, device)
    assert (kept.bytes, kept.calls) == (kept_bytes, device.calls)
    assert kept.calls in calls


def keep_tensors(kept: list[object]) -> None:
    kept.append(torch.zeros(16 * KIB))


def keep_objects(kept: list[object]) -> None:
    kept.append([{index: None} for index in range(100)])


def keep_cycle(_: list[object]) -> None:
    node: dict[str, object] = {"value": torch.zeros(16 * KIB)}
    node["self"] = node


def keep_last(kept: list[object]) -> None:
    kept[:] = [torch.zeros(16 * KIB)]


def keep_history(_: list[object]) -> None:
    HISTORY.append(torch.zeros(16 * KIB))


@pytest.mark.parametrize(
    ("keep", "least", "most"),
    [
        (keep_tensors, 64 * KIB, 65 * KIB),  # and objects of less than 1 KiB
        (keep_objects, 6 * KIB, 40 * KIB),  # 100 of Python's own small objects
        (keep_cycle, 0, 0),  # garbage is nobody's
        (keep_last, 0, 0),
        (keep_history, 0, 0),
    ],
)
def test_a_process_knows_what_it_has_in_use(
    keep: Callable[[list[object]], None], least: int, most: int
) -> None:
    """Of tensors and of Python's objects; what is replaced or collected is none.

    Neither are the 17 whole pages of which a heap that gives memory back takes 64 KiB and their header.
    """
    cpu.settle_heap()
    kept: list[object] = []
    device = CpuDevice()
    assert least <= measure_kept(lambda: keep(kept), device).bytes <= most


def test_the_line_that_keeps_is_found() -> None:
    """It is the one in the measured code, by whose objects are as many as the calls."""
    kept: list[object] = []
    line = inspect.getsourcelines(keep_tensors)[1] + 1
    assert find_keeper(lambda: keep_tensors(kept), "/nowhere").endswith(f"test_kept.py:{line}")
    assert find_keeper(lambda: torch.zeros(16), "/nowhere") == ""


def test_what_no_measured_line_makes_has_no_line() -> None:
    """The gate's own line makes an object at each call: its caller made none."""
    kept: list[object] = []
    makers = map(kept.append, map(bytearray, itertools.repeat(1000)))
    assert find_keeper(functools.partial(next, makers), "/nowhere") == ""
    assert len(kept) == 22


def test_another_allocator_is_not_taken_for_one_that_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning says that nobody counts."""
    monkeypatch.setattr(cpu, "_is_counted", lambda: False)
    with pytest.raises(OSError, match="counted by glibc"):
        measure_kept(lambda: None, CpuDevice())
