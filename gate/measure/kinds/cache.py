"""Compiled code moved to another process: the second one finds one file, and no cache directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import torch

from gate.errors import UsageError
from gate.measure.compiler.graph import GraphReport, find_cache
from gate.measure.kinds.protocol import Protocol, Seen
from gate.measure.timing.rounds import Step
from gate.measure.workload.build import Function, Subject
from gate.records import Metric

_FILE = "artifacts.bin"  # beside Inductor's own directory, in the trial's
_MOVED = "moved"


class Cache(Protocol):
    """The first process saves torch's cache artifacts, the second loads them into an empty directory."""

    def enter(self, subject: Subject, *, is_cold: bool) -> None:
        """In the second process, take an empty directory for the caches and load what was saved.

        Raises:
            UsageError: Nothing was saved.
        """
        if is_cold:
            return
        saved = _find_file()
        if not saved.is_file():
            fix = "torch saves none of this backend; remove `kind: cache` from the case."
            raise UsageError("the first process saved no cache artifacts", fix)
        moved = saved.parent / _MOVED
        shutil.rmtree(moved, ignore_errors=True)  # an earlier process of this pair's arm filled it
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(moved)
        os.environ["TRITON_CACHE_DIR"] = str(moved / "triton")  # else the first process's, which is full
        torch.compiler.load_cache_artifacts(saved.read_bytes())

    def count_misses(self, report: GraphReport) -> int:
        """Count what was recompiled; where nothing at all was found, that is one at least."""
        return report.cache.misses if report.cache.hits else max(1, report.cache.misses)

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Save the artifacts, and see how large they are."""
        size = _save_artifacts()
        return Seen(samples={Metric.PACKAGE_BYTES: (size,)} if size else {})

    def leave(self) -> None:
        """Save the artifacts where there are none: a pair that goes on after an interruption lost them."""
        if not _find_file().is_file():
            _save_artifacts()


PROTOCOL = Cache


def _find_file() -> Path:
    return find_cache().parent / _FILE


def _save_artifacts() -> int:
    """Save what this process compiled or found, and return its bytes; 0 where torch saves none of it."""
    saved = torch.compiler.save_cache_artifacts()
    if saved is None:
        return 0
    content, _ = saved
    _find_file().write_bytes(content)
    return len(content)
