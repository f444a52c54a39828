"""The reference models themselves: built, run and captured, mostly without generating code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gate.measure.workload.build import build_workload, load_factory, make_function
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.project.selection import select_cases
from gate.records.cases import Case, Task
from gate.workload import Workload

pytestmark = pytest.mark.slow

# Published parameter counts: torchvision's table for ResNet-50 and ViT-B/16, the model cards of
# bert-base-uncased (masked-language-model head), Llama 3.2 1B and Stable Diffusion 1.5's unet.
# LSTM: per layer 2 x 1024 x 4096 weights and 4096 biases, and a head of 1024 x 1000 + 1000.
PARAMETERS = {
    "resnet50": 25_557_032,
    "vit": 86_567_656,
    "bert": 109_514_298,
    "llama": 1_235_814_400,
    "unet": 859_520_964,
    "lstm": 2 * (2 * 1024 * 4096 + 4096) + 1024 * 1000 + 1000,
    "stencil": 0,
    "elementwise": 0,
}
OUTPUTS: dict[str, list[tuple[int, ...]]] = {
    "resnet50": [(64, 1000)],
    "vit": [(64, 1000)],
    "bert": [(32, 128, 30_522)],
    "llama": [(1, 1024, 128_256)],
    "unet": [(2, 4, 64, 64)],
    "lstm": [(64, 1000)],
    "stencil": [(4096, 4096), (4096, 4096)],
    "elementwise": [(67_108_864,)],
}
SMOKE_LIMIT_BYTES = 64 * 1024 * 1024  # a smoke workload's parameters and inputs stay far below this


def list_cases(selection: str) -> list[Any]:
    """One case of each model among ``selection``, as pytest parameters."""
    first = {case.model: case for case in reversed(select_cases(load_cases(load_config(None)), selection))}
    return [pytest.param(case, id=name) for name, case in sorted(first.items())]


SMOKE = list_cases("tag:smoke")
FULL = list_cases("tag:pr")
CHEAPEST = [parameter for parameter in SMOKE if parameter.id in {"elementwise", "stencil"}]


@pytest.fixture(autouse=True)
def use_private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep compiled code out of the user's cache, and each test's from the next."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    yield
    torch.compiler.reset()


def cast_workload(case: Case, dtype: torch.dtype) -> tuple[Workload, tuple[Any, ...]]:
    """Build a workload with its module and inputs in ``dtype``."""
    workload = build_workload(case)
    if isinstance(workload.forward, torch.nn.Module):
        workload.forward.to(dtype).train(case.task == Task.TRAINING)
    floating = [tensor.is_floating_point() for tensor in workload.inputs]
    inputs = zip(workload.inputs, floating, strict=True)
    return workload, tuple(tensor.to(dtype) if real else tensor for tensor, real in inputs)


def run_forward(case: Case, dtype: torch.dtype) -> list[torch.Tensor]:
    """Run a case's forward eagerly in ``dtype`` and return its outputs as a list."""
    workload, inputs = cast_workload(case, dtype)
    with torch.no_grad():
        output = workload.forward(*inputs, **workload.kwargs)
    return list(output) if isinstance(output, tuple) else [output]


@pytest.mark.parametrize("case", FULL)
def test_full_size_is_the_published_model(case: Case) -> None:
    """The full configuration has the parameters and outputs that its name promises."""
    with torch.device("meta"), torch.no_grad():
        workload = load_factory(case.factory)(**case.arguments)
        assert isinstance(workload, Workload)
        output = workload.forward(*workload.inputs, **workload.kwargs)
    module = workload.forward if isinstance(workload.forward, torch.nn.Module) else torch.nn.Module()
    assert sum(parameter.numel() for parameter in module.parameters()) == PARAMETERS[case.model]
    outputs = output if isinstance(output, tuple) else (output,)
    assert [tuple(tensor.shape) for tensor in outputs] == OUTPUTS[case.model]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", SMOKE)
def test_outputs_are_finite_in_every_dtype(case: Case, dtype: torch.dtype) -> None:
    """A case can run in its own dtype, in float32 and in float64 for the reference."""
    outputs = run_forward(case, dtype)
    assert [tensor.dtype for tensor in outputs] == [dtype] * len(outputs)
    assert all(torch.isfinite(tensor).all() for tensor in outputs)


@pytest.mark.parametrize("case", SMOKE)
def test_float64_is_a_better_answer_than_float32(case: Case) -> None:
    """The float64 run agrees with float32 to float32's precision: it is a reference for it."""
    for single, double in zip(
        run_forward(case, torch.float32), run_forward(case, torch.float64), strict=True
    ):
        error = (single.double() - double).square().mean().sqrt() / double.square().mean().sqrt()
        assert 0 < error < 1e-5


@pytest.mark.parametrize("case", SMOKE)
def test_same_seed_gives_the_same_workload(case: Case) -> None:
    """Two processes measure the same weights and inputs, and eager gives the same bits twice."""
    first, second = run_forward(case, torch.float32), run_forward(case, torch.float32)
    assert all(torch.equal(left, right) for left, right in zip(first, second, strict=True))


@pytest.mark.parametrize("case", SMOKE)
def test_training_step_has_finite_gradients_and_moves_little(case: Case) -> None:
    """A step gives every parameter or input a finite gradient and hardly moves the weights."""
    workload = build_workload(case)
    module = workload.forward if isinstance(workload.forward, torch.nn.Module) else None
    tensors = list(module.train().parameters()) if module else [*workload.inputs]
    leaves = [leaf.requires_grad_() for leaf in tensors]
    before = [leaf.detach().clone() for leaf in leaves]
    make_function(workload.forward, workload.loss, Task.TRAINING)(
        *workload.inputs, **workload.kwargs
    ).backward()
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    assert len(gradients) == len(leaves)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    if workload.optimizer is not None:
        workload.optimizer(leaves).step()
        moves = [(new - old).abs().max().item() for new, old in zip(leaves, before, strict=True)]
        assert 0 < max(moves) < 1e-4


@pytest.mark.parametrize("case", SMOKE)
def test_smoke_size_is_small(case: Case) -> None:
    """Parameters and inputs of a smoke workload take a few MiB."""
    workload = build_workload(case)
    module = workload.forward if isinstance(workload.forward, torch.nn.Module) else torch.nn.Module()
    tensors = [*module.parameters(), *workload.inputs]
    assert sum(tensor.nbytes for tensor in tensors) < SMOKE_LIMIT_BYTES


@pytest.mark.parametrize("case", SMOKE)
def test_case_is_one_graph_without_recompiles(case: Case) -> None:
    """Dynamo captures the case's whole function at once, and a second call finds it fitting."""
    workload, inputs = cast_workload(case, torch.float32)
    function = make_function(workload.forward, workload.loss, case.task)
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    with torch.set_grad_enabled(case.task == Task.TRAINING):
        compiled(*inputs, **workload.kwargs)
        with torch.compiler.set_stance("fail_on_recompile"):
            compiled(*inputs, **workload.kwargs)


@pytest.mark.parametrize("case", CHEAPEST)
def test_compiled_code_computes_what_eager_does(case: Case) -> None:
    """The two cheapest cases go through the whole compiler and give eager's numbers."""
    workload, inputs = cast_workload(case, torch.float32)
    with torch.no_grad():
        expected = workload.forward(*inputs)
        actual = torch.compile(workload.forward, fullgraph=True)(*inputs)
    torch.testing.assert_close(actual, expected)
