"""What torch's CPU allocator handed out during a call, exactly: the profiler sees every allocation.

The resident set also holds scratch memory of libraries, whose size changes from process to process.
For a ratio of two programs that noise would count twice, so the ratio is taken from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import torch

_MEMORY_EVENT = "[memory]"  # the profiler's name of an allocation or, with negative bytes, a release


def measure_tensor_growth(run: Callable[[], object]) -> int:
    """Measure by how many bytes the tensors alive at once grew during ``run``.

    Raises:
        OSError: This torch's profiler does not tell.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        run()
    # Memory events that belong to an operator are only in the profiler's raw results.
    raw: Any = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    if raw is None:
        raise OSError("torch's profiler does not list allocations")
    return compute_allocated_growth(event.nbytes() for event in raw.events() if event.name() == _MEMORY_EVENT)


def compute_allocated_growth(changes_bytes: Iterable[int]) -> int:
    """Compute the largest sum of leading allocations and releases; 0 when memory never grew."""
    return max(accumulate(changes_bytes, initial=0))
