"""What some rows of the field compute, compared with the same written by hand; eager, and tiny."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from gate.errors import UsageError
from gate.measure.device.cpu import CpuDevice
from gate.measure.training import compute_step_drift
from gate.measure.workload.build import make_subject
from gate.models.flex import build_flex
from gate.models.moe import build_moe
from gate.models.optimizer import LEARNING_RATE, STEPS_BEFORE, build_step
from gate.models.scaled import SCALE, build_scaled
from gate.models.user_kernel import build_user_kernel
from gate.records.cases import Case, Task


def call(forward: Any, *inputs: torch.Tensor) -> Any:
    with torch.no_grad():
        return forward(*inputs)


@pytest.mark.filterwarnings("ignore:flex_attention called without")  # eager, as the gate calls it, too
def test_attention_sees_its_window_only() -> None:
    """The last of 8 queries sees 3 keys: an earlier value changes nothing, one of the three does."""
    torch.manual_seed(0)
    workload = build_flex(batch=1, heads=2, length=8, width=16, window=3)
    query, key, value = workload.inputs
    before = call(workload.forward, query, key, value)[..., -1, :]

    outside, inside = value.clone(), value.clone()
    outside[..., :5, :] += 1.0
    inside[..., 5, :] += 1.0
    assert torch.equal(call(workload.forward, query, key, outside)[..., -1, :], before)
    assert not torch.allclose(call(workload.forward, query, key, inside)[..., -1, :], before)


def test_a_token_goes_through_its_own_experts() -> None:
    """Each token by itself, expert by expert: the weighted sum of its two, and the token."""
    torch.manual_seed(0)
    workload = build_moe(tokens=5, width=8, depth=1, experts=4, chosen=2, hidden=6)
    layer: Any = workload.forward[0]  # type: ignore[index] # a Sequential
    (tokens,) = workload.inputs
    result = call(workload.forward, tokens)

    with torch.no_grad():
        for token, output in zip(tokens, result, strict=True):
            normed = layer.norm(token)
            weights = functional.softmax(layer.router(normed), dim=-1)
            best = weights.argsort(descending=True)[:2]
            total = token.clone()
            for expert in best:
                left, right = (normed @ layer.up[expert]).chunk(2)
                share = weights[expert] / weights[best].sum()
                total += share * ((functional.silu(left) * right) @ layer.down[expert])
            torch.testing.assert_close(output, total)


def test_an_optimizer_step_is_adamw_and_keeps_its_inputs() -> None:
    """The next step by the formula of Loshchilov and Hutter; what went in is as it was."""
    torch.manual_seed(0)
    workload = build_step(tensors=2, rows=3, columns=4)
    before = [tensor.clone() for tensor in workload.inputs]
    parameter, gradient, mean, root = (tensor.double() for tensor in workload.inputs[:4])
    step = STEPS_BEFORE + 1
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * (1 + root**2) + 0.001 * gradient**2
    moved = (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    expected = parameter * (1 - 0.01 * LEARNING_RATE) - LEARNING_RATE * moved

    first, _ = call(workload.forward, *workload.inputs)
    torch.testing.assert_close(first.double(), expected, rtol=1e-6, atol=1e-6)
    assert all(map(torch.equal, before, workload.inputs))


def test_a_scaled_step_moves_as_an_unscaled_one() -> None:
    """Gradients are 1024 times as large before the step, and the optimizer sees them divided again."""
    torch.manual_seed(0)
    workload = build_scaled(batch=4, width=8, depth=1)
    module: Any = workload.forward
    leaves = list(module.parameters())
    before = [leaf.detach().clone() for leaf in leaves]
    plain = module(*workload.inputs).float().square().mean()
    unscaled = torch.autograd.grad(plain, leaves, retain_graph=True)

    assert workload.loss is not None
    assert workload.optimizer is not None
    torch.autograd.backward(workload.loss(module(*workload.inputs)))
    torch.testing.assert_close(leaves[0].grad, unscaled[0] * SCALE, rtol=1e-2, atol=1e-3)
    workload.optimizer(leaves).step()
    torch.testing.assert_close(leaves[0].grad, unscaled[0], rtol=1e-2, atol=1e-6)
    assert not torch.equal(leaves[0], before[0])


def test_ten_scaled_steps_have_a_reference() -> None:
    """The scaler works with float64 gradients: both sides leave the same parameters."""
    workload = build_scaled(batch=4, width=8, depth=1)
    case = Case(id="m/c", model="m", task=Task.TRAINING)
    subject = make_subject(workload, case, CpuDevice())

    assert compute_step_drift(subject, subject.function).log2_ratio == 0.0


def test_a_kernel_of_ones_own_needs_a_gpu() -> None:
    """On a processor the case is UNAVAILABLE, and not silently another one."""
    workload = build_user_kernel(elements=8)

    with pytest.raises(UsageError, match="UNAVAILABLE: a Triton kernel needs a GPU"):
        workload.forward(*workload.inputs)
