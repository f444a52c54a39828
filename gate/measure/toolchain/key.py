"""What the toolchain's products depend on: two processes with the same key can share them.

Inductor names every product by its own hash of compiler version, flags and preprocessed source, and looks
for it by that name; the key only has to tell apart what Inductor's hashes do not see, above all another
build of the same compiler, whose precompiled headers gcc would silently ignore.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from pathlib import Path

import torch

from gate.measure.device.process_memory import read_cpu_flags, read_cpu_model
from gate.programs import ask_program

_FORMAT = "1"  # of entries: another one is another key
_TIMEOUT_S = 20
# Variables by which a compiler finds other headers and libraries than its own.
_PATH_VARIABLES = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"),
    *("COMPILER_PATH", "GCC_EXEC_PREFIX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LD_PRELOAD"),
)


def compute_key(ingredients: dict[str, str]) -> str:
    """Compute the name of an entry; another value of any ingredient is another name."""
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:32]


def collect_ingredients() -> dict[str, str]:
    """Collect all that products of the CPU toolchain depend on; empty where products cannot be shared.

    Precompiled headers of other compilers than gcc remember where they were made.
    """
    compiler = _find_compiler()
    if compiler is None:
        return {}
    inductor = torch._inductor.config.save_config_portable()  # noqa: SLF001 - what torch hashes for its own caches
    return {
        "format": _FORMAT,
        "torch": f"{torch.__version__} {torch.version.git_version} {_identify_file(torch._C.__file__)}",  # noqa: SLF001
        "headers": str(torch.__file__),  # precompiled headers name them as they were found, links and all
        "python": f"{sys.version} {sys.prefix}",
        "system": f"{platform.platform()} {' '.join(platform.libc_ver())}",
        "cpu": f"{read_cpu_model()} {read_cpu_flags()}",
        "inductor": repr(sorted(inductor.items())),
        "variables": repr([os.environ.get(name) for name in _PATH_VARIABLES]),
        **compiler,
    }


def _find_compiler() -> dict[str, str] | None:
    """Identify gcc's driver and the compiler proper behind it; None where there is no gcc."""
    command = os.environ.get("CXX", "g++")
    driver = shutil.which(command)
    told = ask_program([command, "--version"], limit_s=_TIMEOUT_S).output
    if driver is None or "Free Software Foundation" not in told:
        return None
    proper = shutil.which(ask_program([command, "-print-prog-name=cc1plus"], limit_s=_TIMEOUT_S).output)
    if proper is None:
        return None
    return {
        "command": command,
        "compiler": f"{told} {_identify_file(driver)}",
        "proper": _identify_file(proper),
    }


def _identify_file(path: str) -> str:
    """Identify a file that is too large to read: by its real path, size and time of change."""
    real = Path(path).resolve()
    found = real.stat()
    return f"{real} {found.st_size} {found.st_mtime_ns}"
