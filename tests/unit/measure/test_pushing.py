"""What operators return in float64 is off by rounding."""

import torch

from gate.measure.numerics.perturbing import Pushing

STEP = 2.0**-23


def push_sums(count: int) -> torch.Tensor:
    """Sum 1000 times 1.1 in parts with rounding; return how far each sum is off, in its steps."""
    parts = torch.full((count,), 1.1 / count, dtype=torch.float64)
    with Pushing(STEP, torch.Generator().manual_seed(0)):
        sums = [parts.sum() for _ in range(1000)]
    return (torch.stack(sums) - 1.1).abs() / 1.1 / STEP


def test_a_sum_is_off_by_the_root_of_its_terms() -> None:
    """Of 1 element by a step at most, of 1024 by 32, and by more than 30 in some of a thousand."""
    assert 0.9 < float(push_sums(1).max()) <= 1.0
    assert 30.0 < float(push_sums(1024).max()) <= 32.0


def test_what_is_written_or_viewed_or_whole_stays() -> None:
    """Only what an operator computes anew is rounded, and no whole number: eight bits are cut off of it."""
    value = torch.ones(64, dtype=torch.float64)
    with Pushing(STEP, torch.Generator().manual_seed(0)):
        value.mul_(3)
        view, index = value.view(8, 8), value.argmax()
        level = (value * 42.3).round().to(torch.uint8)  # of 126.9
    assert torch.equal(view, torch.full((8, 8), 3.0, dtype=torch.float64))
    assert (int(index), int(level.min())) == (0, 127)


def test_a_batchs_mean_is_off_by_the_same_in_all_its_elements() -> None:
    """The gradient of BatchNorm subtracts means of what is almost 1: what is left is off by a common part.

    Were each of 2048 elements off by itself, the mean of that would be 45 times less than its RMS.
    """
    norm = torch.nn.BatchNorm2d(4).double()
    torch.manual_seed(0)
    value = torch.randn(8, 4, 16, 16, dtype=torch.float64, requires_grad=True)
    given = 1 + 0.001 * torch.randn_like(value)
    (exact,) = torch.autograd.grad(norm(value), value, given)
    with Pushing(STEP, torch.Generator().manual_seed(0)):
        (pushed,) = torch.autograd.grad(norm(value), value, given)
    off = pushed - exact
    assert (off.mean((0, 2, 3)).abs() > 0.3 * off.square().mean((0, 2, 3)).sqrt()).any()
