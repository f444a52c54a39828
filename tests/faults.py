"""Faults that selftest plants."""

from gate.records.studies import FaultKind
from gate.selftest.catalog import Fault, list_faults


def find_fault(kind: FaultKind, size: float = 0.0, device: str = "cpu") -> Fault:
    (fault,) = (fault for fault in list_faults(device) if (fault.kind, fault.size) == (kind, size))
    return fault
