"""The machine around a trial, and the parts of it that made the host unfit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.records.bounds import NotNegative


class Disturbance(StrEnum):
    """What made the host unfit while something was measured; the measured code can cause none of them."""

    CROWDED = "crowded"  # other programs wanted the worker's cores
    STOLEN = "stolen"  # the hypervisor kept CPU time
    HELD_BACK = "held_back"  # by the container's quota
    HEATED = "heated"  # cores lowered their clocks
    SWAPPED = "swapped"
    SHORT_OF_MEMORY = "short_of_memory"
    THROTTLED = "throttled"  # the device lowered its clocks
    SHARED = "shared"  # other processes used the device
    HELD_MEMORY = "held_memory"  # of the device, by others


# Normal under heavy matrix products: the same in every trial of a case.
EXPECTED_THROTTLING = frozenset({"software power cap"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """The machine around one trial."""

    canaries_s: Mapping[str, NotNegative] = field(default_factory=dict)  # fixed micro-workloads: medians
    throttled: tuple[str, ...] = ()  # reasons the device gave for lowering its clocks
    foreign_processes: int = 0  # other processes seen on the device
    foreign_memory: float = 0.0  # share of its memory that was in use before or after all workers; 0: unknown
    foreign_cores: float = 0.0  # cores that other programs kept busy meanwhile, of those a worker may use
    crowd: tuple[str, ...] = ()  # which those were, the busiest first: "chromium (pid 123, 95 %)"
    stolen: float = 0.0  # share of these cores' time that the hypervisor kept
    held_back: float = 0.0  # share of the time for which the container's processor quota stopped it
    heat_events: int = 0  # times that a core lowered its clock for heat
    swapped_bytes: int = 0  # on the whole host
    free_bytes: int = 0  # memory, the least seen; 0 when unknown
    disturbances: tuple[Disturbance, ...] = ()  # what made the host unfit meanwhile
    repeated: bool = False  # the second attempt, after a disturbed one
