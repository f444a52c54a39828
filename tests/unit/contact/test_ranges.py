"""What is found on a card is held against ranges that were estimated for it; of another card it is told."""

from __future__ import annotations

import pytest

from gate.contact.clocks import judge_rate
from gate.contact.findings import AssumptionStatus, find_memory_speed
from gate.contact.whole import _judge_times
from gate.records import Metric, Trial

PROVED, REFUTED, TOLD = AssumptionStatus.PROVED, AssumptionStatus.REFUTED, AssumptionStatus.TOLD
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
CASE = "resnet50/inference-bfloat16-full-default"


@pytest.mark.parametrize(
    ("model", "found", "status", "expected"),
    [
        (H100, 2.7, PROVED, "2.4 to 3.1"),
        (H100, 3.4, REFUTED, "2.4 to 3.1"),
        (H200, 3.4, PROVED, "3.36 to 4.34"),  # 1.4 times as fast
        ("NVIDIA H100 PCIe", 1.7, TOLD, ""),  # another memory
    ],
)
def test_a_rate_is_judged_on_cards_that_it_was_estimated_for(
    model: str, found: float, status: AssumptionStatus, expected: str
) -> None:
    """An H100 of another form has another memory: its rate is a number to look at."""
    judged = judge_rate(found, (2.4, 3.1), "TB/s", find_memory_speed(model))
    assert (judged.outcome, judged.expected, judged.found) == (status, expected, f"{found} TB/s")


def judge(model: str, cold_s: float) -> dict[str, tuple[AssumptionStatus, str]]:
    """Judge a trial of ResNet-50 whose eager call takes 6 ms, whose compiled call 4 ms."""
    samples = {
        Metric.EAGER_LATENCY: (0.006,),
        Metric.COMPILED_LATENCY: (0.004,),
        Metric.COLD_COMPILE_TIME: (cold_s,),
    }
    trial = Trial(case_id=CASE, index=1, samples=samples)
    return {
        name.removeprefix(CASE): (one.outcome, one.expected) for name, one in _judge_times([trial], model)
    }


def test_times_of_a_trial_have_their_ranges() -> None:
    """A cold compile of 25 to 60 s is the host's and not the memory's: it is the same beside an H200."""
    expected = {
        " eager_latency": (PROVED, "4 to 12"),
        " compiled_latency": (PROVED, "2.5 to 8"),
        " cold_compile_time": (PROVED, "25 to 60"),
    }
    assert judge(H100, 40.0) == expected
    assert judge(H200, 40.0)[" cold_compile_time"] == expected[" cold_compile_time"]
    assert judge(H100, 70.0)[" cold_compile_time"] == (REFUTED, "25 to 60")
    assert set(judge("Tesla T4", 70.0).values()) == {(TOLD, "")}
