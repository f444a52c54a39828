"""The float64 reference, the float32 twin, and one evaluation of each: what drift is computed from."""

import cmath
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gate.devices import CPU
from gate.measure.device.cpu import CpuDevice
from gate.measure.device.device import Device
from gate.measure.kinds.protocol import make_protocol
from gate.measure.numerics.draws import Drawn, Draws, DrawsError, read_generators, replay
from gate.measure.numerics.exact import in_float64
from gate.measure.numerics.layout import Layout, describe_layout
from gate.measure.numerics.state import State, copy_state, list_values, list_written, write_tensor
from gate.measure.workload.build import SEED, Function, StepResult, Subject, cast_inputs, seed_everything
from gate.measure.workload.holding import find_held, pair_up, rebind
from gate.measure.workload.tensors import (
    convert_module,
    convert_tensor,
    copy_module,
    iterate_leaves,
    iterate_tensors,
    list_held,
    map_tensors,
)
from gate.programs import count_cores, read_free_bytes
from gate.workload import Workload

# cuBLAS reports "not initialized" where there is no memory for its handle.
_NO_MEMORY = re.compile(r"out[ _]of[ _]memory|ALLOC_FAILED|CU(BLAS|DNN|SOLVER)_STATUS_NOT_INITIALIZED")
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_FLOAT64_BYTES = 8
_ROUNDED_ARRAYS = "efdFD"  # NumPy's types of 16 to 64 bits, and of complex numbers, that torch has too
LATER = " of call "  # behind the name of what a call after the first returned: its number


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    outputs: Mapping[str, torch.Tensor]  # of the function itself: the loss, when training
    gradients: Mapping[str, torch.Tensor]  # the sum over the calls
    written: Mapping[str, torch.Tensor]  # of all that a call can write, what differs from before
    non_tensors: Mapping[str, object] = field(default_factory=dict)  # returned, and no tensors
    values: Mapping[str, object] = field(default_factory=dict)  # of Python that the calls changed
    layout: Layout = field(default_factory=dict)  # of what the first call returned
    draws: tuple[Draws, ...] = ()  # call by call
    is_float64: bool = True  # of a reference

    @property
    def has_tensors(self) -> bool:
        return bool(self.outputs or self.gradients or self.written)


@dataclass(frozen=True, kw_only=True)
class Called:
    state: State
    drawn: Sequence[Drawn] | None = None  # None: nothing
    evaluation: Evaluation


def make_twin(subject: Subject, dtype: torch.dtype, device: Device | None = None) -> Subject:
    device = device or subject.device
    module, workload = subject.module, subject.workload
    if module is not None:
        copied = _copy_held(subject, module, device, dtype)
        pairs = pair_up(module, copied)
        module = copied
        loss = workload.loss and rebind(workload.loss, pairs)
        workload = replace(workload, forward=rebind(workload.forward, pairs), loss=loss)

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        copied = convert_tensor(tensor.detach(), device.name, dtype).clone()
        return copied.requires_grad_(tensor.requires_grad)

    inputs, kwargs = map_tensors(cast, (workload.inputs, workload.kwargs))
    workload = replace(workload, inputs=inputs, kwargs=kwargs)
    later = tuple([cast(value) for value in given] for given in subject.later)
    return replace(subject, device=device, workload=workload, module=module, optimizer=None, later=later)


def _copy_held(
    subject: Subject, module: torch.nn.Module, device: Device, dtype: torch.dtype
) -> torch.nn.Module:
    """Copy what a subject holds; what refuses to be copied, as a lock, is built once more by the factory."""
    try:
        return copy_module(module, device.name, dtype)
    except Exception:
        if not subject.case.factory or subject.workload.exact is not None:
            raise
        built = make_protocol(subject.case).build()
        copied = find_held(built.forward, built.loss)
        if copied is None or _describe_parts(copied) != _describe_parts(module):
            raise
    for part, built_part in zip(module.modules(), copied.modules(), strict=True):
        built_part.training = part.training
    convert_module(copied, device.name, dtype)
    with torch.no_grad():
        for tensor, target in zip(list_held(module), list_held(copied), strict=True):
            write_tensor(target, tensor)
    return copied


def _describe_parts(module: torch.nn.Module) -> tuple[list[type], list[torch.Size]]:
    return [type(part) for part in module.modules()], [tensor.shape for tensor in list_held(module)]


def evaluate(
    subject: Subject, function: Function, state: State | None = None, *, seed: int = SEED
) -> Evaluation:
    """Call ``function`` with the inputs and then the later inputs, and copy what it returns and writes.

    Then everything is put back to ``state``, a copy from before; a twin is left as the calls leave it.
    """
    before, device = state or copy_state(subject), subject.device.name
    leaves: dict[str, object] = {}
    layout: Layout = {}
    draws = []
    try:
        for index, given in enumerate(((), *subject.later)):
            write_values(subject.list_inputs() if given else [], given)
            seed_everything(seed + index)  # whatever is random draws the same numbers where it can
            subject.device.mark_step()
            begun = read_generators(subject.device)
            returned = function(*subject.workload.inputs, **subject.workload.kwargs)
            forward = read_generators(subject.device)
            root = "the loss" if subject.is_training else "output"
            loss = returned
            if isinstance(returned, StepResult):
                root, (loss, returned) = "output", returned
            call = f"{LATER}{index + 1}" if index else ""
            leaves |= {
                f"{root}{path}{call}": _copy_leaf(leaf, device) for path, leaf in _list_returned(returned)
            }
            layout = layout or describe_layout(returned, dict(subject.iterate_given()), root)
            if subject.is_training:
                loss.backward()
            draws.append(Draws(before=begun, forward=forward, end=read_generators(subject.device)))
        gradients = _take_gradients(subject)
        written = list_written(subject, before)
        values = {name: _copy_leaf(value, device) for name, value in list_values(subject, before).items()}
    finally:
        before.restore()
    outputs = {name: leaf for name, leaf in leaves.items() if isinstance(leaf, torch.Tensor)}
    return Evaluation(
        outputs=outputs,
        gradients=gradients,
        written=written,
        non_tensors={name: leaf for name, leaf in leaves.items() if name not in outputs},
        values=values,
        layout=layout,
        draws=tuple(draws),
    )


def _list_returned(returned: object) -> Iterator[tuple[str, object]]:
    for path, leaf in iterate_leaves(returned):
        if isinstance(leaf, torch.Tensor) and leaf.is_nested:
            yield from ((f"{path}[{index}]", part) for index, part in enumerate(leaf.unbind()))
        else:
            yield path, leaf


def _copy_leaf(leaf: Any, device: torch.device) -> object:  # noqa: ANN401 - any model's
    """Copy a tensor, and make one of what else is rounded, where NaN or an infinity may be meant."""
    if isinstance(leaf, torch.Tensor):
        return _copy_dense(leaf)
    is_rounded = isinstance(leaf, (float, complex)) and cmath.isfinite(leaf)
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(leaf, (numpy.ndarray, numpy.generic)):
        leaf = leaf.copy()
        is_rounded = leaf.dtype.char in _ROUNDED_ARRAYS and leaf.dtype.isnative
        is_rounded = is_rounded and numpy.isfinite(leaf).any() and not numpy.isnan(leaf).any()
    return torch.tensor(leaf, device=device) if is_rounded else leaf


def _take_gradients(subject: Subject) -> dict[str, torch.Tensor]:
    taken = {}
    for name, leaf in subject.list_named_leaves().items() if subject.is_training else ():
        if leaf.grad is not None:
            taken[f"the gradient of {name}"] = _copy_dense(leaf.grad)
        leaf.grad = None
    return taken


def _copy_dense(tensor: torch.Tensor) -> torch.Tensor:
    """Few functions compare sparse tensors: elements that such a one leaves out are zeros here."""
    tensor = tensor.detach()
    return tensor.clone() if tensor.layout in (torch.strided, torch.jagged) else tensor.to_dense()


def evaluate_reference(
    subject: Subject, state: State | None = None, drawn: Sequence[Drawn] | None = None
) -> Evaluation:
    """Evaluate in float64, with the weights and inputs that the subject has now: ``state`` is a copy of them.

    Raises:
        NoRoomError: The processor has no memory for it either.
        DrawsError: It draws otherwise than eager did.
    """
    device, state = subject.device, state or copy_state(subject)
    device.free_memory()
    if device.kind.is_gpu:
        device.start_peak()
    try:
        return evaluate_twin(make_exact_twin(subject, device), state, drawn)
    except RuntimeError as error:
        if not device.kind.is_gpu or not is_out_of_memory(error):
            raise
    # Here nothing holds what the attempt had allocated any more.
    attempted_bytes = device.read_peak()
    device.free_memory()
    _check_host_memory(subject, attempted_bytes)
    with _use_all_cores():
        exact = evaluate_twin(make_exact_twin(subject, CpuDevice()), state, drawn)
    device_name = subject.device.name
    moved: dict[str, Any] = {
        part: {name: value.to(device_name) for name, value in getattr(exact, part).items()}
        for part in ("outputs", "gradients", "written")
    }
    return replace(exact, **moved)


class NoRoomError(MemoryError):
    def __init__(self, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(f"{needed_bytes} bytes needed, {free_bytes} free")
        self.needed_bytes, self.free_bytes = needed_bytes, free_bytes


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device had no memory left: torch's own error, or that of a library that cannot allocate."""
    return isinstance(error, torch.OutOfMemoryError) or bool(_NO_MEMORY.search(str(error)))


def _check_host_memory(subject: Subject, attempted_bytes: int) -> None:
    """Check that the host has room before the system kills for want of it."""
    elements = sum(tensor.numel() for tensor in subject.list_state())
    needed = max(attempted_bytes, _FLOAT64_BYTES * elements * (2 if subject.is_training else 1))
    free = read_free_bytes()
    if free < needed:
        raise NoRoomError(needed, free)


@contextmanager
def _use_all_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, count_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def evaluate_twin(
    twin: Subject, state: State, drawn: Sequence[Drawn] | None, *, is_float64: bool = True
) -> Evaluation:
    """Evaluate a twin with the numbers that eager drew.

    Raises:
        DrawsError: It draws otherwise, or out of sight: other numbers than eager's would hide all.
    """
    with in_float64() if is_float64 else nullcontext(), replay(drawn):
        evaluation = evaluate(twin, twin.function, state)
    if drawn is not None and any(call.before[0] != call.end[0] for call in evaluation.draws):
        raise DrawsError("an operator draws random numbers inside, which float64 cannot be given")
    return replace(evaluation, is_float64=is_float64)


def make_exact_twin(subject: Subject, device: Device | None = None) -> Subject:
    workload = subject.workload
    if workload.exact is not None:
        forward = rebind(workload.forward, {id(find_held(workload.forward)): workload.exact})
        module = find_held(forward, workload.loss)
        subject = replace(subject, workload=replace(workload, forward=forward), module=module)
    return make_twin(subject, torch.float64, device)


def write_values(tensors: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            write_tensor(tensor, value)


def draw_state(subject: Subject, seed: int) -> list[torch.Tensor] | None:
    """Draw parameters, buffers and inputs anew from the factory; ``None`` where that cannot be done."""
    # The weights of what a quantized model was made of would have to be drawn as well.
    if not subject.case.factory or subject.workload.exact is not None:
        return None
    state = _list_drawn(make_protocol(subject.case).build(seed), subject)
    current = subject.list_state()
    is_alike = [_describe_room(tensor) for tensor in state] == [_describe_room(tensor) for tensor in current]
    return state if is_alike else None


def _describe_room(tensor: torch.Tensor) -> tuple[torch.Size, int]:
    """A tensor can be written into one with the same: compressed rows have room for so many elements."""
    return tensor.shape, tensor._nnz() if tensor.layout in _COMPRESSED else 0  # noqa: SLF001 - documented


def _list_drawn(workload: Workload, subject: Subject) -> list[torch.Tensor]:
    held = find_held(workload.forward, workload.loss)
    module = list_held(held) if held is not None else []
    dtype = next(
        (tensor.dtype for tensor in subject.list_state() if tensor.is_floating_point()), torch.float32
    )
    cast = cast_inputs(workload, CPU.name, dtype)
    return [*module, *(tensor for _, tensor in iterate_tensors(cast))]
