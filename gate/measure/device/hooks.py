"""Let a CPU build of torch hold fake tensors of a GPU; to be called before torch is imported.

What autograd, indexing and guards ask of a device is asked in C++ and before any Python of torch could
answer: a small library of public interfaces of torch (``hooks.cpp``) is compiled once a run and loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

from gate.errors import MachineError
from gate.installation import find_page
from gate.programs import ask_program

# Releases of torch whose compiler the imitated device was tested with: it stands in for names that are no
# interface of torch's, and another release may ask for others without any error.
TESTED = ("2.13",)
_VERSION = re.compile(r"""^__version__ = ['"](?P<release>\d+\.\d+)[^'"]*['"]""", re.MULTILINE)
_SOURCE = Path(__file__).with_name("hooks.cpp")
_COMPILE_LIMIT_S = 300
_MAX_MESSAGE = 300  # characters of a compiler's message


def load_hooks() -> None:
    """Load the hooks into this process, which has not imported torch yet.

    Raises:
        MachineError: There is no torch, or it is one for GPUs or of a release that targets were not tested
            with, or there is no C++ compiler.
    """
    if "torch" in sys.modules:
        raise RuntimeError("torch asks for a device when it is imported: load the hooks before")
    directory = _find_torch()
    if (directory / "lib" / "libtorch_cuda.so").exists():
        message = "a target is compiled for by a CPU build of torch, and this one is built for CUDA"
        raise MachineError(message, "Measure on the GPU (--device cuda), or install a CPU build beside it.")
    _check_release(directory)
    ctypes.CDLL(str(directory / "lib" / "libtorch_cpu.so"))
    ctypes.CDLL(str(_build_hooks(directory)))


def _find_torch() -> Path:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise MachineError("No module named 'torch'", "Install a CPU build of torch.")
    return Path(found.origin).parent


def _check_release(torch: Path) -> None:
    found = _VERSION.search((torch / "version.py").read_text(encoding="utf-8"))
    release = found["release"] if found else "of an unknown release"
    if release not in TESTED:
        tested = " and ".join(TESTED)
        message = f"targets were tested with torch {tested}, and this torch is {release}"
        fix = f"Install a CPU build of torch {tested}, or measure on the GPU itself (--device cuda)."
        raise MachineError(message, fix)


def _build_hooks(torch: Path) -> Path:
    """Compile the hooks for this torch, unless that was done: ``TMPDIR`` is the run's own."""
    version = (torch / "version.py").read_bytes()
    digest = hashlib.sha256(_SOURCE.read_bytes() + version + str(torch).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"gate-hooks-{digest}.so"
    if library.exists():
        return library
    partial = library.with_suffix(f".{os.getpid()}")
    lib = torch / "lib"
    command = [
        *os.environ.get("CXX", "g++").split(),
        *("-std=c++20", "-shared", "-fPIC", "-O0", f"-I{torch / 'include'}", str(_SOURCE)),
        *(f"-L{lib}", "-ltorch_cpu", "-lc10", "-o", str(partial)),
    ]
    done = ask_program(command, limit_s=_COMPILE_LIMIT_S)
    if done.problem:
        raise MachineError(f"No working C++ compiler: {done.problem}", "Install g++, or set CXX.")
    if done.status:
        errors = [line for line in done.err.splitlines() if "error" in line]
        message = (errors or [done.err.strip()])[0][:_MAX_MESSAGE]
        fix = f"Targets were not tried with this torch: see {find_page('targets')}."
        raise MachineError(f"the C++ compiler cannot compile for this torch: {message}", fix)
    partial.rename(library)
    return library
