"""The device of a target: tensors are fake, so nothing can run.

What is compiled is kept by Inductor and Triton as ever, and loaded onto no device.
"""

import copy
import importlib
from types import SimpleNamespace
from typing import Any

import torch

from gate.devices import BOARDS, CPU, CUDA, NO_TRITON, TARGET, read_architecture
from gate.errors import MachineError
from gate.measure.device.cpu import CpuDevice
from gate.measure.device.device import Identity
from gate.measure.device.imitation import WARP, always

_LIBRARY: list[Any] = []  # torch forgets what is registered when its library is collected


class TargetDevice(CpuDevice):
    kind = TARGET

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target
        self.name = torch.device(CUDA.name, 0)
        architecture = read_architecture(target)
        self.board, self.capability = BOARDS[architecture], divmod(architecture, 10)
        _target_triton(architecture)
        _compile_only()
        self.mode: Any = _make_fake_mode()

    def identify(self) -> Identity:
        traits = {
            "capability": f"{self.capability[0]}.{self.capability[1]}",
            "board": self.board.name,
            "multiprocessors": str(self.board.multiprocessors),
            "memory": f"{self.board.memory_gib} GiB",
        }
        return Identity(model=self.target, traits=traits)

    def place(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        kept_dtype = dtype if tensor.is_floating_point() else tensor.dtype
        with self.mode:
            fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=kept_dtype, device=self.name)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, tensor.requires_grad)
        return fake


def _target_triton(architecture: int) -> None:
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        raise MachineError(*NO_TRITON) from None
    target = importlib.import_module("triton.backends.compiler").GPUTarget(CUDA.name, architecture, WARP)
    driver = SimpleNamespace(
        get_current_target=always(target),
        get_current_device=always(0),
        get_active_torch_device=always(torch.device(CUDA.name, 0)),
        get_current_stream=always(0),
        get_device_capability=always(divmod(architecture, 10)),
    )
    triton.runtime.driver.set_active(driver)
    # Inductor sets the real driver anew before each compile: there is none.
    _import("torch._inductor.runtime.triton_helpers").set_driver_to_gpu = always(None)


def _import(module: str) -> Any:  # noqa: ANN401 - private modules of torch
    return importlib.import_module(module)


def _compile_only() -> None:
    """Let Inductor compile a graph, its backward and its kernels, and leave the graph's call to eager."""
    compile_fx = _import("torch._inductor.compile_fx")
    inductor = compile_fx.compile_fx

    def compile_graph(module: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Inductor's
        kept = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
        inductor(module, inputs, *args, **kwargs)
        return kept.forward

    compile_fx.compile_fx = compile_graph
    heuristics = _import("torch._inductor.runtime.triton_heuristics")
    heuristics.CachingAutotuner._make_launchers = always(None)  # noqa: SLF001 - it loads binaries onto the device
    heuristics.CachingAutotuner._dynamic_scale_rblock = always(None)  # noqa: SLF001 - it asks what was loaded
    # Whether matrices are padded is decided by timing both ways.
    _import("torch._inductor.config").shape_padding = False
    # A backward graph is compiled with its forward one, and nothing is found in a cache of graphs.
    _import("torch._functorch.config").force_non_lazy_backward_lowering = True
    _import("torch._functorch.config").enable_autograd_cache = False
    _import("torch._inductor.config").fx_graph_cache = False


def _make_fake_mode() -> Any:  # noqa: ANN401 - torch's own
    fake = _import("torch._subclasses").FakeTensorMode
    fake.avoid_device_init = property(always(True))  # torch's own way on a machine without the device

    def make_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:  # noqa: ANN401 - ATen's
        return torch.empty_strided(size, stride, dtype=dtype, device=CPU.name)

    def make_empty(size: Any, *, dtype: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:  # noqa: ANN401 - ATen's
        form = memory_format or torch.contiguous_format
        return torch.empty(size, dtype=dtype, device=CPU.name, memory_format=form)

    library: Any = torch.library.Library("aten", "IMPL", "CUDA")  # type: ignore[no-untyped-call] # torch's
    library.impl("empty_strided", make_strided)
    library.impl("empty.memory_format", make_empty)
    _LIBRARY.append(library)
    return fake(allow_non_fake_inputs=True)
