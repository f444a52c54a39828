"""The fingerprint of this host and its software stack."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import torch

from gate.devices import CPU
from gate.measure.device import precision, process_memory
from gate.measure.device.device import Device
from gate.measure.device.isa import list_isas
from gate.programs import ask_program
from gate.records import Environment
from gate.records.protocol import WorkerRequest

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
        cores=os.cpu_count() or 1,
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
    told = ask_program([*command, "-dumpfullversion", "-dumpversion"], limit_s=_COMPILER_TIMEOUT_S)
    if told.status != 0:
        return ""
    return f"{os.path.basename(command[0])} {told.output}"  # noqa: PTH119 - a string of the user's


def _describe_cores(device: Device) -> dict[str, str]:
    """How many of the host's cores a GPU's worker is held to: those near it, where the lab knows them."""
    if not device.kind.is_gpu or not hasattr(os, "sched_getaffinity"):  # macOS has no affinity
        return {}
    return {"host_cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"}


def _read_settings(device: Device) -> dict[str, str]:
    settings = {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "float32_matmul_precision": precision.describe_matmul(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if device.kind.is_gpu:
        settings["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call] # torch's
        settings["cudnn_allow_tf32"] = precision.describe_convolution()
    return settings
