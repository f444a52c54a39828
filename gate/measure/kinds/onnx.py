"""A model exported to ONNX, and run by onnxruntime: exported by the first process, loaded by both."""

from __future__ import annotations

import importlib
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
        """Read the identity of the graph: its operators and what flows between them, without the weights."""
        del cache
        return identity.hash_sources(self._describe_graphs())

    def count_kernels(self, cache: Path) -> int:
        """Count the operators of the graphs: onnxruntime fuses some of them as it loads."""
        del cache
        return sum(text.count("\n") + 1 for text in self._describe_graphs())

    def _describe_graphs(self) -> Iterator[str]:
        onnx = importlib.import_module("onnx")
        for path in self.list_packages():
            nodes = onnx.load(str(path), load_external_data=False).graph.node
            yield "\n".join(
                f"{one.op_type}({', '.join(one.input)}): {', '.join(one.output)}" for one in nodes
            )


PROTOCOL = Onnx


class _OnnxFile(Package):
    """A function that runs its ONNX file."""

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
