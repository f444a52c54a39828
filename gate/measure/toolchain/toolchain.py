"""The toolchain's one-off work: paid by the primer, so that no case is charged for it.

On a CPU, Inductor first finds out which vector instructions the compiler and the processor have (a
compile and a load each, kept in its cache directory) and precompiles its C++ header (kept below
``TMPDIR``). On CUDA, Triton compiles its driver module (kept in its cache directory).

What a CPU's toolchain left can be kept for later runs (:mod:`gate.measure.toolchain.cache`). All the work
is still asked for, so that Inductor itself checks by its own hashes whether what was kept is what it needs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch

from gate.devices import CPU, TARGET
from gate.errors import MachineError
from gate.files.disk import make_private_directory
from gate.measure.device.device import Device
from gate.measure.device.environment import list_isas, load_isas, mark_isas
from gate.measure.device.torch_settings import find_private
from gate.measure.toolchain.cache import (
    ToolchainCache,
    clear_products,
    collect_ingredients,
    compute_key,
    drop_entry,
    list_products,
    restore_products,
    store_products,
)

# The directories that a compile fills besides the precompiled headers.
_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
_TRIVIAL_SIZE = 1024


class StaleToolchainError(Exception):
    """What was kept does not serve here; it has been removed, and a fresh process does without it."""


def prime_with_cache(device: Device, directory: Path) -> None:
    """Do as :func:`prime_toolchain`, with what an earlier run kept below ``directory``, or keep it there.

    Raises:
        MachineError: This machine cannot compile for this device.
        StaleToolchainError: What was kept did not serve.
    """
    cache = _open_cache(directory)
    if cache is None or list_products(cache):  # primed before: nothing is to be brought
        prime_toolchain(device)
        return
    kept = restore_products(cache)
    try:
        prime_toolchain(device)
    except MachineError as error:
        if kept is None:
            raise
        _discard(cache, str(error), error)
    isas = ", ".join(list_isas())
    if kept is not None and kept.notes.get("isas") != isas:
        _discard(cache, f"instruction sets were {kept.notes.get('isas')} and are {isas}")
    if kept is None or list_products(cache).keys() != kept.files.keys():
        _keep(cache, isas)


def prime_toolchain(device: Device) -> None:
    """Do the toolchain's work; of what it leaves in the cache directories none is a compiled graph.

    Raises:
        MachineError: This machine cannot compile for this device.
    """
    try:
        probe_toolchain(device)
        if device.kind is CPU:
            mark_isas()
        with use_throwaway_caches():
            (_compile_for_target if device.kind is TARGET else _compile_trivial)(device)
    except Exception as error:
        what = f"the {device.kind.toolchain} does not work: {_describe_cause(error)}"
        raise MachineError(what, device.kind.toolchain_fix) from error


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


def _open_cache(directory: Path) -> ToolchainCache | None:
    """Find this process's entry; None where products cannot be kept."""
    try:
        make_private_directory(directory)
    except OSError as error:
        sys.stderr.write(f"the toolchain's files are not kept for later runs: {error}\n")
        return None
    ingredients, headers = collect_ingredients(), find_private("torch._inductor.codecache", "_HEADER_DIR")
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not (ingredients and headers and inductor):
        return None
    places = {"headers": Path(headers), "inductor": Path(inductor)}
    return ToolchainCache(root=directory, key=compute_key(ingredients), places=places)


def _discard(cache: ToolchainCache, why: str, error: Exception | None = None) -> NoReturn:
    drop_entry(cache)
    clear_products(cache)
    raise StaleToolchainError(why) from error


def _keep(cache: ToolchainCache, isas: str) -> None:
    try:
        store_products(cache, {"isas": isas})
    except OSError as error:  # the run has all it needs; only the next one is slower
        sys.stderr.write(f"the toolchain's files are not kept for later runs: {error}\n")


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
