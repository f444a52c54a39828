"""The catalogue of faults, and what the gate must do about each."""

import pytest

from gate.errors import UsageError
from gate.records.cases import Metric
from gate.records.run import FailureKind
from gate.records.studies import FaultKind
from gate.selftest.catalog import choose_faults, list_faults
from tests.faults import find_fault


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_kind_is_there_and_no_fault_twice(device: str) -> None:
    """Kind and size name a fault."""
    names = [(fault.kind, fault.size) for fault in list_faults(device)]
    assert set(FaultKind) == {kind for kind, _ in names}
    assert len(set(names)) == len(names)


def test_sizes_of_slowdowns() -> None:
    """2, 3, 5, 10 and 30 %; the required rate grows with the size."""
    slowdowns = [fault for fault in list_faults("cpu") if fault.kind is FaultKind.SLOWDOWN]
    asked = {fault.size: fault.caught for fault in slowdowns}
    assert {0.02: 0.0, 0.03: 0.0, 0.05: 0.80, 0.10: 0.95, 0.30: 0.95} == asked


def test_smaller_slowdowns_are_asked_for_on_a_gpu() -> None:
    """There 5 % must be caught in 95 of 100 cases and 3 % in 80."""
    assert find_fault(FaultKind.SLOWDOWN, 0.05, "cuda").caught == 0.95
    assert find_fault(FaultKind.SLOWDOWN, 0.03, "cuda").caught == 0.80


def test_harmless_changes() -> None:
    """Nothing, and a faster eager, planted in the base, must not be red."""
    harmless = {fault.kind: fault for fault in list_faults("cpu") if fault.is_harmless}
    assert {FaultKind.NOTHING, FaultKind.EAGER_FASTER} == set(harmless)
    assert [FaultKind.EAGER_FASTER] == [fault.kind for fault in list_faults("cpu") if fault.is_in_base]


def test_what_is_exact_must_always_be_caught() -> None:
    """A fault that is tried once has a metric or a failure to show in, and must never be missed."""
    once = [fault for fault in list_faults("cpu") if fault.is_certain]
    assert {(1.0, 0.0)} == {(fault.caught, fault.missed) for fault in once}
    assert all((fault.metric is None) != (fault.failure is None) for fault in once)
    assert find_fault(FaultKind.HANG).failure is FailureKind.HANG
    assert find_fault(FaultKind.LOST_CACHE).metric is Metric.CACHE_MISSES


def test_quick_leaves_out_statistics() -> None:
    """Of faults that need pairs, nothing and 30 % are left; of the rest all."""
    quick = list_faults("cpu", quick=True)
    pairs = [(fault.kind, fault.size) for fault in quick if not fault.is_certain]
    assert [(FaultKind.NOTHING, 0.0), (FaultKind.SLOWDOWN, 0.30)] == pairs
    assert len([fault for fault in quick if fault.is_certain]) == 11


def test_faults_are_chosen_by_name() -> None:
    """A pattern takes all sizes; "nothing" is always added for comparison."""
    chosen = choose_faults(list_faults("cpu"), "graph_break, slowdown-*0%")
    assert [fault.name for fault in chosen] == ["graph_break", "nothing", "slowdown-30%", "slowdown-10%"]


def test_unknown_fault_is_refused_with_the_names() -> None:
    """A misspelt name does not turn into a test of nothing."""
    with pytest.raises(UsageError, match="no fault that fits the cases is called 'slowdown-7%'") as caught:
        choose_faults(list_faults("cpu"), "slowdown-5%,slowdown-7%")
    assert "slowdown-5%" in caught.value.fix
