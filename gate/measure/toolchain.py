"""The toolchain's one-off work: paid by the primer, so that no case is charged for it.

On a CPU, Inductor first finds out which vector instructions the compiler and the processor have (a
compile and a load each, kept in its cache directory) and precompiles its C++ header (kept below
``TMPDIR``). On CUDA, Triton compiles its driver module (kept in its cache directory).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

from gate.devices import CPU, TARGET
from gate.errors import MachineError
from gate.measure.device.device import Device
from gate.measure.device.environment import list_isas, load_isas, mark_isas
from gate.measure.device.torch_settings import find_private
from gate.programs import count_cores

# The directories that a compile fills besides the precompiled headers.
_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
_TRIVIAL_SIZE = 1024
_ISAS = "torch._inductor.cpu_vec_isa"


def prime_toolchain(device: Device) -> None:
    """Do the toolchain's work; of what it leaves in the cache directories none is a compiled graph.

    Raises:
        MachineError: This machine cannot compile for this device.
    """
    try:
        if device.kind is CPU:
            _probe_together()
        probe_toolchain(device)
        if device.kind is CPU:
            mark_isas()
        with use_throwaway_caches():
            (_compile_for_target if device.kind is TARGET else _compile_trivial)(device)
    except Exception as error:
        what = f"the {device.kind.toolchain} does not work: {_describe_cause(error)}"
        raise MachineError(what, device.kind.toolchain_fix) from error


def _probe_together() -> None:
    """Probe the processor's instruction sets on all cores: Inductor does so one after the other."""
    supported, check = find_private(_ISAS, "supported_vec_isa_list"), find_private(_ISAS, "x86_isa_checker")
    flags = check() if check else ()
    own = [isa for isa in supported or () if all(flag in flags for flag in str(isa).split())]
    with ThreadPoolExecutor(count_cores()) as threads:
        list(threads.map(bool, own))


def load_toolchain(device: Device) -> None:
    """Do in a worker what :func:`probe_toolchain` does, but believe what the primer found."""
    if device.kind is CPU:
        load_isas()
    else:
        probe_toolchain(device)


def probe_toolchain(device: Device) -> None:
    """Find out what this machine has; what was compiled for it before is only loaded."""
    if device.kind is CPU:
        list_isas()
    elif device.kind.is_gpu and (driver := find_private("triton.runtime", "driver")):
        # Building the utilities is a side effect of making the driver object, where it has them.
        getattr(getattr(driver, "active", None), "utils", None)


@contextmanager
def use_throwaway_caches() -> Iterator[None]:
    """Send what is compiled within to directories that are removed afterwards."""
    before = {name: os.environ.get(name) for name in _CACHE_VARIABLES}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        os.environ.update({name: os.path.join(directory, name) for name in _CACHE_VARIABLES})  # noqa: PTH118 - a string is needed
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _compile_trivial(device: Device) -> None:
    value = torch.ones(_TRIVIAL_SIZE, device=device.name)
    doubled = torch.compile(lambda tensor: tensor * 2 + 1)(value)
    device.synchronize()
    if not torch.equal(doubled, torch.full_like(value, 3)):
        raise RuntimeError("a compiled function returned a wrong value")
    torch.compiler.reset()


def _compile_for_target(device: Any) -> None:  # noqa: ANN401 - a TargetDevice, which is not to be loaded elsewhere
    value = device.place(torch.ones(_TRIVIAL_SIZE), torch.float32)
    with device.mode:
        torch.compile(lambda tensor: tensor * 2 + 1)(value)
    torch.compiler.reset()


def _describe_cause(error: BaseException) -> str:
    """Describe what lies below the compiler's own wrapping, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
