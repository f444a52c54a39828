"""The allocator's peak."""

import pytest
import torch

from gate.measure.device.cpu import CpuDevice, compute_allocated_growth


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([8, 8, -8, 4], 16, id="two at once"),
        pytest.param([-8, 4], 0, id="only less than before"),
        pytest.param([8, -8, 8, -8], 8, id="one after the other"),
    ],
)
def test_growth_is_the_largest_sum(changes: list[int], expected: int) -> None:
    """Only memory that was alive at once counts."""
    assert expected == compute_allocated_growth(changes)


def test_growth_is_exact() -> None:
    """Three tensors of 1000 float32 are alive at once: both operands and the sum."""
    assert CpuDevice().measure_tensor_growth(lambda: torch.ones(1000) + torch.ones(1000)) == 12_000
