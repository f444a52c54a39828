"""From a case to a subject: what a factory may return, and how it is cast."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gate.errors import UsageError
from gate.measure.device.cpu import CpuDevice
from gate.measure.workload.build import (
    SEED,
    build_workload,
    compile_function,
    has_cudagraphs,
    load_factory,
    make_step,
    make_subject,
)
from gate.records.cases import Case, DType, Mode, Task
from gate.workload import Workload


@pytest.fixture
def factories(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return an importable module to put factories into."""
    module = ModuleType("made_up_models")
    module.__file__ = "made_up_models.py"
    monkeypatch.setitem(sys.modules, "made_up_models", module)
    return module


def make_case(**changes: Any) -> Case:
    """Return a case of the module's ``build``."""
    return Case(**{"id": "m/c", "model": "m", "factory": "made_up_models:build", **changes})


def test_missing_function_is_named(factories: ModuleType) -> None:
    """The error names the factory and where to fix it."""
    with pytest.raises(UsageError, match="'made_up_models:build' does not exist") as caught:
        load_factory("made_up_models:build")
    assert caught.value.fix == f"Name a function of {factories.__file__}."


@pytest.mark.parametrize("source", ["import gate.moe", "from gate.moe import layer", "from gate import moe"])
def test_a_package_of_the_same_name_is_no_slip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """The error explains that this package hides a project's own ``gate``."""
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "moe.py").write_text("layer = 1\n", encoding="utf-8")
    (tmp_path / "made_up_bench.py").write_text(source + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"moe.*`gate` is compile-gate's own package") as caught:
        load_factory("made_up_bench:build")
    assert caught.value.fix == (
        "If you have a package `gate`, rename it: beside compile-gate it cannot be imported."
    )


def test_another_import_that_fails_is_the_modules_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its traceback is what the user needs."""
    (tmp_path / "made_up_bench.py").write_text("import gateway_that_is_not_there\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="gateway_that_is_not_there"):
        load_factory("made_up_bench:build")


def test_wrong_workload_is_refused(factories: ModuleType) -> None:
    """What a factory returns is checked before anything is measured."""
    factories.build = lambda: 3  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="returned int, not a gate"):
        build_workload(make_case())


def test_training_needs_a_loss(factories: ModuleType) -> None:
    """Without a loss there is nothing to differentiate."""
    factories.build = lambda: Workload(forward=abs, inputs=())  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="needs a loss"):
        build_workload(make_case(task=Task.TRAINING))


def test_weights_and_inputs_are_the_same_every_time(factories: ModuleType) -> None:
    """The seed is set before the factory; another seed gives others."""
    factories.build = lambda size: Workload(forward=abs, inputs=(torch.randn(size),))  # type: ignore[attr-defined]
    case = make_case(arguments={"size": 4})
    first, again, other = build_workload(case), build_workload(case), build_workload(case, SEED + 1)
    assert torch.equal(first.inputs[0], again.inputs[0])
    assert not torch.equal(first.inputs[0], other.inputs[0])


def test_subject_is_cast_and_set_to_eval() -> None:
    """Inference runs in eval mode, parameters and floating-point inputs in the case's dtype."""
    model = torch.nn.Linear(4, 4)
    workload = Workload(
        forward=model, inputs=(torch.ones(2, 4),), kwargs={"ids": torch.ones(2, dtype=torch.int64)}
    )
    subject = make_subject(workload, make_case(dtype=DType.BFLOAT16), CpuDevice())
    assert model.weight.dtype == torch.bfloat16
    assert not model.training
    assert subject.workload.inputs[0].dtype == torch.bfloat16
    assert subject.workload.kwargs["ids"].dtype == torch.int64


@pytest.mark.parametrize("is_closed_over", [False, True])
@pytest.mark.parametrize("task", Task)
def test_a_part_that_the_factory_froze_stays_so(task: Task, *, is_closed_over: bool) -> None:
    """A BatchNorm that is not to adapt: the whole model's mode is as wanted, and its own the other."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).train(task is Task.TRAINING)
    model[1].train(task is not Task.TRAINING)
    scale = torch.ones(4)
    forward = (lambda value: model(value) * scale) if is_closed_over else model
    workload = Workload(forward=forward, inputs=(torch.ones(2, 4),), loss=torch.mean)
    make_subject(workload, make_case(task=task), CpuDevice())
    assert [part.training is (task is Task.TRAINING) for part in model.modules()] == [True, True, False]


def test_resident_bytes_count_each_tensor_once() -> None:
    """A 4 x 4 weight, a bias of 4 and an input of 2 x 4 float32 hold (16 + 4 + 8) * 4 bytes."""
    workload = Workload(forward=torch.nn.Linear(4, 4), inputs=(torch.ones(2, 4),))
    assert make_subject(workload, make_case(), CpuDevice()).compute_resident_bytes() == 112


def test_training_step_updates_and_drops_gradients() -> None:
    """A step of SGD with rate 1 on mean(w * 1 over one input) lowers w by 1."""
    model = torch.nn.Linear(1, 1, bias=False)
    workload = Workload(
        forward=model,
        inputs=(torch.ones(1, 1),),
        loss=torch.mean,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
    )
    subject = make_subject(workload, make_case(task=Task.TRAINING), CpuDevice())
    before = model.weight.item()
    make_step(subject, subject.function)()
    assert model.training
    assert model.weight.item() == pytest.approx(before - 1)
    assert model.weight.grad is None


def test_function_without_parameters_trains_its_inputs() -> None:
    """Gradients of a function's inputs are computed when there are no parameters."""
    workload = Workload(forward=torch.sin, inputs=(torch.ones(3),), loss=torch.sum)
    subject = make_subject(workload, make_case(task=Task.TRAINING), CpuDevice())
    assert [3] == [leaf.numel() for leaf in subject.list_leaves()]
    make_step(subject, subject.function)()


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param({}, {"mode": None}, id="default"),
        pytest.param({"mode": Mode.MAX_AUTOTUNE}, {"mode": "max-autotune"}, id="mode"),
        pytest.param({"fullgraph": True}, {"fullgraph": True}, id="fullgraph"),
        pytest.param({"backend": "aot_eager"}, {"backend": "aot_eager"}, id="backend"),
        pytest.param(
            {"options": {"epilogue_fusion": True}}, {"options": {"epilogue_fusion": True}}, id="options"
        ),
        pytest.param({"dynamic": False}, {"dynamic": False}, id="dynamic"),
    ],
)
def test_compile_gets_the_settings_of_the_case(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Any other setting is torch.compile's own default."""
    got: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda _, **given: got.append(given))
    compile_function(abs, make_case(**changes))
    usual = {"fullgraph": False, "dynamic": None, "backend": "inductor", "mode": None, "options": None}
    assert [{**usual, **asked}] == got


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"mode": Mode.REDUCE_OVERHEAD}, True),
        ({"mode": Mode.MAX_AUTOTUNE}, True),
        ({"mode": Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS}, False),
        ({"options": {"triton.cudagraphs": True}}, True),
        ({"options": {"triton.cudagraphs": False}}, False),
        ({"backend": "cudagraphs"}, True),
    ],
    ids=str,
)
def test_cuda_graphs_are_known(changes: dict[str, Any], expected: bool) -> None:
    """Their outputs are overwritten by the next call, so each call must be marked."""
    assert has_cudagraphs(make_case(**changes)) is expected


def test_a_lazy_module_that_was_never_called_is_named() -> None:
    """The error names the parameter and what to do in the factory."""
    workload = Workload(forward=torch.nn.Sequential(torch.nn.LazyLinear(4)), inputs=(torch.ones(2, 3),))
    with pytest.raises(UsageError, match=r"0\.weight has no size yet") as caught:
        make_subject(workload, make_case(), CpuDevice())
    assert caught.value.fix == "Call the module once in the factory: model(*inputs)."
