"""Is this GPU fit to judge? The doctor's checks of a device; pure."""

from __future__ import annotations

from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT
from gate.lab.host.gpu import GpuState
from gate.lab.host.mps import tell_service
from gate.records import Code, Fact, name_words
from gate.records.findings import Check, fail_check, grade_check, pass_check, warn_check


def examine_gpu(device: str, torch_devices: int, gpu: GpuState | None) -> list[Check]:
    """Judge what nvidia-smi says of ``device``, and whether torch sees it; pure."""
    checks = [_look_at_torch_device(device, torch_devices)]
    if gpu is None:
        told = Fact(code=Code.GPU_UNLISTED, names=name_words(device=device))
        return [*checks, fail_check("gpu", told)]
    clocks = {"clock_mhz": gpu.clock_mhz, "max_clock_mhz": gpu.max_clock_mhz}
    told = Fact(
        code=Code.GPU_FOUND,
        numbers={**clocks, "temperature_c": gpu.temperature_c},
        names=name_words(model=gpu.name, driver=gpu.driver),
    )
    return [
        *checks,
        pass_check("gpu", told),
        _look_at_throttling(gpu),
        _look_at_processes(gpu),
        _look_at_sharing(gpu),
    ]


def look_at_guards(gpu: GpuState | None, problem: str, interpreter: str) -> Check:
    """Judge whether anybody would see throttling and strangers during a trial: workers ask NVML."""
    if problem:
        names = name_words(problem=problem, interpreter=interpreter)
        return fail_check("guards", Fact(code=Code.NVML_FAILS, names=names))
    if gpu and gpu.blind:
        return warn_check("guards", Fact(code=Code.NVML_BLIND, names={"unseen": gpu.blind}))
    return pass_check("guards", Fact(code=Code.NVML_ANSWERS))


def look_at_service(place: str) -> Check:
    """Judge whether workers would share the device through CUDA's Multi-Process Service."""
    if place:
        return fail_check("mps", tell_service(place))
    return pass_check("mps", Fact(code=Code.SERVICE_UNUSED))


def look_at_cases(unavailable: str) -> Check:
    """Judge whether the selected cases can run here at all."""
    if unavailable:
        return fail_check("cases", Fact(code=Code.CASES_UNAVAILABLE, names=name_words(text=unavailable)))
    return pass_check("cases", Fact(code=Code.CASES_AVAILABLE))


def _look_at_torch_device(device: str, torch_devices: int) -> Check:
    ordinal = int(device.partition(":")[2] or 0)
    told = Fact(code=Code.TORCH_DEVICES, numbers={"devices": torch_devices})
    return grade_check("device", told, fails=ordinal >= torch_devices)


def _look_at_throttling(gpu: GpuState) -> Check:
    told = Fact(code=Code.CLOCKS_HELD_DOWN, names={"reasons": gpu.throttled})
    return grade_check("throttling", told, fails=bool(gpu.throttled))


def _look_at_processes(gpu: GpuState) -> Check:
    used = gpu.memory_used_mib / gpu.memory_total_mib if gpu.memory_total_mib else 0.0
    if gpu.processes:
        numbers = {"processes": gpu.processes, "used_mib": gpu.memory_used_mib}
        return fail_check("sharing", Fact(code=Code.GPU_SHARED, numbers=numbers))
    told = Fact(code=Code.GPU_IN_USE, numbers={"used_mib": gpu.memory_used_mib})
    return grade_check("sharing", told, warns=used > FOREIGN_MEMORY_LIMIT)


def _look_at_sharing(gpu: GpuState) -> Check:
    if gpu.exclusive:
        return warn_check("mode", Fact(code=Code.GPU_EXCLUSIVE))
    if gpu.mig:
        return warn_check("mode", Fact(code=Code.GPU_CUT_UP))
    if not gpu.persistent:
        return warn_check("mode", Fact(code=Code.GPU_FORGETFUL))
    return pass_check("mode", Fact(code=Code.GPU_WHOLE))
