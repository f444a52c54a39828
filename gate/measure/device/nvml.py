"""What NVML reports about a GPU, through nvidia-ml-py, which a worker's interpreter may lack; torch-free."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from gate.devices import name_clock_reasons
from gate.records.codes import Code
from gate.records.facts import Fact

# Counters of the time for which clocks were held down, since the driver was loaded: what happened between
# two looks shows even though the device idles at both. Names of nvmlPerfPolicyType_t in nvidia-ml-py.
_POLICIES = {
    "NVML_PERF_POLICY_POWER": "software power cap",
    "NVML_PERF_POLICY_THERMAL": "thermal slowdown",
    "NVML_PERF_POLICY_BOARD_LIMIT": "board power limit",
}
_NS = 1e-9
_MJ_PER_J = 1000
# Less than one timed block is within what a median leaves out.
MIN_SLOWED_S = 0.010

THROTTLING = "throttling"
PROCESSES = "other processes"
_ON = {0: "off", 1: "on"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceState:
    """A device at one moment. Empty and 0 where unknown; ``unseen`` names what is not watched."""

    throttled: tuple[str, ...] = ()
    slowed_s: Mapping[str, float] = field(default_factory=dict)  # by reason, since the driver was loaded
    processes: int = 0  # that compute on it, this one included
    unseen: tuple[str, ...] = ()
    why: str = ""  # there is something unseen


class NvmlDevice:
    """One GPU, or an instance of one, by the UUID that torch gives (without a prefix)."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        self._nvml, self._why = _load_nvml()
        self._handle: Any = None
        for name in dict.fromkeys((self.uuid, f"MIG-{uuid}")):
            handle = self._ask("nvmlDeviceGetHandleByUUID", None, name)
            if handle is not None:
                self.uuid, self._handle = name, handle
                break
        if self._nvml is not None and self._handle is None:
            self._why = f"NVML does not know the device {self.uuid}"
        # Clocks, power and their limits are the whole board's.
        handle = self._handle
        self._board = handle and self._ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle, handle)

    def read_driver(self) -> str:
        return str(self._ask("nvmlSystemGetDriverVersion", ""))

    def read_clock_policy(self) -> str:
        limit_mw = self._ask_board("nvmlDeviceGetEnforcedPowerLimit", 0)
        clock = self._ask_board("nvmlDeviceGetApplicationsClock", 0, "NVML_CLOCK_SM")
        parts = [f"application {clock} MHz"] if clock else []
        return ", ".join([*parts, f"{limit_mw / 1000:.0f} W"] if limit_mw else parts)

    def read_traits(self) -> dict[str, str]:
        ecc, mig = (self._ask_board(f"nvmlDeviceGet{name}Mode", [None])[0] for name in ("Ecc", "Mig"))
        sm_mhz, memory_mhz = (
            self._ask_board("nvmlDeviceGetMaxClockInfo", 0, kind)
            for kind in ("NVML_CLOCK_SM", "NVML_CLOCK_MEM")
        )
        node = self._ask_board("nvmlDeviceGetNumaNodeId", None)
        traits = {
            "ecc": _ON.get(ecc, ""),
            "mig": _ON.get(mig, ""),
            "persistence": _ON.get(self._ask_board("nvmlDeviceGetPersistenceMode", None), ""),
            "compute_mode": _COMPUTE_MODES.get(self._ask_board("nvmlDeviceGetComputeMode", None), ""),
            "max_sm_clock": f"{sm_mhz} MHz" if sm_mhz else "",
            "max_memory_clock": f"{memory_mhz} MHz" if memory_mhz else "",
            "numa_node": "" if node is None else str(node),
        }
        return {name: value for name, value in traits.items() if value}

    def read_energy_j(self) -> float | None:
        """Read the joules that the board has used since the driver was loaded; None where it does not count.

        None for an instance of MIG: the board's energy is its neighbours' too.
        """
        if self._board is not self._handle:
            return None
        used_mj = self._ask_board("nvmlDeviceGetTotalEnergyConsumption", None)
        return None if used_mj is None else used_mj / _MJ_PER_J

    def read_state(self) -> DeviceState:
        if self._handle is None:
            return DeviceState(unseen=(THROTTLING, PROCESSES), why=self._why)
        mask = self._ask_board("nvmlDeviceGetCurrentClocksEventReasons", None)
        slowed_s = self._read_slowed_s()
        # By its version: asked without, nvidia-ml-py raises an error of another kind on an old driver.
        processes = len(self._ask("nvmlDeviceGetComputeRunningProcesses_v3", (), self._handle))
        unseen = (
            *((THROTTLING,) if mask is None and not slowed_s else ()),
            # This process computes on the device: a list without it shows no other process either.
            *((PROCESSES,) if not processes else ()),
        )
        return DeviceState(
            throttled=name_clock_reasons(int(mask or 0)),
            slowed_s=slowed_s,
            processes=processes,
            unseen=unseen,
            why="the driver does not report it" if unseen else "",
        )

    def _read_slowed_s(self) -> dict[str, float]:
        violations = {
            reason: self._ask_board("nvmlDeviceGetViolationStatus", None, policy)
            for policy, reason in _POLICIES.items()
        }
        return {
            reason: violation.violationTime * _NS
            for reason, violation in violations.items()
            if violation is not None
        }

    def _ask_board(self, name: str, unknown: Any, constant: str = "") -> Any:  # noqa: ANN401 - untyped
        if self._board is None:
            return unknown
        return self._ask(name, unknown, self._board, *((getattr(self._nvml, constant),) if constant else ()))

    def _ask(self, name: str, unknown: Any, *arguments: Any) -> Any:  # noqa: ANN401 - nvidia-ml-py is untyped
        if self._nvml is None:
            return unknown
        # Not supported on this GPU, no permission, or an older nvidia-ml-py: unknown.
        with suppress(self._nvml.NVMLError, AttributeError):
            return getattr(self._nvml, name)(*arguments)
        return unknown


def list_throttling(before: DeviceState, after: DeviceState) -> tuple[str, ...]:
    between = (
        reason
        for reason, total_s in after.slowed_s.items()
        if total_s - before.slowed_s.get(reason, total_s) > MIN_SLOWED_S
    )
    return tuple(dict.fromkeys((*before.throttled, *after.throttled, *between)))


def count_strangers(states: Iterable[DeviceState], ours: int) -> int:
    return max(0, max(state.processes for state in states) - ours)


def list_unwatched(state: DeviceState) -> tuple[Fact, ...]:
    names = {"unseen": tuple(state.unseen), "why": (state.why,)}
    return (Fact(code=Code.UNWATCHED, names=names),) if state.unseen else ()


def _load_nvml() -> tuple[ModuleType | None, str]:
    try:
        import pynvml  # noqa: PLC0415 - optional
    except ImportError:
        return None, "nvidia-ml-py is not installed (pip install nvidia-ml-py)"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"NVML cannot be used: {error}"
    return pynvml, ""
