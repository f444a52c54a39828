"""Python calls during a compile: a proxy for compile time that hardly varies."""

from __future__ import annotations

import cProfile
import gc
import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gate.files.codec import pause_collector

# Where Inductor and AOT autograd keep compiled graphs, below the cache directory. Settings cannot turn
# these caches off: the environment variables that the lab sets, so that they are on, win over settings.
_GRAPH_CACHES = ("fxgraph", "aotautograd")


def count_compile_calls(step: Callable[[], Any], cache: Path) -> int:
    """Forget all compiled graphs, call ``step`` once and count the Python calls of that.

    What is compiled from generated code stays in ``cache`` and is used again, so that no time goes to
    the C++ compiler or to tuning, which are not Python calls. Nothing can be timed as warm afterwards.
    """
    forget_graphs(cache)
    profiler = cProfile.Profile(subcalls=False, builtins=False)
    gc.collect()
    # Finalizers are Python calls too, and come when they like.
    with pause_collector(), _with_eager_backward():
        profiler.enable()
        try:
            step()
        finally:
            profiler.disable()
    return sum(entry.callcount for entry in profiler.getstats())


def forget_graphs(cache: Path) -> None:
    """Forget compiled graphs, in this process and in the cache directory; compiled kernels stay."""
    torch.compiler.reset()
    for name in _GRAPH_CACHES:
        shutil.rmtree(cache / name, ignore_errors=True)  # absent when nothing was compiled


def list_graph_keys(cache: Path) -> frozenset[Path]:
    """List the keys that compiled graphs have in the cache directory: the directories of their files."""
    files = (path for name in _GRAPH_CACHES for path in (cache / name).rglob("*") if path.is_file())
    return frozenset(path.parent for path in files)


@contextmanager
def _with_eager_backward() -> Iterator[None]:
    """Compile the backward graph with the forward one: later, it may be on a thread that is not counted."""
    config = importlib.import_module("torch._functorch.config")
    if not hasattr(config, "force_non_lazy_backward_lowering"):
        yield
        return
    with config.patch(force_non_lazy_backward_lowering=True):
        yield
