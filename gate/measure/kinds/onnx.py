"""A model exported to ONNX, and run by onnxruntime: exported by the first process, loaded by both."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gate.errors import UsageError
from gate.kinds import KIND_SPECS
from gate.measure.compiler import identity
from gate.measure.kinds.export import Export, Package, make_module
from gate.measure.workload.build import Function, Subject
from gate.records import CodeIdentity, Kind

_MOST_SIZES = 16  # whole numbers of a constant: as many axes, pads or sizes as an operator has
_PROVIDERS = ("CPUExecutionProvider",)  # others copy inputs and outputs, which would be part of a call


class Onnx(Export):
    """A compiled call is a session's of onnxruntime."""

    def make_package(self, subject: Subject) -> Package:
        """Make the file of a subject; nothing is exported or loaded before its first call.

        Raises:
            UsageError: A package is not installed, or the device is a GPU.
        """
        if subject.device.kind.is_gpu:
            raise UsageError(
                "UNAVAILABLE: onnxruntime is measured on a CPU only", "Leave the case out on a GPU."
            )
        for name in KIND_SPECS[Kind.ONNX].needs:
            _import(name)
        return _OnnxFile(subject)

    def identify(self, cache: Path) -> CodeIdentity:
        """Read the identity of the graph: operators, attributes and sizes, without the weights."""
        return identity.hash_sources(_describe_graph(graph) for graph in self._load_graphs())

    def count_kernels(self, cache: Path) -> int:
        """Count the operators of the graphs: onnxruntime fuses some of them as it loads."""
        return sum(len(graph.node) for graph in self._load_graphs())

    def _load_graphs(self) -> Iterator[Any]:
        onnx = importlib.import_module("onnx")
        for path in self.list_packages():
            yield onnx.load(str(path), load_external_data=False).graph


def _describe_graph(graph: Any) -> str:  # noqa: ANN401 - onnx's own
    """Describe what a graph computes, a line each: what it is given, and its operators in order."""
    given = (f"{one.name}: {_describe_type(one.type.tensor_type)}" for one in graph.input)
    stored = (f"{one.name}: {_describe_tensor(one)}" for one in graph.initializer)
    nodes = (
        f"{one.op_type}({', '.join(one.input)}; {', '.join(map(_describe_attribute, one.attribute))}):"
        f" {', '.join(one.output)}"
        for one in graph.node
    )
    return "\n".join((*given, *stored, *nodes))


def _describe_attribute(attribute: Any) -> str:  # noqa: ANN401 - onnx's own
    """Describe an attribute, a tensor by its size, a graph by what it computes."""
    onnx = importlib.import_module("onnx")
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        value = _describe_tensor(value)
    elif isinstance(value, onnx.GraphProto):
        value = _describe_graph(value)
    return f"{attribute.name}={value}"


def _describe_type(tensor: Any) -> str:  # noqa: ANN401 - onnx's own
    return f"{tensor.elem_type}{[one.dim_param or one.dim_value for one in tensor.shape.dim]}"


def _describe_tensor(tensor: Any) -> str:  # noqa: ANN401 - onnx's own
    """Describe a constant by its size; a few whole numbers are axes and sizes, and are listed."""
    onnx = importlib.import_module("onnx")
    text = f"{tensor.data_type}{list(tensor.dims)}"
    is_size = tensor.data_type in {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
    if is_size and math.prod(tensor.dims) <= _MOST_SIZES:
        text += f" {onnx.numpy_helper.to_array(tensor).tolist()}"
    return text


PROTOCOL = Onnx


class _OnnxFile(Package):
    suffix = ".onnx"

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        returned = subject.function(*subject.inputs, **subject.kwargs)
        self._structure = pytree.tree_flatten(returned)[1]

    def export(self, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - torch's
        """Trace the model and translate its operators."""
        return torch.onnx.export(
            make_module(self.subject), inputs, kwargs=dict(kwargs), dynamo=True, verbose=False
        )

    def build(self, exported: Any) -> None:  # noqa: ANN401 - torch's
        """Write the file, weights included."""
        exported.save(str(self.path), external_data=False)

    def open(self) -> Function:
        """Open a session, with the threads that torch has; its inputs are the tensors in their order."""
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = runtime.InferenceSession(str(self.path), options, providers=list(_PROVIDERS))
        names = [one.name for one in session.get_inputs()]

        def run(*inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's
            given = [one for one in pytree.tree_leaves((inputs, kwargs)) if isinstance(one, torch.Tensor)]
            feeds = {name: one.detach().numpy() for name, one in zip(names, given, strict=True)}
            found = [torch.from_numpy(one) for one in session.run(None, feeds)]
            return pytree.tree_unflatten(found, self._structure)

        return run


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        fix = f"Install it: pip install {name}; or leave the case out."
        raise UsageError(f"UNAVAILABLE: the package {name} is not installed", fix) from None
