"""All that a worker would otherwise load while something is timed; importing this does none of it."""

from __future__ import annotations

import importlib
import warnings
from contextlib import suppress

# What a first compile would import otherwise: importing is not compiling.
_MODULES = ("gate.suite.machinery", "torch._dynamo", "torch._inductor.compile_fx")
# The same, of which another torch may lack some: then its first compile imports what it has instead.
_OF_SOME = (
    "torch.utils.cpp_extension",  # with setuptools, the longest
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.wrapper_fxir",
    "torch.export._trace",
)


def import_torch() -> None:
    """Import torch, its compiler, and what in the suite needs them; hash torch's and Triton's own files."""
    for name in _MODULES:
        importlib.import_module(name)
    with warnings.catch_warnings(action="ignore"):  # of modules that were not asked for by name
        for name in _OF_SOME:
            with suppress(ImportError):
                importlib.import_module(name)
    _hash_sources()


def _hash_sources() -> None:
    """Let torch hash its sources, 2,400 files, and Triton's library, for the keys of its caches.

    It does that once a process. In a first compile it is a second that says nothing of the model, and of
    loading a small one from its caches more than half: 0.35 s of it only where triton is installed, on a
    processor too.
    """
    codecache = importlib.import_module("torch._inductor.codecache")
    for name in ("torch_key", "triton_key"):
        hash_sources = getattr(codecache, name, None)
        if callable(hash_sources):
            hash_sources()
