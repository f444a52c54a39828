"""The conditions of a trial, from two looks at the machine."""

from dataclasses import replace

import pytest

from gate.lab.host.fitness import list_disturbances
from gate.measure.device.nvml import DeviceState
from gate.measure.trial import MachineState, make_conditions
from gate.records.facts import Disturbance


def see(processes: int, slowed_s: float = 0.0) -> MachineState:
    """A look at a GPU with this number of processes, slowed this long by its power cap."""
    state = DeviceState(processes=processes, slowed_s={"software power cap": slowed_s})
    return MachineState(state=state, canaries_s={})


@pytest.mark.parametrize(
    ("looks", "is_paired", "strangers"),
    [
        ((1, 1), False, 0),
        ((1, 2), False, 1),
        # The second arm starts after the first one's first look, and may have ended before its last.
        ((1, 2), True, 0),
        ((2, 2), True, 0),
        ((2, 1), True, 0),
        ((2, 3), True, 1),
    ],
)
def test_arms_of_a_pair_are_no_strangers(looks: tuple[int, int], is_paired: bool, strangers: int) -> None:
    """Two workers of a live pair share the device; a third process is a disturbance."""
    before, after = map(see, looks)
    conditions = make_conditions(before, after, is_paired=is_paired)
    assert conditions.foreign_processes == strangers
    disturbances = list_disturbances(conditions, cores=8, threads=2)
    assert disturbances == ((Disturbance.SHARED,) if strangers else ())


def test_a_canary_counts_with_the_median_of_both_looks() -> None:
    """Times from before and after the rounds count alike."""
    before = replace(see(1), canaries_s={"copy": (1.0, 2.0)})
    after = replace(see(1), canaries_s={"copy": (3.0, 8.0, 9.0)})
    assert make_conditions(before, after, is_paired=False).canaries_s == {"copy": 3.0}


def test_a_power_cap_between_the_looks_is_reported_and_expected() -> None:
    """Half a second below the clock is noted, and disturbs nothing: matrix products do that."""
    conditions = make_conditions(see(1, 3.0), see(1, 3.5), is_paired=False)
    assert conditions.throttled == ("software power cap",)
    assert list_disturbances(conditions, cores=8, threads=2) == ()
