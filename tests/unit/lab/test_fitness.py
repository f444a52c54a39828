"""The host's fitness while a trial was measured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.lab.host.fitness import HostSample, compute_crowding, describe_host, list_disturbances, name_crowd
from gate.records.facts import Disturbance
from gate.records.run import Conditions

GIB = 2**30
BEFORE = HostSample(
    at_s=100.0,
    cores=4,
    busy_s=1000.0,
    stolen_s=10.0,
    own_s=50.0,
    held_back_s=1.0,
    heat_events=3,
    swapped_bytes=5 * GIB,
    free_bytes=8 * GIB,
)
# Ten seconds later: 15 processor seconds went by, 13 of them ours.
CALM = replace(BEFORE, at_s=110.0, busy_s=1015.0, own_s=63.0, free_bytes=7 * GIB)


def describe(after: HostSample, conditions: Conditions | None = None) -> Conditions:
    return describe_host(conditions or Conditions(), (BEFORE, after), threads=2)


def test_what_happened_between_two_looks() -> None:
    """2 foreign processor seconds in 10 s are 0.2 cores, which fit on the two that are left over."""
    conditions = describe(CALM, Conditions(canaries_s={"copy": 5.0}))
    assert pytest.approx(0.2) == conditions.foreign_cores
    assert (conditions.canaries_s, conditions.stolen, conditions.held_back) == ({"copy": 5.0}, 0.0, 0.0)
    assert conditions.free_bytes == 7 * GIB
    assert conditions.disturbances == ()


@pytest.mark.parametrize(
    ("changes", "disturbance"),
    [
        ({"busy_s": 1013.0 + 24.0}, Disturbance.CROWDED),
        ({"stolen_s": 11.2}, Disturbance.STOLEN),
        ({"held_back_s": 1.5}, Disturbance.HELD_BACK),
        ({"heat_events": 4}, Disturbance.HEATED),
        ({"swapped_bytes": 5 * GIB + 64 * 2**20}, Disturbance.SWAPPED),
        ({"free_bytes": 100 * 2**20}, Disturbance.SHORT_OF_MEMORY),
    ],
)
def test_each_disturbance_is_reported(changes: dict[str, float], disturbance: Disturbance) -> None:
    """One problem is one code."""
    assert describe(replace(CALM, **changes)).disturbances == (disturbance,)  # type: ignore[arg-type] # the test's


def test_a_crowd_is_named() -> None:
    """Programs that were busy 9.5 and 4 of ten seconds; not one that paused, ended or just began."""
    looks = [
        {(7, "rsync"): 100.0, (8, "idle"): 50.0, (9, "cc1plus"): 0.0, (123, "chromium"): 3.0},
        {(7, "rsync"): 104.0, (8, "idle"): 50.5, (9, "cc1plus"): 10.0, (123, "chromium"): 12.5},
        {(7, "rsync"): 110.0, (8, "idle"): 51.0, (9, "cc1plus"): 10.0, (123, "chromium"): 22.0},
    ]
    assert name_crowd(looks, 10.0) == ("chromium (pid 123, 95 %)", "rsync (pid 7, 40 %)")
    assert name_crowd([{}, *looks[1:]], 10.0) == name_crowd([*looks[:2], {}], 10.0) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"busy_s": 1013.0 + 22.0},  # 2.2 cores: two fit next to it, and 0.2 of two is a tenth
        {"stolen_s": 10.7},  # of 40 core seconds 1.75 %
        {"held_back_s": 1.09},
        {"swapped_bytes": 5 * GIB + 31 * 2**20},
        {"free_bytes": 300 * 2**20},
    ],
)
def test_little_is_no_disturbance(changes: dict[str, float]) -> None:
    """Just below each limit the host was fit."""
    assert describe(replace(CALM, **changes)).disturbances == ()  # type: ignore[arg-type] # the test's


def test_a_device_under_power_cap_is_as_ever() -> None:
    """Heavy products reach the power cap in every trial, but no thermal slowdown."""
    capped = Conditions(throttled=("software power cap",))
    hot = Conditions(throttled=("software power cap", "hardware thermal slowdown"), foreign_processes=1)
    assert list_disturbances(capped, cores=2, threads=2) == ()
    assert list_disturbances(hot, cores=2, threads=2) == (
        Disturbance.THROTTLED,
        Disturbance.SHARED,
    )


@pytest.mark.parametrize(
    ("before", "after", "disturbances"),
    [
        (0.0, 0.0, ()),
        (0.05, 0.01, ()),  # a display, or the driver itself
        (0.06, 0.0, (Disturbance.HELD_MEMORY,)),
        (0.0, 0.3, (Disturbance.HELD_MEMORY,)),
    ],
)
def test_memory_of_strangers_is_reported(
    before: float, after: float, disturbances: tuple[Disturbance, ...]
) -> None:
    """A container hides others' processes, not their memory while no worker is alive."""
    samples = (replace(BEFORE, foreign_memory=before), replace(CALM, foreign_memory=after))
    conditions = describe_host(Conditions(), samples, threads=2)
    assert conditions.foreign_memory == max(before, after)
    assert conditions.disturbances == disturbances


def test_unknown_memory_is_not_too_little() -> None:
    """0 means that the machine does not report it."""
    assert list_disturbances(Conditions(free_bytes=0), cores=2, threads=2) == ()


@pytest.mark.parametrize(
    ("foreign", "cores", "threads", "expected"),
    [(0.5, 2, 2, 0.25), (0.5, 4, 2, 0.0), (3.0, 4, 2, 0.5), (1.0, 1, 2, 1.0), (0.3, 2, 1, 0.0)],
)
def test_crowding_is_what_does_not_fit_next_to_the_gate(
    foreign: float, cores: int, threads: int, expected: float
) -> None:
    """Others' work counts once the cores that the worker leaves free are full."""
    assert pytest.approx(expected) == compute_crowding(foreign, cores, threads)


@given(foreign=st.floats(0, 64), more=st.floats(0, 8), cores=st.integers(1, 64), threads=st.integers(1, 64))
def test_crowding_grows_with_foreign_work(foreign: float, more: float, cores: int, threads: int) -> None:
    """More work of others never crowds less, and none never crowds."""
    assert compute_crowding(foreign + more, cores, threads) >= compute_crowding(foreign, cores, threads)
    assert compute_crowding(0.0, cores, threads) == 0.0


def test_counters_that_jump_back_disturb_nothing() -> None:
    """A counter that restarts, as after a move to another host, is no negative disturbance."""
    conditions = describe(replace(CALM, busy_s=0.0, stolen_s=0.0, heat_events=0, swapped_bytes=0))
    assert (conditions.foreign_cores, conditions.stolen, conditions.heat_events) == (0.0, 0.0, 0)
    assert conditions.disturbances == ()
