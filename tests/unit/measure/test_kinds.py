"""Kinds of cases and their calls, with a backend that compiles nothing."""

import importlib
import os
import sys
import time
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch

from gate.decide.constants import DRIFT_LIMIT_FLOAT32
from gate.errors import UsageError
from gate.kinds import KIND_SPECS, SPECIAL, Part, has_metric
from gate.measure.context import open_case
from gate.measure.device.cpu import CpuDevice
from gate.measure.graph import GraphReport, observe_graphs, start_observation
from gate.measure.kinds.exported import _describe_graph
from gate.measure.kinds.protocol import Protocol, make_protocol
from gate.measure.kinds.variants import Shapes, choose_hottest, make_loader
from gate.measure.numerics import reference
from gate.measure.numerics.drift import compute_drift
from gate.measure.numerics.state import copy_state, list_written
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.workload.build import Subject
from gate.records.cases import Case, Kind, Metric, Task
from gate.records.run import CacheUse, CodeIdentity
from gate.workload import Workload

from .contexts import make_context

ROWS = [4, 6, 8, 10]


class Layer(torch.nn.Module):
    """A linear layer of three numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.tanh(self.inner(value))
        return result


def build(rows: int = 4) -> Workload:
    return Workload(
        forward=Layer(), inputs=(torch.randn(rows, 3),), loss=lambda output: output.square().mean()
    )


@pytest.fixture(autouse=True)
def factories(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the factory importable, and let torch forget what a test compiled."""
    module = ModuleType("made_up_kinds")
    module.build = build  # type: ignore[attr-defined] # a made-up module
    monkeypatch.setitem(sys.modules, "made_up_kinds", module)
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def make_case(kind: Kind, **changes: Any) -> Case:
    """Return a case of a kind, compiled by a backend that runs the captured graph as it is."""
    return Case(
        id="m/c", model="m", factory="made_up_kinds:build", kind=kind, **{"backend": "eager", **changes}
    )


def prepare(case: Case) -> tuple[Protocol, Subject]:
    protocol = make_protocol(case)
    return protocol, protocol.make_subject(protocol.build(), CpuDevice())


def make_shapes(dims: str, **changes: Any) -> Case:
    """Return a case of four shapes."""
    return make_case(Kind.SHAPES, settings={"vary": {"rows": ROWS}, "dims": dims}, **changes)


@pytest.mark.parametrize(
    ("dims", "recompiles"), [("automatic", 1), ("static", 3), ("dynamic", 0), ("marked", 0)]
)
def test_recompiles_over_the_list(dims: str, recompiles: int) -> None:
    """Automatic dims recompile once, static ones for each further shape, the others never; exactly."""
    with torch.no_grad():
        protocol, subject = prepare(make_shapes(dims))
        compiled = protocol.compile(subject)
        start_observation()
        for _ in range(2):
            protocol.make_compiled_step(subject, compiled)()
        report = observe_graphs("")
    assert report.counts[Metric.RECOMPILES] == recompiles
    assert report.counts[Metric.UNIQUE_GRAPHS] == 1 + recompiles


def test_a_size_that_code_depends_on_is_one_more_recompile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that asks for one of the sizes costs recompiles, which the count over the list shows."""
    healthy = Layer.forward

    def forward(self: Layer, value: torch.Tensor) -> torch.Tensor:
        return healthy(self, value) + (1 if value.shape[0] == ROWS[-1] else 0)

    monkeypatch.setattr(Layer, "forward", forward)
    with torch.no_grad():
        protocol, subject = prepare(make_shapes("automatic"))
        compiled = protocol.compile(subject)
        start_observation()
        protocol.make_compiled_step(subject, compiled)()
        assert observe_graphs("").counts[Metric.RECOMPILES] == 2


def test_shapes_share_one_model_and_each_has_its_time() -> None:
    """One call gives the outputs of all shapes, of one model, and each shape is timed under its name."""
    with torch.no_grad():
        protocol, subject = prepare(make_shapes("dynamic"))
        outputs = subject.function(*subject.workload.inputs)
        seen = protocol.observe(subject, subject.function, lambda: None)
    assert [tuple(output.shape) for output in outputs] == [(rows, 3) for rows in ROWS]
    assert torch.equal(outputs[0], subject.workload.forward(*subject.workload.inputs[0][0]))
    assert list(seen.parts_s) == ["rows=4", "rows=6", "rows=8", "rows=10"]
    assert all(time_s > 0 for time_s in seen.parts_s.values())


def test_a_training_step_over_shapes_has_gradients_of_all() -> None:
    """The loss is the sum of the shapes' losses, so the gradient is the sum of theirs."""
    _, subject = prepare(make_shapes("static", task=Task.TRAINING))
    gradients = []
    for shapes in (subject.workload.inputs, *((shape,) for shape in subject.workload.inputs)):
        subject.function(*shapes).backward()
        gradients.append([leaf.grad.clone() for leaf in subject.list_leaves() if leaf.grad is not None])
        for leaf in subject.list_leaves():
            leaf.grad = None
    whole, *parts = gradients
    for index, gradient in enumerate(whole):
        torch.testing.assert_close(gradient, sum(part[index] for part in parts))


def test_other_seeds_are_drawn_for_all_shapes() -> None:
    """Drift under a further seed gets other weights, and other inputs of each shape."""
    _, subject = prepare(make_shapes("static"))
    before = [tensor.clone() for tensor in subject.list_state()]
    reference.write_values(subject.list_state(), reference.draw_state(subject, 7) or [])
    assert not any(
        torch.equal(first, second) for first, second in zip(before, subject.list_state(), strict=True)
    )


def test_float64_reference_of_shapes_is_that_of_each() -> None:
    """The reference evaluates every shape in float64."""
    with torch.no_grad():
        _, subject = prepare(make_shapes("static"))
        exact = reference.evaluate_reference(subject)
    assert list(exact.outputs) == [f"output[{index}]" for index in range(4)]
    assert {value.dtype for value in exact.outputs.values()} == {torch.float64}


def stand_in_for_inductor(monkeypatch: pytest.MonkeyPatch, spoil: float) -> None:
    """Let a package hold the exported program itself, whose outputs are off by ``spoil``."""
    exported: dict[str, Any] = {}

    def compile_package(program: Any, package_path: str) -> None:
        exported[package_path] = program.module()
        with zipfile.ZipFile(package_path, "w") as package:
            package.writestr("model/kernel.cpp", 'extern "C" void cpp_fused_tanh_0(const float* in) {}\n')

    def load_package(path: str) -> Any:
        return lambda *inputs: exported[path](*inputs) + spoil

    monkeypatch.setattr("torch._inductor.aoti_compile_and_package", compile_package)
    monkeypatch.setattr("torch._inductor.aoti_load_package", load_package)


def test_a_package_is_built_once_and_then_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process builds it, the second finds it; its size, code and kernels are known."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    stand_in_for_inductor(monkeypatch, 0.0)
    protocols = []
    with torch.no_grad():
        for _ in range(2):
            protocol, subject = prepare(make_case(Kind.EXPORT))
            compiled = protocol.compile(subject)
            inputs = subject.workload.inputs
            torch.testing.assert_close(compiled(*inputs), subject.function(*inputs))
            protocols.append(protocol)
    report = GraphReport(counts={}, caches=observe_graphs("").caches)
    assert [protocol.count_misses(report) for protocol in protocols] == [1, 0]
    size = (tmp_path / "package-float32.pt2").stat().st_size
    seen = [protocol.observe(subject, compiled, lambda: None) for protocol in protocols]
    assert [trial.samples for trial in seen] == [{Metric.PACKAGE_BYTES: (size,)}] * 2
    assert [list(trial.parts_s) for trial in seen] == [["export", "build", "load"], ["load"]]
    assert protocols[0].count_kernels() == 1
    identity = protocols[0].identify()
    assert identity == protocols[1].identify() != CodeIdentity(digest="")


@pytest.mark.parametrize(("spoil", "drifts"), [(0.0, False), (1e-4, True)])
def test_a_package_that_drifts_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: float, drifts: bool
) -> None:
    """Outputs of the package that are off by a ten-thousandth are far beyond the limit of drift."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    stand_in_for_inductor(monkeypatch, spoil)
    with torch.no_grad():
        protocol, subject = prepare(make_case(Kind.EXPORT))
        exact = reference.evaluate_reference(subject)
        eager = reference.evaluate(subject, subject.function)
        compiled = reference.evaluate(subject, protocol.compile(subject))
    drift = compute_drift(exact.outputs, eager.outputs, compiled.outputs, pooled=False)
    assert drift.log2_ratio is not None
    assert (drift.log2_ratio > DRIFT_LIMIT_FLOAT32) is drifts


def test_a_graph_of_onnx_is_exported_once_and_computes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process exports, the second loads; outputs are eager's, and operators the identity."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    protocols = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own libraries
        for _ in range(2):
            protocol, subject = prepare(make_case(Kind.ONNX))
            compiled = protocol.compile(subject)
            inputs = subject.workload.inputs
            torch.testing.assert_close(compiled(*inputs), subject.function(*inputs))
            protocols.append(protocol)
    report = GraphReport(counts={}, caches=observe_graphs("").caches)
    assert [protocol.count_misses(report) for protocol in protocols] == [1, 0]
    assert protocols[0].count_kernels() == 2  # a product with its bias, and the hyperbolic tangent
    assert protocols[0].identify() == protocols[1].identify() != CodeIdentity(digest="")


def test_what_a_graph_of_onnx_does_not_return_is_eagers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that returns no cache returns None in its place, of which a graph has none."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    class Pair(Layer):
        def forward(self, value: torch.Tensor) -> Any:
            return None, super().forward(value)

    protocol = make_protocol(make_case(Kind.ONNX))
    subject = protocol.make_subject(Workload(forward=Pair(), inputs=(torch.ones(4, 3),)), CpuDevice())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own libraries
        cache, returned = protocol.compile(subject)(*subject.workload.inputs)
        torch.testing.assert_close(returned, subject.function(*subject.workload.inputs)[1])
    assert cache is None


def test_without_a_library_a_case_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not installed is named with the command that installs it."""
    for name in KIND_SPECS[Kind.ONNX].needs:
        monkeypatch.setitem(sys.modules, name, None)
    protocol, subject = prepare(make_case(Kind.ONNX))
    with pytest.raises(UsageError, match="UNAVAILABLE: the package onnx is not installed") as raised:
        protocol.compile(subject)
    assert "pip install onnx;" in str(raised.value)


def test_what_onnx_needs_is_imported_before_a_call_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing its packages takes seconds, which are no part of compiling."""
    protocol, subject = prepare(make_case(Kind.ONNX))
    imported: list[str] = []
    monkeypatch.setattr(importlib, "import_module", imported.append)
    protocol.compile(subject)
    assert imported == ["onnx", "onnxscript", "onnxruntime"]


class StallingBatches(tuple[Any, ...]):
    """Batches that take a given time to be read."""

    __slots__ = ()
    stalls_s: ClassVar[list[float]] = [0.0]

    def __getitem__(self, index: Any) -> Any:
        time.sleep(self.stalls_s[-1])
        return super().__getitem__(index)


def test_a_loader_that_stalls_is_seen() -> None:
    """A dataset that sleeps 0.1 s an item makes the epoch's share of waiting jump."""
    case = make_case(Kind.DATA, task=Task.TRAINING, settings={"batches": 3, "workers": 0})
    protocol, subject = prepare(case)
    loaded = replace(subject.workload, inputs=StallingBatches(subject.workload.inputs))
    subject = replace(subject, workload=loaded)

    def observe(stall_s: float) -> float:
        StallingBatches.stalls_s.append(stall_s)
        seen = protocol.observe(subject, subject.function, protocol.make_eager_step(subject))
        return seen.samples[Metric.DATA_RATIO][0]

    # Another program may slow one epoch down, and not the same one of each three.
    assert max(observe(0.1) for _ in range(3)) > 3 * min(observe(0.0) for _ in range(3))
    assert len(subject.workload.inputs) == 3
    assert not torch.equal(subject.workload.inputs[0][0][0], subject.workload.inputs[1][0][0])


def test_a_loader_with_processes_gives_the_same_batches() -> None:
    """Worker processes load what is in memory, in the same order."""
    _, subject = prepare(make_case(Kind.DATA, settings={"batches": 3, "workers": 1}))
    loaded = list(make_loader(subject, 1))
    assert len(loaded) == 3
    for (inputs, _), (expected, _) in zip(loaded, subject.workload.inputs, strict=True):
        assert torch.equal(inputs[0], expected[0])


def test_a_spike_of_one_request_is_in_the_percentiles() -> None:
    """One slow request in ten delays the next: p99 is its time, the median is not, and waiting counts."""
    calls = iter(range(100))

    def step() -> None:
        time.sleep(0.15 if next(calls) == 5 else 0.0)

    protocol, subject = prepare(make_case(Kind.SERVING, settings={"interval_s": 0.1, "requests": 11}))
    samples = protocol.observe(subject, subject.function, step).samples
    assert samples[Metric.REQUEST_P99][0] >= 0.15
    assert samples[Metric.REQUEST_P50][0] < 0.05
    assert len(samples[Metric.FIRST_REQUEST]) == 1


def test_a_cache_without_hits_is_a_miss() -> None:
    """A second process that found nothing counts at least one miss, also if torch reports none."""
    protocol = make_protocol(make_case(Kind.CACHE))
    reports = [GraphReport(counts={}, caches={"fx_graph": cache}) for cache in (CacheUse(), CacheUse(hits=1))]
    assert [protocol.count_misses(report) for report in reports] == [1, 0]


def test_what_saves_no_artifacts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process without a file to load is an error, and does not compile."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    protocol = make_protocol(make_case(Kind.CACHE))
    with pytest.raises(UsageError, match="saved no cache artifacts"):
        protocol.enter(is_cold=False)


def test_each_second_process_takes_an_empty_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not find an earlier one's code, nor Triton's files of the first."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", lambda content: content)
    (tmp_path / "artifacts.bin").write_bytes(b"saved")
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "kernel.so").write_text("of an earlier process")
    protocol = make_protocol(make_case(Kind.CACHE))
    protocol.enter(is_cold=False)
    places = [Path(os.environ[name]) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")]
    assert places == [tmp_path / "moved", tmp_path / "moved" / "triton"]
    assert not list((tmp_path / "moved").rglob("*"))


@pytest.mark.parametrize("other", [{"kernel_shape": [5, 5]}, {"dilations": [2, 2]}])
def test_an_attribute_of_an_operator_is_part_of_what_onnx_computes(other: dict[str, list[int]]) -> None:
    """A larger window between the same inputs and outputs is another graph."""
    onnx = importlib.import_module("onnx")

    def describe(**attributes: list[int]) -> str:
        node = onnx.helper.make_node("MaxPool", ["x"], ["y"], **{"kernel_shape": [3, 3], **attributes})
        sizes = onnx.helper.make_tensor("axes", onnx.TensorProto.INT64, [2], [2, 3])
        value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, "rows", 8])
        return _describe_graph(onnx.helper.make_graph([node], "pool", [value], [], [sizes]))

    assert describe() == "x: 1[1, 3, 'rows', 8]\naxes: 7[2] [2, 3]\nMaxPool(x; kernel_shape=[3, 3]): y"
    assert describe(**other) != describe()


def test_every_kind_has_a_row_and_a_class() -> None:
    """The table has a row for each kind that there is a class of, and its own metrics are no usual ones."""
    assert set(KIND_SPECS) == set(Kind)
    for kind, spec in KIND_SPECS.items():
        case = make_case(kind, settings={"vary": {"rows": ROWS}} if kind is Kind.SHAPES else {})
        assert isinstance(make_protocol(case), Protocol)
        assert spec.kind is kind
        assert not spec.lacks & SPECIAL
        assert all(has_metric(case, metric) for metric in spec.adds)
    assert isinstance(make_protocol(make_shapes("static")), Shapes)


class Blocks(torch.nn.Module):
    """Three blocks that are alike, and a wider layer after them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer() for _ in range(3)])
        self.head = torch.nn.Linear(3, 64)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            value = layer(value)
        result: torch.Tensor = self.head(value)
        return result


# Of each block five operations are captured at most; what is alike is captured once, and counted so.
@pytest.mark.parametrize(("part", "graphs"), [("blocks", 1), ("regions", 1), ("hottest", 1)])
def test_a_part_is_compiled_and_computes_the_same(
    monkeypatch: pytest.MonkeyPatch, part: str, graphs: int
) -> None:
    """Each way gives eager's outputs, with other weights too, and leaves eager's module alone."""

    def build_stack() -> Workload:
        return Workload(forward=Blocks(), inputs=(torch.randn(4, 3),))

    monkeypatch.setattr(sys.modules["made_up_kinds"], "build", build_stack)
    with torch.no_grad():
        protocol, subject = prepare(make_case(Kind.SCOPE, settings={"part": part}))
        compiled = protocol.compile(subject)
        start_observation()
        for is_redrawn in (False, True):
            if is_redrawn:
                drawn = reference.draw_state(subject, 7)
                reference.write_values(subject.list_state(), drawn or [])
            inputs = subject.workload.inputs
            torch.testing.assert_close(compiled(*inputs), subject.function(*inputs))
        report = observe_graphs("")
    assert report.counts[Metric.UNIQUE_GRAPHS] == graphs
    assert report.counts[Metric.GRAPH_BREAKS] == 0
    assert choose_hottest(subject) == "head"


class Averaging(torch.nn.Linear):
    """Replaces a buffer, and writes in place what nobody has registered."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.register_buffer("mean", torch.zeros(3))
        self.sum = torch.zeros(3)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        value = super().forward(value) + self.mean + self.sum
        self.mean = 0.9 * self.mean + value.detach().mean(0)
        self.sum.add_(value.detach().mean(0))
        return value


@pytest.mark.parametrize("part", Part)
def test_state_of_a_compiled_part_is_that_of_eagers(part: Part) -> None:
    """What a compiled call leaves is put back, so that the next one is asked the same."""
    model = Blocks()
    model.layers = torch.nn.ModuleList([Averaging(), Averaging()])
    case = replace(make_case(Kind.SCOPE, settings={"part": part}), factory="")
    context = make_context(case=case)
    with open_case(context, Workload(forward=model, inputs=(torch.randn(64, 3),))) as prepared:
        for _ in range(2):
            state = copy_state(prepared.subject)
            prepared.compiled_step()
            assert len(list_written(prepared.subject, state)) == 4
            state.restore()
        measure_drift(context, CompiledSubject(subject=prepared.subject, compiled=prepared.compiled))
    assert context.logbook.result.samples[Metric.DRIFT] == (0.0,)


def test_a_model_without_blocks_is_refused() -> None:
    """There is nothing that repeats in a single layer."""
    protocol, subject = prepare(make_case(Kind.SCOPE))
    with pytest.raises(UsageError, match="the model has no list of blocks"):
        protocol.compile(subject)
