"""Where code is compiled and runs: the toolchain's one-off work, torch's settings, the fingerprint of all.

The primer pays for what is done once, so that no case is charged for it. On a CPU, Inductor finds out which
vector instructions the compiler and the processor have (a compile and a load each, kept in its cache
directory) and precompiles its C++ header (kept below ``TMPDIR``). On CUDA, Triton compiles its driver module
(kept in its cache directory).

Every process loads each probe of an instruction set in a process of its own: seconds that no case's compile
needs. Where the primer saw all of them pass, it leaves a mark in the cache that seeds each trial's, and
workers rely on Inductor's list.

Since torch 2.9 each library and operator has a property ``fp32_precision``. Reading the older interface
raises once both disagree; writing it brings both in line again.
"""

import importlib
import importlib.metadata
import math
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import torch

from gate.devices import CPU, DeviceKind
from gate.errors import MachineError
from gate.measure.device.cpu import TargetDevice, read_cpu_model
from gate.measure.device.device import Device
from gate.measure.graph import find_cache
from gate.measure.packages import WORKLOAD_LIBRARIES, list_packages
from gate.measure.private import CHECK_ISAS, SUPPORTED_ISAS, TRITON_DRIVER, VALID_ISAS
from gate.programs import ask_program, count_cores
from gate.records.protocol import WorkerRequest
from gate.records.run import Environment

# The directories that a compile fills besides the precompiled headers.
_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
_TRIVIAL_SIZE = 1024
_MARK = "all.isas"  # in Inductor's cache directory


def prime_toolchain(device: Device) -> None:
    """Do the toolchain's work; none of what it leaves in the cache directories is a compiled graph.

    Raises:
        MachineError: This machine cannot compile for this device.
    """
    try:
        if device.kind is CPU:
            probe_isas()
        else:
            load_toolchain(device)
        # What is compiled here is thrown away.
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
            patch.dict(os.environ, {name: str(Path(directory, name)) for name in _CACHE_VARIABLES}),
        ):
            if isinstance(device, TargetDevice):
                _compile_for_target(device)
            else:
                _compile_trivial(device)
    except Exception as error:
        what = f"the {device.kind.toolchain} does not work: {_describe_cause(error)}"
        raise MachineError(what, "Try `compile-gate doctor`.") from error


def load_toolchain(device: Device) -> None:
    if device.kind is CPU:
        if (find_cache() / _MARK).is_file():
            importlib.import_module("torch._inductor.config").cpp.vec_isa_ok = True
        list_isas()
    elif device.kind.is_gpu and (driver := TRITON_DRIVER.find()):
        # Building the utilities is a side effect of making the driver object, where it has them.
        getattr(getattr(driver, "active", None), "utils", None)


def list_isas() -> tuple[str, ...]:
    """List the vector instruction sets that Inductor can use here, best first; empty where unknown."""
    list_valid = VALID_ISAS.find()
    return tuple(str(isa) for isa in list_valid()) if list_valid else ()


def probe_isas() -> None:
    supported, check = SUPPORTED_ISAS.find(), CHECK_ISAS.find()
    flags = check() if check else ()
    available = [isa for isa in supported or () if all(flag in flags for flag in str(isa).split())]
    with ThreadPoolExecutor(count_cores()) as threads:  # Inductor does so one after the other
        list(threads.map(bool, available))
    expected, mark = tuple(map(str, available)), find_cache() / _MARK
    is_passed = list_isas() == expected
    mark.unlink(missing_ok=True)
    if expected and is_passed:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text("\n".join(expected), encoding="utf-8")


def _compile_trivial(device: Device) -> None:
    value = torch.ones(_TRIVIAL_SIZE, device=device.name)
    doubled = torch.compile(lambda tensor: tensor * 2 + 1)(value)
    device.synchronize()
    if not torch.equal(doubled, torch.full_like(value, 3)):
        raise RuntimeError("a compiled function returned a wrong value")
    torch.compiler.reset()


def _compile_for_target(device: TargetDevice) -> None:
    value = device.place(torch.ones(_TRIVIAL_SIZE), torch.float32)
    with device.mode:
        torch.compile(lambda tensor: tensor * 2 + 1)(value)
    torch.compiler.reset()


def _describe_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


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


_EXACT_PRODUCTS = "highest"  # the older interface's word, and its default
_EXACT = ("none", "ieee")  # of the newer one: set nowhere, also not for all, or set to be exact
_T = TypeVar("_T")


@contextmanager
def without_tf32() -> Iterator[None]:
    """Multiply float32 matrices in float32 on CUDA too; on a CPU, without bfloat16.

    Both interfaces agree within, since torch's own guards read the older one. What is exact already is left
    as it is: torch 2.15 compiles anew where "none" became "ieee", though both mean the same.
    """
    newer = [(setting, setting.fp32_precision) for setting in _list_settings()]
    matmul = _read(torch.get_float32_matmul_precision, "")
    convolution = convolves_in_tf32()
    if matmul != _EXACT_PRODUCTS:
        torch.set_float32_matmul_precision(_EXACT_PRODUCTS)
    if convolution:
        torch.backends.cudnn.allow_tf32 = False
    for setting, value in newer:  # the older interface leaves some to what is set for all libraries
        if value not in _EXACT:
            setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        if matmul != _EXACT_PRODUCTS:
            torch.set_float32_matmul_precision(matmul or _EXACT_PRODUCTS)
        if convolution:
            torch.backends.cudnn.allow_tf32 = True
        for setting, value in newer:
            if setting.fp32_precision != value:
                setting.fp32_precision = value


def bakes_tf32() -> bool:
    """Whether Inductor's own convolutions, which it tries when it tunes, are compiled with TF32 in them."""
    return torch.backends.cudnn.fp32_precision == "tf32"


def convolves_in_tf32() -> bool:
    """Whether cuDNN's convolutions and recurrent layers use TF32; a CUDA graph is recorded with that."""
    return _read(lambda: bool(torch.backends.cudnn.allow_tf32), True)


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


def describe_matmul() -> str:
    """Describe the precision of matrix products, by the older interface's word where it has one."""
    return _read(torch.get_float32_matmul_precision, str(torch.backends.cuda.matmul.fp32_precision))


def describe_convolution() -> str:
    """Describe whether convolutions may use TF32; by operator of cuDNN where they differ."""
    cudnn: Any = torch.backends.cudnn
    differing = f"conv {cudnn.conv.fp32_precision}, rnn {cudnn.rnn.fp32_precision}"
    return _read(lambda: str(cudnn.allow_tf32), differing)


def _list_settings() -> list[Any]:
    backends: Any = torch.backends
    cudnn = backends.cudnn
    return [cudnn, cudnn.conv, cudnn.rnn, backends.cuda.matmul, backends.mkldnn.matmul]


def _read(ask: Callable[[], _T], unknown: _T) -> _T:
    with suppress(RuntimeError):
        return ask()
    return unknown


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
