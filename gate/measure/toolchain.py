"""The toolchain's one-off work, which the primer pays for, so that no case is charged for it.

On a CPU, Inductor probes vector instructions and precompiles its C++ header; on CUDA, Triton compiles its
driver module. Each process would compile or load each probe anew, for seconds: where the primer saw that code
for the best instructions runs, it leaves a mark in the cache.
"""

import importlib
import importlib.metadata
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gate.devices import CPU
from gate.errors import MachineError
from gate.measure.device.device import Device
from gate.measure.device.target_device import TargetDevice
from gate.measure.graph import get_cache_directory
from gate.measure.private import CHECK_ISAS, SUPPORTED_ISAS, TRITON_DRIVER, VALID_ISAS
from gate.programs import count_cores
from gate.records.protocol import CACHE_VARIABLES

_TRIVIAL_SIZE = 1024
_MARK = "all.isas"  # in Inductor's cache directory


def prime_toolchain(device: Device) -> None:
    """Do the toolchain's work; none of what it leaves in the cache directories is a compiled graph.

    Raises:
        MachineError: This machine cannot compile for this device.
    """
    try:
        if device.kind is CPU:
            _prime_cpu(device)
        else:
            load_toolchain(device)
            _compile_trivial(device)
    except Exception as error:
        what = f"the {device.kind.toolchain} does not work: {_describe_cause(error)}"
        raise MachineError(what, "Try `compile-gate doctor`.") from error


def _prime_cpu(device: Device) -> None:
    """Compile for the instructions that the processor has, and only if that does not run probe them."""
    available = _list_available()
    if available:
        config = importlib.import_module("torch._inductor.config")
        with suppress(Exception), config.patch({"cpp.vec_isa_ok": True}):
            list_isas()  # for some Inductor compiles more of its own
            _compile_trivial(device)
            _write_mark(available)
            return
        for cached in (VALID_ISAS.find(), *(getattr(type(isa), "__bool__", None) for isa in available)):
            getattr(cached, "cache_clear", lambda: None)()
    probe_isas()
    _compile_trivial(device)


def load_toolchain(device: Device) -> None:
    if device.kind is CPU:
        if (get_cache_directory() / _MARK).is_file():
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
    """Probe the processor's instruction sets, and leave the mark for workers if all of them passed."""
    available = _list_available()
    with ThreadPoolExecutor(count_cores()) as threads:  # Inductor does so one after the other
        list(threads.map(bool, available))
    is_passed = list_isas() == tuple(map(str, available))
    (get_cache_directory() / _MARK).unlink(missing_ok=True)
    if available and is_passed:
        _write_mark(available)


def _list_available() -> list[Any]:
    """List torch's instruction sets that this processor has, best first."""
    supported, check = SUPPORTED_ISAS.find(), CHECK_ISAS.find()
    flags = check() if check else ()
    return [isa for isa in supported or () if all(flag in flags for flag in str(isa).split())]


def _write_mark(available: Sequence[Any]) -> None:
    mark = get_cache_directory() / _MARK
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text("\n".join(map(str, available)), encoding="utf-8")


def _compile_trivial(device: Device) -> None:
    """What is compiled here is thrown away."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        patch.dict(os.environ, {name: str(Path(directory, name)) for name in CACHE_VARIABLES}),
    ):
        if isinstance(device, TargetDevice):
            value = device.place(torch.ones(_TRIVIAL_SIZE), torch.float32)
            with device.mode:
                torch.compile(_compute_trivial)(value)
        else:
            value = torch.ones(_TRIVIAL_SIZE, device=device.name)
            computed = torch.compile(_compute_trivial)(value)
            device.synchronize()
            if not torch.allclose(computed, _compute_trivial(value)):
                raise RuntimeError("a compiled function returned a wrong value")
    torch.compiler.reset()


def _compute_trivial(value: torch.Tensor) -> torch.Tensor:
    """With a function of Sleef, whose symbols libtorch has for some instruction sets only."""
    return (value * 2 + 1).exp()


def _describe_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
