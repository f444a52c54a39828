"""How many kernels are compiled at once. One, where a compile is timed: a pool is ready sooner or later.

What nobody times need not wait for one core, and what tuning tries would take minutes on one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST = 16  # more wait for each other: a process is some hundred MiB, and imports torch first
_VARIABLE = "TORCHINDUCTOR_COMPILE_THREADS"


@contextmanager
def compile_together() -> Iterator[None]:
    """Compile kernels on all cores within, in processes of their own; nothing may be timed meanwhile."""
    config = importlib.import_module("torch._inductor.config")  # few need to spend the time that it takes
    with config.patch(compile_threads=count_compilers()):
        yield


def tune_together() -> None:
    """Compile what tuning tries on all cores, from now on; the kernels themselves still one by one.

    Torch reads the number for tuning from the environment when it first tunes, that for kernels earlier.
    """
    config: Any = importlib.import_module("torch._inductor.config")
    config.compile_threads = 1
    os.environ[_VARIABLE] = str(count_compilers())


def count_compilers() -> int:
    """Count the cores that this process may run on, as far as more of them help."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinity
        cores = os.cpu_count() or 1
    return min(_MOST, cores)
