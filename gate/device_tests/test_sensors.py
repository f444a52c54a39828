"""Sensors: NVML and nvidia-smi report of this card what the guards of a trial need."""

import os
import sys
import time

import pytest
import torch

from gate.device_tests.plugin import DeviceReport
from gate.device_tests.test_clocks import make_product
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT
from gate.lab.host.gpu import find_gpu, load_gpus
from gate.measure.device.device import Device
from gate.measure.device.nvml import list_throttling
from gate.programs import ask_program
from gate.sizes import MIB

_LOAD_S = 3.0

_PYTHON = (sys.executable, "-P", "-m")
_TOOLS = {
    "nvidia-smi-q.txt": ("nvidia-smi", "-q"),
    "nvidia-smi-L.txt": ("nvidia-smi", "-L"),
    "nvidia-smi-topo.txt": ("nvidia-smi", "topo", "-m"),
    "nvidia-smi-apps.csv": ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv"),
    "lscpu.txt": ("lscpu",),
    "packages.txt": (*_PYTHON, "pip", "list"),
    "collect-env.txt": (*_PYTHON, "torch.utils.collect_env"),
}
_TOOL_S = 60.0


def test_nvml_knows_the_device(device: Device, report: DeviceReport) -> None:
    """NVML finds the device by torch's UUID, an instance of MIG too, and knows its driver."""
    identity, state = device.identify(), device.read_state()
    report.keep("identity.json", {"identity": repr(identity), "state": repr(state)})
    whole = identity.uuid.startswith(("GPU-", "MIG-")) and bool(identity.driver and identity.clocks)
    report.check(
        whole and not state.unseen, f"{identity.uuid}, {identity.driver}, {identity.clocks}, {state}"
    )


def test_only_this_process_is_on_the_device(device: Device, report: DeviceReport) -> None:
    """NVML counts this process, in a container too, and no other process is there now."""
    device.synchronize()
    report.check_range(device.read_state().processes, 1, 1)


def test_nvidia_smi_agrees(device: Device, device_name: str, report: DeviceReport) -> None:
    """nvidia-smi lists the device that workers see, with the capability that torch reports."""
    gpu = find_gpu(load_gpus(), device_name, os.environ)
    report.keep("nvidia-smi-parsed.txt", repr(load_gpus()))
    if gpu is None:
        report.check(holds=False, value="nvidia-smi does not list it")
        return
    identity = device.identify()
    same = gpu.uuid == identity.uuid and gpu.capability == identity.traits.get("capability")
    report.check(same and not gpu.blind, gpu)


def test_memory_in_use_is_ours(device: Device, device_name: str, report: DeviceReport) -> None:
    """Memory in use, by nvidia-smi, less what torch has reserved, is a context: up to 5 % of the card."""
    device.synchronize()
    gpu = find_gpu(load_gpus(), device_name, os.environ)
    if gpu is None or not gpu.memory_used_mib:
        report.note("not known, as for a MIG instance")
        return
    reserved_mib = torch.cuda.memory_reserved(device.name) / MIB
    share = (gpu.memory_used_mib - reserved_mib) / gpu.memory_total_mib
    report.check_range(100 * share, 0.0, 100 * FOREIGN_MEMORY_LIMIT, "%")


def test_violation_counters_grow(device: Device, report: DeviceReport) -> None:
    """NVML counts for how long clocks were held down, by reason, and never counts back."""
    before = device.read_state()
    _load(device)
    after = device.read_state()
    grown = {
        reason: round(total - before.slowed_s.get(reason, 0.0), 3) for reason, total in after.slowed_s.items()
    }
    message = f"{grown} s in {_LOAD_S:g} s of load; throttling is {list_throttling(before, after) or 'none'}"
    report.check(len(grown) > 1 and min(grown.values()) >= 0, message)


def test_energy_is_counted(device: Device, report: DeviceReport) -> None:
    """The board's energy counter grows under load by its power: 50 to 1500 W."""
    before = device.read_energy_j()
    loaded_s = _load(device)
    after = device.read_energy_j()
    if before is None or after is None:
        report.check(holds=False, value="the driver does not count energy")
        return
    report.check_range((after - before) / loaded_s, 50, 1500, "W")


@pytest.mark.cpu
@pytest.mark.timeout(300)
def test_tools_describe_the_machine(report: DeviceReport) -> None:
    """What tools print is kept, in the formats of this driver; or why a tool did not run."""
    answers = {name: ask_program(command, limit_s=_TOOL_S) for name, command in _TOOLS.items()}
    for name, answer in answers.items():
        report.keep(name, f"{answer.problem}\n" if answer.problem else f"{answer.out}{answer.err}")
    report.note([name for name, answer in answers.items() if answer.status == 0] or "none", "kept")


def _load(device: Device) -> float:
    run, begun = make_product(device), time.perf_counter()
    while time.perf_counter() - begun < _LOAD_S:
        for _ in range(10):
            run()
        device.synchronize()
    return time.perf_counter() - begun
