"""Is this GPU fit to judge? The doctor's checks of a device; pure."""

from __future__ import annotations

from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT
from gate.lab.host.gpu import GpuState
from gate.lab.host.mps import FIX, describe_service
from gate.records.findings import Check, fail_check, grade_check, pass_check, warn_check


def examine_gpu(device: str, torch_devices: int, gpu: GpuState | None) -> list[Check]:
    """Judge what nvidia-smi says of ``device``, and whether torch sees it; pure."""
    checks = [_look_at_torch_device(device, torch_devices)]
    if gpu is None:
        fix = "Check the driver: `nvidia-smi` must list the device; see CUDA_VISIBLE_DEVICES too."
        finding = f"nvidia-smi is missing, or does not list {device}"
        return [*checks, fail_check("gpu", finding, fix)]
    clocks = f"{gpu.clock_mhz:.0f} of {gpu.max_clock_mhz:.0f} MHz, {gpu.temperature_c:.0f} degrees"
    finding = f"{gpu.name}, driver {gpu.driver}, {clocks}"
    return [
        *checks,
        pass_check("gpu", finding),
        _look_at_throttling(gpu),
        _look_at_processes(gpu),
        _look_at_sharing(gpu),
    ]


def look_at_guards(gpu: GpuState | None, problem: str, interpreter: str) -> Check:
    """Judge whether anybody would see throttling and strangers during a trial: workers ask NVML."""
    if problem:
        fix = f"Install nvidia-ml-py for {interpreter}; a container needs the driver's `utility` part too."
        return fail_check("guards", f"workers cannot ask NVML: {problem}", fix)
    if gpu and gpu.blind:
        finding = f"the driver does not tell of {', '.join(gpu.blind)}"
        fix = "Disturbed trials may pass for quiet ones: take a card whose driver tells."
        return warn_check("guards", finding, fix)
    return pass_check("guards", "NVML answers")


def look_at_service(place: str) -> Check:
    """Judge whether workers would share the device through CUDA's Multi-Process Service."""
    if place:
        return fail_check("mps", describe_service(place), FIX)
    return pass_check("mps", "the Multi-Process Service is not in use")


def look_at_cases(unavailable: str) -> Check:
    """Judge whether the selected cases can run here at all."""
    if unavailable:
        fix = "Leave them out of `select` in gate.yml: a check in which they are planned is INCOMPLETE."
        return fail_check("cases", unavailable, fix)
    return pass_check("cases", "all that are selected can run here")


def _look_at_torch_device(device: str, torch_devices: int) -> Check:
    ordinal = int(device.partition(":")[2] or 0)
    finding = f"torch sees {torch_devices} CUDA devices"
    fix = "Install a torch built for CUDA, or choose a device that exists (--device cpu)."
    return grade_check("device", finding, fix, fails=ordinal >= torch_devices)


def _look_at_throttling(gpu: GpuState) -> Check:
    fix = "Let the device cool down, or look at its power supply and cooling."
    return grade_check("throttling", ", ".join(gpu.throttled) or "none", fix, fails=bool(gpu.throttled))


def _look_at_processes(gpu: GpuState) -> Check:
    used = gpu.memory_used_mib / gpu.memory_total_mib if gpu.memory_total_mib else 0.0
    finding = f"{gpu.processes} processes, {gpu.memory_used_mib:.0f} MiB in use"
    if gpu.processes:
        return fail_check("sharing", finding, "End the other processes on the device.")
    fix = "Somebody uses the device, perhaps from another container: have it to yourself."
    return grade_check("sharing", finding, fix, warns=used > FOREIGN_MEMORY_LIMIT)


def _look_at_sharing(gpu: GpuState) -> Check:
    if gpu.exclusive:
        fix = (
            "Set it to default (`nvidia-smi -c 0`): two arms of a pair cannot use it at once, only in turns."
        )
        return warn_check("mode", "compute mode is exclusive process", fix)
    if gpu.mig:
        fix = "Other instances share memory bandwidth and power: judge times on a whole device."
        return warn_check("mode", "MIG is enabled", fix)
    if not gpu.persistent:
        fix = "Enable it (`nvidia-smi -pm 1`): the driver forgets its clocks between processes."
        return warn_check("mode", "persistence mode is off", fix)
    return pass_check("mode", "persistence mode on, MIG off")
