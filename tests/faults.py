"""Faults that selftest plants."""

from gate.records.studies import FaultKind
from gate.selftest.catalog import Fault, list_faults


def find_fault(kind: FaultKind, size: float = 0.0, device: str = "cpu") -> Fault:
    """Find the one fault of a kind and size."""
    (fault,) = (one for one in list_faults(device) if (one.kind, one.size) == (kind, size))
    return fault
