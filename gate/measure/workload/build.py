"""From a case to something that can be called: load the factory, check what it returns, cast it."""

import importlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import is_lazy

from gate.errors import UsageError
from gate.installation import name_page
from gate.measure.device.device import Device
from gate.measure.workload.holding import Held, find_held
from gate.measure.workload.tensors import (
    compute_bytes,
    convert_module,
    convert_tensor,
    iterate_leaves,
    iterate_tensors,
    list_held,
    map_tensors,
)
from gate.records.cases import Case, DType, Kind, Mode, Task
from gate.workload import Workload

SEED = 20_240  # any fixed number: weights and inputs are the same in every trial

TORCH_DTYPES = {
    DType.FLOAT32: torch.float32,
    DType.BFLOAT16: torch.bfloat16,
    DType.FLOAT16: torch.float16,
}
# The modes, the option and the backend that ask for CUDA graphs.
_CUDAGRAPH_MODES = frozenset((Mode.REDUCE_OVERHEAD, Mode.MAX_AUTOTUNE))
_CUDAGRAPH_OPTION = "triton.cudagraphs"
_CUDAGRAPH_BACKEND = "cudagraphs"

# Kinds whose calls get the very tensors that the factory made, in this process: one may ask for a gradient.
_KINDS_ON_OWN_TENSORS = frozenset({Kind.CALL, Kind.CACHE, Kind.SERVING, Kind.SCOPE})

Function = Callable[..., Any]


class StepResult(NamedTuple):
    loss: Any
    outputs: Any


@dataclass(frozen=True, kw_only=True)
class Subject:
    case: Case
    device: Device
    workload: Workload
    module: torch.nn.Module | None  # holds what forward and loss hold; forward itself where it has it all
    optimizer: torch.optim.Optimizer | None = None
    spread: Callable[[Function], Function] = lambda function: function  # from ``plain`` to ``function``
    # What is written into the inputs before each call after the first; nothing where they stay.
    later: tuple[Sequence[torch.Tensor], ...] = ()

    @property
    def plain(self) -> Function:
        return make_function(self.workload.forward, self.workload.loss, self.case.task)

    @property
    def function(self) -> Function:
        return self.spread(self.plain)

    @property
    def is_training(self) -> bool:
        return self.case.task == Task.TRAINING

    def iterate_given(self) -> Iterator[tuple[str, Any]]:
        for name, given in (("inputs", self.workload.inputs), ("kwargs", self.workload.kwargs)):
            yield from ((name + path, leaf) for path, leaf in iterate_leaves(given))

    def list_inputs(self) -> list[torch.Tensor]:
        return [leaf for _, leaf in self.iterate_given() if isinstance(leaf, torch.Tensor)]

    def list_state(self) -> list[torch.Tensor]:
        return [*(list_held(self.module) if self.module is not None else ()), *self.list_inputs()]

    def list_named_leaves(self) -> dict[str, torch.Tensor]:
        given = {path: leaf for path, leaf in self.iterate_given() if isinstance(leaf, torch.Tensor)}
        named = {**self.list_named_parameters(), **given}
        return {name: tensor for name, tensor in named.items() if tensor.requires_grad and tensor.is_leaf}

    def list_named_parameters(self) -> dict[str, torch.Tensor]:
        if self.module is None:
            return {}
        loose = {name: tensor for name, tensor in self.module.named_buffers() if tensor.requires_grad}
        return {**dict(self.module.named_parameters()), **loose}

    def list_leaves(self) -> list[torch.Tensor]:
        return list(self.list_named_leaves().values())

    def compute_resident_bytes(self) -> int:
        state = self.optimizer.state.values() if self.optimizer else ()
        return compute_bytes([*self.list_state(), *(tensor for _, tensor in iterate_tensors(list(state)))])


def seed_everything(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


def load_module(path: str) -> ModuleType:
    """Load the module of ``package.module:function``; raises as :func:`load_factory`."""
    module_name = path.partition(":")[0]
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        if f"{error.name}.".startswith("gate."):
            fix = "If you have a package `gate`, rename it: beside compile-gate it cannot be imported."
            raise UsageError(f"{error}: `gate` is compile-gate's own package", fix) from error
        if not isinstance(error, ModuleNotFoundError) or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # of a module that this one imports
        message = f"the factory {path!r} cannot be imported: there is no module {error.name!r}"
        fix = "Modules are imported from the directory of gate.yml, or from what is installed."
        raise UsageError(message, fix) from None


def load_factory(path: str) -> Callable[..., object]:
    """Load ``package.module:function``.

    Raises:
        UsageError: There is no such module or function, or it needs another package `gate` than this.
            What the module itself raises passes through.
    """
    module, (module_name, _, name) = load_module(path), path.partition(":")
    factory = getattr(module, name, None)
    if not callable(factory):
        fix = f"Name a function of {module.__file__ or module_name}."
        raise UsageError(f"the factory {path!r} does not exist: {module_name} has no function {name!r}", fix)
    return factory  # type: ignore[no-any-return] # checked above: callable


def build_workload(case: Case, seed: int = SEED) -> Workload:
    """Call the case's factory under ``seed``.

    Raises:
        UsageError: It returns something else than a :class:`gate.workload.Workload` that can be measured as
            ``case``.
    """
    factory = load_factory(case.factory)
    seed_everything(seed)
    workload, source = factory(**case.arguments), _name_source(case)
    if not isinstance(workload, Workload):
        fix = f"Return gate.Workload(forward=..., inputs=(...,)) from it: see {name_page('adding-a-model')}."
        raise UsageError(f"{source} returned {type(workload).__name__}, not a gate.Workload", fix)
    if case.task == Task.TRAINING and workload.loss is None:
        raise UsageError(f"{source}: a training case needs a loss", "Add loss=... to the Workload.")
    return workload


def build_bare(case: Case) -> None:
    """Build a workload without memory, in an instant. What needs values fails."""
    with torch.device("meta"):
        build_workload(case)


def make_subject(
    workload: Workload,
    case: Case,
    device: Device,
    spread: Callable[[Function], Function] = lambda function: function,
) -> Subject:
    """Cast a workload to the case's dtype and device, and set its modules to train or eval.

    Raises:
        UsageError: A lazy module was never called, an input cannot be cast, or nothing of a training case
            requires a gradient.
    """
    dtype = TORCH_DTYPES[case.dtype]
    if (held := find_held(workload.forward, workload.loss)) is not None:
        _check_values(held, case)
        convert_module(held, device.name, dtype)
    inputs, kwargs = cast_inputs(workload, device.name, dtype)
    if case.kind in (_KINDS_ON_OWN_TENSORS if case.task is Task.INFERENCE else {Kind.CALL}):
        given = iterate_tensors((tuple(workload.inputs), dict(workload.kwargs)))
        for (_, tensor), (_, copied) in zip(given, iterate_tensors((inputs, kwargs)), strict=True):
            copied.requires_grad_(tensor.requires_grad)
    return assemble_subject(replace(workload, inputs=inputs, kwargs=kwargs), case, device, spread)


def assemble_subject(
    workload: Workload, case: Case, device: Device, spread: Callable[[Function], Function]
) -> Subject:
    """Make a subject of a workload whose tensors have their device and dtype already.

    Raises:
        UsageError: An input is a module or holds one, or nothing of a training case requires a gradient.
    """
    module = find_held(workload.forward, workload.loss)
    is_training = case.task == Task.TRAINING
    roots = () if module is None else module.children() if isinstance(module, Held) else (module,)
    for root in roots:
        if root.training is not is_training:  # else it may hold what the factory froze, in the other mode
            with suppress(NotImplementedError):  # an exported program stays what it was exported as
                root.train(is_training)
    subject = Subject(case=case, device=device, workload=workload, module=module, spread=spread)
    _check_given(subject)
    if not subject.is_training:
        return subject
    leaves = _prepare_leaves(subject)
    return replace(subject, optimizer=workload.optimizer(leaves) if workload.optimizer else None)


def _check_values(held: torch.nn.Module, case: Case) -> None:
    for name, tensor in (*held.named_parameters(), *held.named_buffers()):
        if is_lazy(tensor):
            message = f"{_name_source(case)}: {name} has no size yet, its module is a lazy one"
            raise UsageError(message, "Call the module once in the factory: model(*inputs).")
        if tensor.is_meta:
            message = f"{_name_source(case)}: {name} is on the meta device and has no values"
            raise UsageError(message, "Keep it on the CPU, or give it values: module.to_empty(device='cpu').")


def _check_given(subject: Subject) -> None:
    for path, leaf in subject.iterate_given():
        if callable(leaf) and find_held(leaf) is not None:
            message = f"{_name_source(subject.case)}: {path} is or holds a module, which is no input"
            fix = "Close over it: forward=functools.partial(function, module), with the tensors as inputs."
            raise UsageError(message, fix)


def _prepare_leaves(subject: Subject) -> list[torch.Tensor]:
    if not subject.list_named_parameters():
        for tensor in subject.list_inputs():
            tensor.requires_grad_(tensor.is_floating_point())
    if leaves := subject.list_leaves():
        return leaves
    message = f"{_name_source(subject.case)}: nothing requires a gradient, so a training step trains nothing"
    fix = "Call requires_grad_(True) on what is trained, or measure `task: inference` alone."
    raise UsageError(message, fix)


def _name_source(case: Case) -> str:
    return case.factory or case.node or case.id


def make_function(forward: Function, loss: Callable[[Any], torch.Tensor] | None, task: Task) -> Function:
    if task == Task.INFERENCE or loss is None:
        return forward

    def compute_loss(*inputs: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ANN401 - any model's
        return loss(forward(*inputs, **kwargs))

    return compute_loss


def cast_inputs(
    workload: Workload, device: torch.device | str, dtype: torch.dtype
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return convert_tensor(tensor.detach(), device, dtype)

    given = map_tensors(cast, {"inputs": tuple(workload.inputs), "kwargs": dict(workload.kwargs)})
    return given["inputs"], given["kwargs"]


def compile_function(function: Function, case: Case) -> Function:
    compiled: Function = torch.compile(
        function,
        fullgraph=case.fullgraph,
        dynamic=case.dynamic,
        backend=case.backend,
        mode=None if case.mode == Mode.DEFAULT else str(case.mode),
        options=dict(case.options) or None,  # type: ignore[arg-type] # YAML's values; torch checks them
    )
    return compiled


def make_step(subject: Subject, function: Function) -> Callable[[], Any]:
    """Make one call of the workload: ``function`` is the subject's own or its compiled version."""
    inputs, kwargs = subject.workload.inputs, subject.workload.kwargs
    if not subject.is_training:
        return lambda: function(*inputs, **kwargs)
    optimizer, leaves = subject.optimizer, subject.list_leaves()

    def step() -> None:
        function(*inputs, **kwargs).backward()
        if optimizer is not None:
            optimizer.step()
        for leaf in leaves:
            leaf.grad = None

    return step


def has_cudagraphs(case: Case) -> bool:
    """Whether the case asks for CUDA graphs, whose outputs the next call overwrites."""
    return (
        case.mode in _CUDAGRAPH_MODES
        or case.backend == _CUDAGRAPH_BACKEND
        or bool(case.options.get(_CUDAGRAPH_OPTION))
    )


def make_compiled_step(subject: Subject, compiled: Function) -> Callable[[], Any]:
    step = make_step(subject, compiled)
    if not (has_cudagraphs(subject.case) and subject.device.kind.has_cuda_graphs):
        return step
    mark_step = subject.device.mark_step

    def marked_step() -> Any:  # noqa: ANN401 - any model's outputs
        mark_step()
        return step()

    return marked_step
