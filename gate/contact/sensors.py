"""Sensors: that NVML and nvidia-smi tell of this card what the guards of a trial need."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from gate.contact.assumptions import CUDA, Place, assume
from gate.contact.clocks import make_product
from gate.contact.findings import AssumptionResult, claim, expect_range, tell
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT
from gate.lab.host.gpu import find_gpu, find_near_cores, load_gpus
from gate.measure.device.nvml import list_throttling

_LOAD_S = 3.0
_IDLE_BIT_S = 0.05

# What is asked for the bundle, with the name of the constant that it needs.
_ASKED = (
    *("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeMode"),
    *("nvmlDeviceGetPersistenceMode", "nvmlDeviceGetEccMode", "nvmlDeviceGetNumaNodeId"),
    *("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption"),
    *("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    *("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates"),
)
_ASKED_WITH = (
    ("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_SM"),
    ("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
    ("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    ("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
    ("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
    ("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_POWER"),
    ("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_THERMAL"),
    ("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_BOARD_LIMIT"),
    ("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_RELIABILITY"),
)


@assume(CUDA)
def nvml_knows_the_device(place: Place) -> AssumptionResult:
    """NVML finds the device by the UUID that torch tells, an instance of MIG too, and tells its driver."""
    identity, state = place.device.identify(), place.device.read_state()
    place.keep("identity.json", {"identity": repr(identity), "state": repr(state)})
    whole = identity.uuid.startswith(("GPU-", "MIG-")) and bool(identity.driver and identity.clocks)
    return claim(
        whole and not state.unseen, f"{identity.uuid}, {identity.driver}, {identity.clocks}, {state}"
    )


@assume(CUDA)
def only_this_process_is_on_the_device(place: Place) -> AssumptionResult:
    """NVML counts this process, in a container too, and nobody else is there now."""
    place.device.synchronize()
    return expect_range(place.device.read_state().processes, 1, 1)


@assume(CUDA)
def nvidia_smi_tells_the_same(place: Place) -> AssumptionResult:
    """nvidia-smi lists the device that workers see, with the capability that torch tells."""
    gpu = find_gpu(load_gpus(), place.name, os.environ)
    place.keep("nvidia-smi-parsed.txt", repr(load_gpus()))
    if gpu is None:
        return claim(holds=False, found="nvidia-smi does not list it")
    identity = place.device.identify()
    same = gpu.uuid == identity.uuid and gpu.capability == identity.traits.get("capability")
    return claim(same and not gpu.blind, gpu)


@assume(CUDA)
def memory_in_use_is_ours(place: Place) -> AssumptionResult:
    """Memory in use, by nvidia-smi, less what torch has reserved, is a context: up to 5 % of the card."""
    place.device.synchronize()
    gpu = find_gpu(load_gpus(), place.name, os.environ)
    if gpu is None or not gpu.memory_used_mib:
        return tell("not known, as for a MIG instance")
    reserved_mib = torch.cuda.memory_reserved(place.device.name) / 2**20
    share = (gpu.memory_used_mib - reserved_mib) / gpu.memory_total_mib
    return expect_range(100 * share, 0.0, 100 * FOREIGN_MEMORY_LIMIT, "%")


@assume(CUDA)
def the_cores_near_the_card_are_told(place: Place) -> AssumptionResult:
    """Which cores workers stay on; where the system does not say, nobody is pinned."""
    gpu = find_gpu(load_gpus(), place.name, os.environ)
    near = find_near_cores(gpu.bus if gpu else "")
    return tell(f"{len(near)} of {os.cpu_count()} are near {gpu.bus if gpu else 'an unknown place'}")


@assume(CUDA)
def nvml_answers(place: Place) -> dict[str, AssumptionResult]:
    """Every question that a guard or the fingerprint asks has an answer here; what has none is told."""
    import pynvml  # noqa: PLC0415 - only where there is a GPU

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(place.device.identify().uuid)
    replies = {name: _ask(partial(getattr(pynvml, name), handle)) for name in _ASKED}
    for name, constant in _ASKED_WITH:
        question = partial(getattr(pynvml, name), handle, getattr(pynvml, constant))
        replies[f"{name} {constant}"] = _ask(question)
    place.keep("nvml.json", {name: reply.text for name, reply in replies.items()})
    silent = [name for name, reply in replies.items() if not reply.is_answer]
    return {"without an answer": tell(silent or "none"), "own pid": tell(os.getpid())}


@assume(CUDA)
def violation_counters_are_told(place: Place) -> AssumptionResult:
    """NVML counts for how long clocks were held down, by reason, and never counts back."""
    before = place.device.read_state()
    _load(place)
    after = place.device.read_state()
    grown = {
        reason: round(total - before.slowed_s.get(reason, 0.0), 3) for reason, total in after.slowed_s.items()
    }
    told = f"{grown} s in {_LOAD_S:g} s of load; throttling is {list_throttling(before, after) or 'none'}"
    return claim(len(grown) > 1 and min(grown.values()) >= 0, told)


@assume(CUDA)
def reasons_are_gone_once_idle(place: Place) -> AssumptionResult:
    """Momentary reasons show under load only, which is why the counters are read: load, then 50 ms later."""
    run = make_product(place)
    for _ in range(2000):
        run()
    loaded = place.device.read_state()
    place.device.synchronize()
    time.sleep(_IDLE_BIT_S)
    idle = place.device.read_state()
    return tell(
        f"{loaded.throttled}, {loaded.clock_mhz:.0f} MHz; then {idle.throttled}, {idle.clock_mhz:.0f}"
    )


@assume(CUDA)
def energy_is_counted(place: Place) -> AssumptionResult:
    """The board's energy counter grows under load by its power: 50 to 1500 W."""
    before = place.device.read_energy_j()
    loaded_s = _load(place)
    after = place.device.read_energy_j()
    if before is None or after is None:
        return claim(holds=False, found="the driver does not count energy")
    return expect_range((after - before) / loaded_s, 50, 1500, "W")


@dataclass(frozen=True, slots=True)
class _Reply:
    text: str
    is_answer: bool = True


def _ask(question: Callable[[], Any]) -> _Reply:
    try:
        answer = question()
    except Exception as error:  # noqa: BLE001 - an answer too: not supported, not there, refused
        return _Reply(f"none: {type(error).__name__}: {error}", is_answer=False)
    return _Reply(str(answer))


def _load(place: Place) -> float:
    run, begun = make_product(place), time.perf_counter()
    while time.perf_counter() - begun < _LOAD_S:
        for _ in range(10):
            run()
        place.device.synchronize()
    return time.perf_counter() - begun
