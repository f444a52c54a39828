"""The Python calls of one compile: how many, and in which functions."""

import cProfile
import gc
import importlib
import itertools
import shutil
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from gate.collector import pause_collector
from gate.records.run import Called

# Where Inductor and AOT autograd keep compiled graphs, below the cache directory. Settings cannot turn
# these caches off: the environment variables that the lab sets, so that they are on, win over settings.
GRAPH_CACHES = ("fxgraph", "aotautograd")
_AT_ONCE = "force_non_lazy_backward_lowering"
_LEAST_SHARE = 0.003  # of all calls, those within a function that is listed
_LIBRARY = Path(sysconfig.get_path("stdlib"))


@dataclass(frozen=True, kw_only=True, slots=True)
class CompileCalls:
    total: int
    functions: Mapping[str, Called] = field(default_factory=dict)


def count_compile_calls(step: Callable[[], Any], cache: Path, *, by_function: bool = False) -> CompileCalls:
    """Forget all compiled graphs, call ``step`` once and count its Python calls."""
    torch.compiler.reset()
    for name in GRAPH_CACHES:
        shutil.rmtree(cache / name, ignore_errors=True)  # absent when nothing was compiled
    profiler = cProfile.Profile(subcalls=False, builtins=False)
    if by_function:
        profiler = cProfile.Profile(itertools.count().__next__, subcalls=False, builtins=False)
    gc.collect()
    # Finalizers are Python calls too, and come when they like.
    # The backward graph is compiled with the forward one: later, it may be on a thread that is not counted.
    config = importlib.import_module("torch._functorch.config")
    settings = {_AT_ONCE: True} if hasattr(config, _AT_ONCE) else {}
    with pause_collector(), config.patch(settings):
        profiler.enable()
        try:
            step()
        finally:
            profiler.disable()
    entries = profiler.getstats()
    functions = list_functions(entries) if by_function else {}
    return CompileCalls(total=sum(entry.callcount for entry in entries), functions=functions)


def list_functions(entries: Iterable[Any]) -> dict[str, Called]:
    calls: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for entry in entries:
        name = name_function(entry.code)
        calls[name] += entry.callcount
        # From a call with n others in it to its return are 2 n + 1 ticks; a recursive one is in another.
        within[name] += int(entry.totaltime + entry.callcount - entry.reccallcount) // 2
    least = _LEAST_SHARE * max(within.values(), default=0)
    return {
        name: Called(calls=calls[name], within=inside)
        for name, inside in within.most_common()
        if inside >= least
    }


def name_function(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code
    path = Path(code.co_filename)
    if "site-packages" in path.parts:
        path = Path(*path.parts[path.parts.index("site-packages") + 1 :])
    else:
        path = path.relative_to(_LIBRARY) if path.is_relative_to(_LIBRARY) else Path(path.name)
    return f"{'.'.join(path.with_suffix('').parts)}.{code.co_qualname}"
