"""The fingerprint of this host and its software stack, and which vector instructions Inductor may use.

Inductor compiles a probe for each instruction set that the processor has, and every process loads each
of them in a process of its own: seconds that no case's compile needs. Where the primer saw that all of them
pass, it leaves a mark in the cache that seeds each trial's, and workers take Inductor's word for it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import torch

from gate.devices import CPU
from gate.measure.device import process_memory, torch_settings
from gate.measure.device.device import Device
from gate.measure.device.torch_settings import find_private
from gate.programs import ask_program, count_cores
from gate.records import Environment
from gate.records.protocol import WorkerRequest

_ISAS = "torch._inductor.cpu_vec_isa"
_MARK = "all.isas"  # in Inductor's cache directory


def list_isas() -> tuple[str, ...]:
    """List the vector instruction sets that Inductor can use here, best first; empty where unknown."""
    list_valid = find_private(_ISAS, "valid_vec_isa_list")
    return tuple(str(isa) for isa in list_valid()) if list_valid else ()


def mark_isas() -> None:
    """Leave the mark for workers if all instruction sets of this processor passed; else none is left."""
    mark = _find_mark()
    if mark is None:
        return
    mark.unlink(missing_ok=True)
    expected = _list_expected()
    if expected and expected == list_isas():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text("\n".join(expected), encoding="utf-8")


def load_isas() -> None:
    """Make Inductor know its instruction sets: from the mark, or by probing where there is none."""
    mark = _find_mark()
    if mark is not None and mark.is_file():
        importlib.import_module("torch._inductor.config").cpp.vec_isa_ok = True
    list_isas()


def _list_expected() -> tuple[str, ...]:
    """What the list is when every probe passes; empty where this torch does not report."""
    supported, check = find_private(_ISAS, "supported_vec_isa_list"), find_private(_ISAS, "x86_isa_checker")
    flags = check() if check else ()
    isas = tuple(str(isa) for isa in supported or ())
    return tuple(isa for isa in isas if all(flag in flags for flag in isa.split()))


def _find_mark() -> Path | None:
    directory = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return Path(directory) / _MARK if directory else None


# Libraries whose code defines workloads: another version may be another model.
_WORKLOAD_LIBRARIES = ("diffusers", "timm", "torchvision", "transformers")
_WATCHING = frozenset({"nvidia-ml-py"})  # of the gate's own: no program runs otherwise with it
_COMPILER_TIMEOUT_S = 20


def capture_environment(device: Device, request: WorkerRequest) -> Environment:
    """Capture the environment of this process, which measures on ``device`` as ``request`` says."""
    identity = device.identify()
    isas = list_isas() if device.kind is CPU else ()
    return Environment(
        device_kind=device.kind.name,
        device_model=identity.model,
        device_uuid=identity.uuid,
        driver=identity.driver,
        clocks=identity.clocks,
        cpu=process_memory.read_cpu_model(),
        cores=count_cores(is_pinned=device.kind.is_gpu),  # `host_cores` has that
        threads=request.threads,
        isa=isas[0] if isas else "",
        torch=str(torch.__version__),
        triton=_read_version("triton") or _read_version("pytorch-triton"),
        cuda=(torch.version.cuda or "") if device.kind.is_gpu else "",
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        compiler=_read_compiler(),
        allocator="held" if device.kind is CPU and process_memory.can_hold_memory() else "",
        workers="forked" if request.is_forked else "",
        openmp="default" if device.kind is CPU else "",
        libraries=_list_libraries(device),
        settings=_read_settings(device),
        device_traits={**identity.traits, **_describe_cores(device)},
    )


def _list_libraries(device: Device) -> dict[str, str]:
    """The workloads' libraries and, for a GPU, those that torch calls: pip can change them under a torch."""
    found = {name: version for name in _WORKLOAD_LIBRARIES if (version := _read_version(name))}
    if device.kind.is_gpu:
        for one in importlib.metadata.distributions():
            if one.name.startswith("nvidia-") and one.name not in _WATCHING:
                found[one.name] = one.version
    return dict(sorted(found.items()))


def _read_version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _read_compiler() -> str:
    """Read name and version of the C++ compiler that Inductor uses; empty when there is none."""
    command = os.environ.get("CXX", "g++").split()
    answer = ask_program([*command, "-dumpfullversion", "-dumpversion"], limit_s=_COMPILER_TIMEOUT_S)
    if answer.status != 0:
        return ""
    return f"{os.path.basename(command[0])} {answer.output}"  # noqa: PTH119 - a string of the user's


def _describe_cores(device: Device) -> dict[str, str]:
    """How many of the host's cores a GPU's worker is held to: those near it, where the lab knows them."""
    if not device.kind.is_gpu or not hasattr(os, "sched_getaffinity"):  # macOS has no affinity
        return {}
    return {"host_cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"}


def _read_settings(device: Device) -> dict[str, str]:
    settings = {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "float32_matmul_precision": torch_settings.describe_matmul(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if device.kind.is_gpu:
        settings["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call] # torch's
        settings["cudnn_allow_tf32"] = torch_settings.describe_convolution()
    return settings
