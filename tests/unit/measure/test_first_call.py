"""The first call's arithmetic and the state of the caches."""

from __future__ import annotations

import pytest

from gate.measure.first_call import CacheStateError, check_cold, compute_compile_time
from gate.measure.graph import CacheUse


@pytest.mark.parametrize(
    ("first_s", "steady_s", "expected"), [(5.0, 0.5, 4.5), pytest.param(0.1, 0.2, 0.0, id="never negative")]
)
def test_compile_time_is_less_a_steady_call(first_s: float, steady_s: float, expected: float) -> None:
    """The first call also runs the model once."""
    assert expected == compute_compile_time(first_s, steady_s)


def test_full_cache_is_no_cold_compile() -> None:
    """When every graph was found, the number would be another metric."""
    with pytest.raises(CacheStateError, match="2 graphs were found"):
        check_cold(CacheUse(hits=2, misses=0))


@pytest.mark.parametrize("cache", [CacheUse(), CacheUse(hits=1, misses=1), CacheUse(misses=3)])
def test_compiled_graphs_are_a_cold_compile(cache: CacheUse) -> None:
    """Equal layers hit the cache that the first of them filled; without graphs nothing is hit."""
    check_cold(cache)
