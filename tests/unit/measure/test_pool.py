"""The number of kernels that are compiled at once, by torch's own answers."""

import os
from collections.abc import Iterator

import pytest
import torch._inductor.async_compile
import torch._inductor.config
import torch._inductor.select_algorithm

from gate.measure import compilers
from gate.measure.compilers import compile_together, count_compilers, tune_together


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As the lab starts its workers: one at a time, on a machine of six cores."""
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    monkeypatch.setattr(compilers, "count_compilers", lambda: 6)
    with torch._inductor.config.patch(compile_threads=1):
        yield


def ask_torch() -> tuple[int, int]:
    """How many kernels torch compiles at once, and how many choices of its tuning."""
    torch._inductor.select_algorithm.get_num_workers.cache_clear()  # a worker asks it for the first time
    kernels = torch._inductor.async_compile.get_compile_threads()
    return kernels, torch._inductor.select_algorithm.get_num_workers()


@pytest.mark.usefixtures("serial")
def test_what_nobody_times_is_compiled_on_all_cores() -> None:
    """Within the block six at once, afterwards one by one again."""
    with compile_together():
        assert ask_torch() == (6, 1)
    assert ask_torch() == (1, 1)


@pytest.mark.usefixtures("serial")
def test_tuning_alone_is_on_all_cores() -> None:
    """Kernels compile one by one, because that is timed and must repeat."""
    tune_together()
    assert ask_torch() == (1, 6)


def test_no_more_than_help() -> None:
    """At least one, and never more than the process may run on."""
    assert 1 <= count_compilers() <= min(16, os.cpu_count() or 1)
