"""What a pair measures for what is wanted of it."""

from __future__ import annotations

import pytest

from gate.check.content import Content, plan_content
from gate.records import Metric

LATENCY, COLD, WARM = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME
NOTHING = Content(compiles=False, warm=False)
COMPILE = Content(compiles=True, warm=False)
BOTH = Content(compiles=True, warm=True)
CACHED = Content(compiles=False, warm=True, skips_calls=True)
RECOUNTED = Content(compiles=False, warm=True)
RETUNED = Content(compiles=True, warm=True, skips_calls=True)


@pytest.mark.parametrize(
    ("metric", "index", "device", "expected"),
    [
        pytest.param(LATENCY, 1, "cpu", NOTHING, id="latency"),
        pytest.param(COLD, 1, "cpu", BOTH, id="compile_time_is_corroborated_once"),
        pytest.param(COLD, 2, "cpu", COMPILE, id="compile_time"),
        pytest.param(WARM, 1, "cpu", BOTH, id="warm_compile_time_is_corroborated_once"),
        pytest.param(WARM, 2, "cpu", CACHED, id="warm_compile_time"),
        pytest.param(WARM, 2, "cuda", RETUNED, id="warm_compile_time_of_code_that_is_tuned_anew"),
        pytest.param(Metric.PEAK_MEMORY, 2, "cpu", CACHED, id="memory"),
        pytest.param(Metric.COMPILE_CALLS, 2, "cpu", RECOUNTED, id="calls"),
        pytest.param(LATENCY, 1, "cuda", COMPILE, id="tuning_is_drawn_anew"),
        pytest.param(LATENCY, 2, "cuda:sm_90", COMPILE, id="target"),
    ],
)
def test_a_compile_is_timed_for_what_it_decides_alone(
    metric: Metric, index: int, device: str, expected: Content
) -> None:
    """No pair of latencies times a compile, not even the first; a target compiles and does nothing else."""
    assert plan_content([metric], index, device) == expected
