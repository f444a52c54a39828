"""The context that a worker of a test begins with."""

from typing import Any

from gate.measure.context import WorkerContext
from gate.measure.device.cpu import CpuDevice
from gate.measure.logbook import Logbook
from gate.records.cases import Case
from gate.records.protocol import Sampling, WorkerRole


def make_context(logbook: Logbook | None = None, case: Case | None = None, **changes: Any) -> WorkerContext:
    """Make the context of a cold worker on a CPU that draws inputs once, unless ``changes`` say otherwise."""
    fields: dict[str, Any] = {
        "case": case or Case(id="m/c", model="m"),
        "device": CpuDevice(),
        "sampling": Sampling(drift_seeds=1),
        "logbook": logbook or Logbook(None, WorkerRole.COLD),
        "directory": "",
    }
    return WorkerContext(**fields | changes)
