"""A model exported into a file: built by the first process, loaded by the second.

It is a package of torch.export and AOTInductor, or a graph of ONNX that onnxruntime runs.
"""

import importlib
import math
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gate.errors import UsageError
from gate.kinds import KIND_SPECS
from gate.measure import identity
from gate.measure.graph import GraphReport, get_cache_directory
from gate.measure.kinds.protocol import Protocol, Seen
from gate.measure.rounds import Step
from gate.measure.workload.build import TORCH_DTYPES, Function, Subject
from gate.records.cases import Case, Kind, Metric
from gate.records.run import CodeIdentity

# The definition of a generated kernel, in the C++ of a package.
_KERNEL = re.compile(r"^\s*(?:extern \"C\"\s*)?(?:static )?void\s+((?:cpp|triton)_\w+)\(", re.MULTILINE)
_SOURCE = (".cpp", ".cu")
_MOST_SIZES = 16  # whole numbers of a constant: as many axes, pads or sizes as an operator has
_PROVIDERS = ("CPUExecutionProvider",)  # others copy inputs and outputs, which would be part of a call


class Package:
    suffix = ".pt2"

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        dtype = next(
            (tensor.dtype for tensor in subject.list_state() if tensor.is_floating_point()),
            TORCH_DTYPES[subject.case.dtype],
        )
        self.path = get_cache_directory() / f"package-{str(dtype).removeprefix('torch.')}{self.suffix}"
        self.is_built = False
        self.parts_s: dict[str, float] = {}
        self._call: Function | None = None

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
        if self._call is None:
            self._load(inputs, kwargs)
        return self._call(*inputs, **kwargs)  # type: ignore[misc] # loaded above

    def unload(self) -> None:
        """Load the file anew at the next call: what calls have written is in what was loaded."""
        self._call = None

    def _load(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not self.path.is_file():
            self.is_built = True
            exported = self._time("export", lambda: self.export(inputs, kwargs))
            self._time("build", lambda: self.build(exported))
        self._call = self._time("load", self.open)

    def _time(self, part: str, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - what each part makes
        begun = time.perf_counter()
        made = run()
        self.parts_s[part] = time.perf_counter() - begun
        return made

    def export(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what :meth:`build` takes
        return torch.export.export(make_module(self.subject), inputs, dict(kwargs))

    def build(self, exported: Any) -> None:  # noqa: ANN401 - what :meth:`export` made
        inductor = importlib.import_module("torch._inductor")
        inductor.aoti_compile_and_package(exported, package_path=str(self.path))

    def open(self) -> Function:
        loaded: Function = importlib.import_module("torch._inductor").aoti_load_package(str(self.path))
        return loaded


class Export(Protocol):
    """The compiled call is the package's; weights are in it, so other ones need another package."""

    can_redraw = False
    shares_state = False
    package = Package

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._packages: list[Package] = []

    def compile(self, subject: Subject) -> Function:
        package = self.package(subject)
        self._packages.append(package)
        return package

    def renew(self, compiled: Function) -> None:
        if isinstance(compiled, Package):
            compiled.unload()

    def count_misses(self, report: GraphReport) -> int:
        return sum(package.is_built for package in self._packages)

    def identify(self) -> CodeIdentity:
        return identity.hash_sources(_read_sources())

    def count_kernels(self) -> int:
        return sum(len(set(_KERNEL.findall(text))) for text in _read_sources())

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        first = self._packages[0]
        return Seen(samples={Metric.PACKAGE_BYTES: (first.path.stat().st_size,)}, parts_s=first.parts_s)


class _Wrapped(torch.nn.Module):
    def __init__(self, function: Function, held: torch.nn.Module | None) -> None:
        super().__init__()
        self._function, self._held = function, held

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any function's
        return self._function(*inputs, **kwargs)


def make_module(subject: Subject) -> torch.nn.Module:
    forward = subject.workload.forward
    return forward if isinstance(forward, torch.nn.Module) else _Wrapped(forward, subject.module)


def _read_sources() -> Iterator[str]:
    for path in sorted(get_cache_directory().glob("package-*.pt2")):
        with zipfile.ZipFile(path) as package:
            for name in sorted(package.namelist()):
                if name.endswith(_SOURCE):
                    yield package.read(name).decode(errors="replace")


class OnnxFile(Package):
    suffix = ".onnx"

    def __init__(self, subject: Subject) -> None:
        """Raise ``UsageError`` where a package is not installed, or the device is a GPU."""
        if subject.device.kind.is_gpu:
            raise UsageError(
                "UNAVAILABLE: onnxruntime is measured on a CPU only", "Leave the case out on a GPU."
            )
        for name in KIND_SPECS[Kind.ONNX].needs:
            try:
                importlib.import_module(name)  # here, since the first call is timed
            except ModuleNotFoundError:
                fix = f"Install it: pip install {name}; or leave the case out."
                raise UsageError(f"UNAVAILABLE: the package {name} is not installed", fix) from None
        super().__init__(subject)
        returned = subject.function(*subject.workload.inputs, **subject.workload.kwargs)
        self._leaves, self._structure = pytree.tree_flatten(returned)
        self._tensors = [index for index, leaf in enumerate(self._leaves) if isinstance(leaf, torch.Tensor)]

    def export(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - torch's
        return torch.onnx.export(
            make_module(self.subject), inputs, kwargs=dict(kwargs), dynamo=True, verbose=False
        )

    def build(self, exported: Any) -> None:  # noqa: ANN401 - torch's
        exported.save(str(self.path), external_data=False)

    def open(self) -> Function:
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = runtime.InferenceSession(str(self.path), options, providers=list(_PROVIDERS))
        names = [node.name for node in session.get_inputs()]

        def run(*inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
            given = [leaf for leaf in pytree.tree_leaves((inputs, kwargs)) if isinstance(leaf, torch.Tensor)]
            feeds = {name: tensor.detach().numpy() for name, tensor in zip(names, given, strict=True)}
            leaves = [*self._leaves]  # a graph returns tensors alone: what else eager returned stays
            for index, output in zip(self._tensors, session.run(None, feeds), strict=True):
                leaves[index] = torch.from_numpy(output)
            return pytree.tree_unflatten(leaves, self._structure)

        return run


class Onnx(Export):
    package = OnnxFile

    def identify(self) -> CodeIdentity:
        return identity.hash_sources(_describe_graph(graph) for graph in self._load_graphs())

    def count_kernels(self) -> int:
        return sum(len(graph.node) for graph in self._load_graphs())

    def _load_graphs(self) -> Iterator[Any]:
        onnx = importlib.import_module("onnx")
        for path in (package.path for package in self._packages if package.path.is_file()):
            yield onnx.load(str(path), load_external_data=False).graph


def _describe_graph(graph: Any) -> str:  # noqa: ANN401 - onnx's own
    given = (f"{value.name}: {_describe_type(value.type.tensor_type)}" for value in graph.input)
    stored = (f"{tensor.name}: {_describe_tensor(tensor)}" for tensor in graph.initializer)
    nodes = (
        f"{node.op_type}({', '.join(node.input)}; {', '.join(map(_describe_attribute, node.attribute))}):"
        f" {', '.join(node.output)}"
        for node in graph.node
    )
    return "\n".join((*given, *stored, *nodes))


def _describe_attribute(attribute: Any) -> str:  # noqa: ANN401 - onnx's own
    onnx = importlib.import_module("onnx")
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        value = _describe_tensor(value)
    elif isinstance(value, onnx.GraphProto):
        value = _describe_graph(value)
    return f"{attribute.name}={value}"


def _describe_type(tensor: Any) -> str:  # noqa: ANN401 - onnx's own
    return f"{tensor.elem_type}{[dim.dim_param or dim.dim_value for dim in tensor.shape.dim]}"


def _describe_tensor(tensor: Any) -> str:  # noqa: ANN401 - onnx's own
    onnx = importlib.import_module("onnx")
    text = f"{tensor.data_type}{list(tensor.dims)}"
    is_size = tensor.data_type in {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
    if is_size and math.prod(tensor.dims) <= _MOST_SIZES:
        text += f" {onnx.numpy_helper.to_array(tensor).tolist()}"
    return text
