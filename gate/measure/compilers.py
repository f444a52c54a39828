"""How kernels are compiled: anew, or several at once.

A compile that is timed takes one core, since a pool is ready sooner or later. What is not timed need not wait
for one, and what tuning tries would take minutes on one.
"""

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from gate.programs import count_cores

_MOST = 16  # more wait for each other: a process is some hundred MiB, and imports torch first
_VARIABLE = "TORCHINDUCTOR_COMPILE_THREADS"


@contextmanager
def compile_anew(settings: Mapping[str, Mapping[str, object]]) -> Iterator[None]:
    """Compile within under other settings, by the module that has them; no guard looks at these."""
    torch.compiler.reset()
    try:
        with ExitStack() as patches:
            for module, values in settings.items():  # few need to spend the time that importing takes
                patches.enter_context(importlib.import_module(module).patch(**values))
            yield
    finally:
        torch.compiler.reset()


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
    return min(_MOST, count_cores())
