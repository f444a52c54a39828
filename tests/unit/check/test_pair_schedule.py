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
def test_known_code_is_compiled_for_what_a_compile_decides_alone(
    metric: Metric, index: int, device: str, expected: Content
) -> None:
    """On the caches of a trial no pair of latencies compiles; a target compiles and does nothing else."""
    assert plan_content([metric], index, device, known_code=True) == expected


def test_code_that_is_not_known_is_compiled_first() -> None:
    """The first pair fills the caches of both arms, and the second finds them."""
    assert [plan_content([LATENCY], index, "cpu") for index in (1, 2)] == [COMPILE, NOTHING]
