"""What each device can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gate.devices import DeviceKind
from gate.measure.device.nvml import DeviceState

Call = Callable[[], object]

MEMORY_RUNS = 3  # steady state: at least three calls


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    model: str
    uuid: str = ""
    driver: str = ""
    clocks: str = ""
    traits: Mapping[str, str] = field(default_factory=dict)  # what else decides about code and speed


class Device(ABC):
    kind: DeviceKind
    name: torch.device

    def synchronize(self) -> None:  # noqa: B027 - nothing is to be done
        """Wait until the device has done what it was asked to do."""

    def mark_step(self) -> None:  # noqa: B027 - there are no CUDA graphs
        """Let CUDA graphs overwrite the outputs of the last call."""

    @abstractmethod
    def start_peak(self) -> None:
        """Forget the memory peak so far."""

    @abstractmethod
    def read_peak(self) -> int:
        """Read by how many bytes memory in use grew since ``start_peak``, at its largest."""

    @abstractmethod
    def measure_growth(self, run: Call) -> int:
        """Measure the largest growth of memory in use, in bytes; nothing may be timed afterwards."""

    def measure_tensor_growth(self, run: Call) -> int:
        return self.measure_growth(run)  # of a device there is one allocator

    @abstractmethod
    def read_used(self) -> int:
        """Read the bytes in use now; raises ``OSError`` where they are not counted."""

    @abstractmethod
    def keep_freed_memory(self) -> None:
        """Keep freed memory from now on: what is timed takes none from the system, whatever was freed."""

    def free_memory(self) -> None:  # noqa: B027 - the system has it
        """Release memory that is kept for later."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Read the bytes that stay in use between calls; ``tensor_bytes`` of tensors are known to."""
        return tensor_bytes

    def profile(self, run: Call, calls: int) -> Sequence[Any]:
        """List the averages of torch's profiler over so many calls; none where the wall clock is enough."""
        del run, calls
        return ()

    def read_energy_j(self) -> float | None:
        """Read the joules used since some moment; None where the device does not count."""
        return None

    @abstractmethod
    def identify(self) -> Identity: ...

    def read_state(self) -> DeviceState:
        """Read throttling and other users of the device; the lab records a host's load."""
        return DeviceState()
