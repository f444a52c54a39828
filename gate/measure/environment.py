"""The fingerprint of where code is compiled and runs, and torch's settings in a line."""

import importlib
import importlib.metadata
import math
import os
import platform
import sys

import torch

from gate.devices import CPU, DeviceKind
from gate.measure.device.cpu import read_cpu_model
from gate.measure.device.device import Device
from gate.measure.packages import WORKLOAD_LIBRARIES, list_packages
from gate.measure.precision import describe_convolution, describe_matmul
from gate.measure.toolchain import list_isas
from gate.programs import ask_program, count_cores
from gate.records.protocol import WorkerRequest
from gate.records.run import Environment

_WATCHING = frozenset({"nvidia-ml-py"})  # of the gate's own: no program runs otherwise with it


def capture_environment(device: Device, request: WorkerRequest) -> Environment:
    identity, libraries = device.identify(), _list_libraries(device)
    isas = list_isas() if device.kind is CPU else ()
    # A GPU's worker is held to cores near it, where the lab knows them.
    cores = (
        {"host_cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"} if device.kind.is_gpu else {}
    )
    return Environment(
        device_kind=device.kind.name,
        device_model=identity.model,
        device_uuid=identity.uuid,
        driver=identity.driver,
        clocks=identity.clocks,
        cpu=read_cpu_model(),
        cores=count_cores(is_pinned=device.kind.is_gpu),  # `host_cores` has that
        threads=request.threads,
        isa=isas[0] if isas else "",
        torch=str(torch.__version__),
        triton=_read_version("triton"),
        cuda=(torch.version.cuda or "") if device.kind.is_gpu else "",
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        compiler=_read_compiler(),
        allocator="held" if device.kind is CPU else "",
        workers="forked" if request.is_forked else "",
        libraries=libraries,
        packages={name: version for name, version in list_packages().items() if name not in libraries},
        settings=_read_settings(device),
        device_traits={**identity.traits, **cores},
    )


def _list_libraries(device: Device) -> dict[str, str]:
    versions = {name: version for name in WORKLOAD_LIBRARIES if (version := _read_version(name))}
    if device.kind.is_gpu:
        for distribution in importlib.metadata.distributions():
            if distribution.name.startswith("nvidia-") and distribution.name not in _WATCHING:
                versions[distribution.name] = distribution.version
    return dict(sorted(versions.items()))


def _read_version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _read_compiler() -> str:
    command = os.environ.get("CXX", "g++").split()
    # Without a limit: the primer has one. A busy machine's compiler is no other compiler.
    answer = ask_program([*command, "-dumpfullversion", "-dumpversion"], limit_s=math.inf)
    if answer.status != 0:
        return ""
    return f"{os.path.basename(command[0])} {answer.output}"  # noqa: PTH119 - a string of the user's


def _read_settings(device: Device) -> dict[str, str]:
    settings = {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "float32_matmul_precision": describe_matmul(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if device.kind.is_gpu:
        settings["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call] # torch's
        settings["cudnn_allow_tf32"] = describe_convolution()
    return settings


def describe_settings(kind: DeviceKind) -> str:
    parts = [f"float32 products {describe_matmul()}"]
    if kind.has_tf32:
        parts.append(f"TF32 in convolutions {describe_convolution()}")
        parts.append(f"cuDNN benchmark {torch.backends.cudnn.benchmark}")
        matmul = torch.backends.cuda.matmul
        parts.append(f"bfloat16 reduction {matmul.allow_bf16_reduced_precision_reduction}")
        parts.append(f"float16 reduction {matmul.allow_fp16_reduced_precision_reduction}")
    if torch.are_deterministic_algorithms_enabled():
        parts.append("deterministic")
    return ", ".join(parts)


def describe_runtime() -> str:
    unusual = {
        "oneDNN off": not torch.backends.mkldnn.enabled,
        "cuDNN off": not torch.backends.cudnn.enabled,
        "cuDNN deterministic": bool(torch.backends.cudnn.deterministic),
        "denormals flushed": sys.float_info.min / 2 == 0.0,
        "anomaly detection": torch.is_anomaly_enabled(),
        "a function mode": torch._C._len_torch_function_stack() > 0,  # noqa: SLF001 - nothing public has it
        "a dispatch mode": torch._C._len_torch_dispatch_stack() > 0,  # noqa: SLF001
        "Python traced": sys.gettrace() is not None or sys.getprofile() is not None,
    }
    threads = torch.get_num_threads()
    return ", ".join(
        [f"{threads} thread{'s' * (threads != 1)}", *(name for name, is_so in unusual.items() if is_so)]
    )
