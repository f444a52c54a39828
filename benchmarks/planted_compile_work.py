"""Which function is named for twelve slowdowns planted into the compiler, by the Python calls of a compile.

    PYTHONHASHSEED=0 python benchmarks/planted_compile_work.py

Compiles a small model as it is, and with each of the plants, in processes of their own: a function that runs
several times, or does work whenever it is called. Prints what the cause of a slower compile would name, a
function and its callers; a plant is found where it is among the first three.
"""

from __future__ import annotations

import functools
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gate.decide.explain.compiler_functions import follow_growth
from gate.measure.calls import CompileCalls, count_compile_calls

NAMED = 3
AGAIN: Mapping[str, int] = {  # functions that are called so many times instead of once
    "torch._inductor.compile_fx:_recursive_joint_graph_passes": 3,
    "torch._inductor.compile_fx:_recursive_post_grad_passes": 3,
    "torch._inductor.pattern_matcher:PatternMatcherPass.apply": 3,
    "torch._inductor.scheduler:Scheduler.fuse_nodes": 12,
    "torch.fx.graph_module:GraphModule.recompile": 8,
    "torch.fx.graph:Graph.eliminate_dead_code": 20,
}
WORK: Mapping[str, int] = {  # functions that make so many calls more each time
    "torch._subclasses.fake_tensor:FakeTensorMode.dispatch": 200,
    "torch._dynamo.guards:CheckFunctionManager.__init__": 60_000,
    "torch._inductor.graph:GraphLowering.call_function": 1_000,
    "torch._inductor.codegen.cpp:CppScheduling.codegen_node": 8_000,
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.step": 150,
    "torch._functorch._aot_autograd.functional_utils:to_fun": 800,
}


def main() -> None:
    """Print a row for each plant."""
    names = (*AGAIN, *WORK)
    with get_context("fork").Pool(
        1, maxtasksperchild=1
    ) as pool:  # what a compile keeps is of its process alone
        before, again = pool.apply(count), pool.apply(count)
        print(f"unchanged: {before.total} and {again.total} calls")
        counted = sum(show(name, before, pool.apply(count, (name,))) for name in names)
    print(f"{counted} of {len(names)}")


def show(name: str, before: CompileCalls, after: CompileCalls) -> bool:
    """Print what is named, and return whether the plant is among it."""
    named = follow_growth(before.functions, after.functions)[: -1 - NAMED : -1]
    function = name.replace(":", ".")
    is_found = any(name_seen in (function, f"planted.{name}") for name_seen in named)
    print(
        f"{'found' if is_found else 'LOST '} {function} {after.total / before.total - 1:+.1%}: {named}",
        flush=True,
    )
    return is_found


def count(name: str = "") -> CompileCalls:
    """Count the calls of a compile whose generated code is in the caches, with the plant of this name."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64),
        torch.nn.GELU(),
        torch.nn.LayerNorm(64),
        torch.nn.Linear(64, 8),
        torch.nn.Softmax(-1),
    )
    step = functools.partial(torch.compile(model), torch.randn(4, 32))
    with (
        tempfile.TemporaryDirectory() as cache,
        patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}),
        plant(name) if name else nullcontext(),
    ):
        step()
        return count_compile_calls(step, Path(cache), by_function=True)


@contextmanager
def plant(name: str) -> Iterator[None]:
    """Slow a function down; its slower form is called ``planted.NAME`` in a profile."""
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    original = getattr(owner, attribute)

    def slower(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any function
        for _ in range(AGAIN.get(name, 1) - 1):
            original(*args, **kwargs)
        for _ in range(WORK.get(name, 0)):
            do_nothing()
        return original(*args, **kwargs)

    slower.__code__ = slower.__code__.replace(co_filename="planted.py", co_qualname=name)
    with patch.object(owner, attribute, slower):
        yield


def do_nothing() -> None:
    """Be called."""


if __name__ == "__main__":
    main()
