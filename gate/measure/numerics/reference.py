"""The float64 reference, the float32 twin, and one evaluation of each: what drift is computed from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gate.devices import CPU
from gate.host_memory import read_free_bytes
from gate.measure.device.device import CpuDevice, Device
from gate.measure.kinds.protocol import find_protocol
from gate.measure.workload.build import (
    SEED,
    Function,
    Subject,
    cast_inputs,
    make_function,
    seed_everything,
)
from gate.measure.workload.tensors import convert_tensor, copy_module, iterate_tensors, map_tensors
from gate.workload import Workload

# cuBLAS says "not initialized" where there is no memory for its handle.
_NO_MEMORY = re.compile(r"out[ _]of[ _]memory|ALLOC_FAILED|CU(BLAS|DNN|SOLVER)_STATUS_NOT_INITIALIZED")
_FLOAT64_BYTES = 8
_RAISED = {
    **dict.fromkeys((torch.float32, torch.bfloat16, torch.float16), torch.float64),
    torch.complex64: torch.complex128,
}
_CASTS = frozenset((torch.Tensor.float, torch.Tensor.bfloat16, torch.Tensor.half))


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What one call returned, as copies. ``values`` are outputs, or gradients of a training step."""

    values: Mapping[str, torch.Tensor]
    outputs: Mapping[str, torch.Tensor]  # of the function itself: the loss, when training


class Float64Mode(TorchFunctionMode):
    """Turns casts to lower floating-point types into casts to float64.

    Models cast on purpose (a norm or a softmax in float32): in the reference those stay exact too.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Run ``func`` with float64 where it asks for less."""
        raised = {name: _raise_dtype(value) for name, value in (kwargs or {}).items()}
        if func in _CASTS:
            func = torch.Tensor.double
        return func(*map(_raise_dtype, args), **raised)


def make_twin(subject: Subject, dtype: torch.dtype, device: Device | None = None) -> Subject:
    """Copy a subject to ``dtype``, with the values that it has in its own; without an optimizer.

    The copy is on ``device``, which is the subject's own unless another is given.
    """
    device = device or subject.device
    module, forward = None, subject.forward
    if subject.module is not None:
        module = forward = copy_module(subject.module, device.name, dtype)

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        copied = convert_tensor(tensor.detach(), device.name, dtype).clone()
        return copied.requires_grad_(tensor.requires_grad)

    return replace(
        subject,
        device=device,
        forward=forward,
        function=subject.spread(make_function(forward, subject.loss, subject.case.task)),
        inputs=map_tensors(cast, subject.inputs),
        kwargs=map_tensors(cast, subject.kwargs),
        module=module,
        optimizer=None,
    )


def evaluate(subject: Subject, function: Function) -> Evaluation:
    """Call ``function``, the subject's own or its compiled version, and copy what it returns.

    What the call wrote to buffers and inputs is undone, so that the next one is asked the same.
    """
    seed_everything(SEED)  # whatever is random draws the same numbers where it can
    subject.device.mark_step()
    written = subject.list_written()
    before = [tensor.detach().clone() for tensor in written]
    returned = function(*subject.inputs, **subject.kwargs)
    outputs = {f"output{path}": value.detach().clone() for path, value in iterate_tensors(returned)}
    if subject.is_training:
        returned.backward()
    _write_all(written, before)
    if not subject.is_training:
        return Evaluation(values=outputs, outputs=outputs)
    values = {}
    for name, leaf in subject.name_leaves().items():
        if leaf.grad is not None:
            values[f"the gradient of {name}"] = leaf.grad.detach().clone()
        leaf.grad = None
    return Evaluation(values=values, outputs=outputs)


def evaluate_reference(subject: Subject) -> Evaluation:
    """Evaluate in float64, with the weights and inputs that the subject has now.

    Where the device has no memory for that, the processor does it: eight bytes an element, and attention
    that materializes its scores, are several times what the case itself needs.

    Raises:
        NoRoomError: The processor has no memory for it either.
    """
    device = subject.device
    device.free_memory()
    if device.kind.is_gpu:
        device.start_peak()
    try:
        return _evaluate_float64(subject, device)
    except RuntimeError as error:
        if not device.kind.is_gpu or not is_out_of_memory(error):
            raise
    # Here nothing holds what the attempt had allocated any more.
    attempted_bytes = device.read_peak()
    device.free_memory()
    _check_host_memory(subject, attempted_bytes)
    with _use_all_cores():
        exact = _evaluate_float64(subject, CpuDevice())
    place = subject.device.name
    return Evaluation(
        values={name: value.to(place) for name, value in exact.values.items()},
        outputs={name: value.to(place) for name, value in exact.outputs.items()},
    )


class NoRoomError(MemoryError):
    """Neither the device nor the host has room: so many bytes are needed, so many of the host's free."""

    def __init__(self, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(f"{needed_bytes} bytes needed, {free_bytes} free")
        self.needed_bytes, self.free_bytes = needed_bytes, free_bytes


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device had no memory left: torch's own error, or that of a library that cannot allocate."""
    return isinstance(error, torch.OutOfMemoryError) or bool(_NO_MEMORY.search(str(error)))


def _check_host_memory(subject: Subject, attempted_bytes: int) -> None:
    """Check that the host has room for what is known to be needed, before the system kills for want of it.

    That is every value in float64, of a training step's its gradient too, and no less than what the attempt
    on the device had reached.

    Raises:
        NoRoomError: It has not.
    """
    elements = sum(tensor.numel() for tensor in subject.list_state())
    needed = max(attempted_bytes, _FLOAT64_BYTES * elements * (2 if subject.is_training else 1))
    free = read_free_bytes()
    if 0 < free < needed:
        raise NoRoomError(needed, free)


@contextmanager
def _use_all_cores() -> Iterator[None]:
    """Nothing is timed: use as many cores as there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, os.cpu_count() or 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _evaluate_float64(subject: Subject, device: Device) -> Evaluation:
    twin = make_exact_twin(subject, device)
    with in_float64():
        return evaluate(twin, twin.function)


def make_exact_twin(subject: Subject, device: Device | None = None) -> Subject:
    """Copy a subject to float64; a quantized one, what it was made of."""
    return make_twin(
        replace(subject, module=subject.exact) if subject.exact is not None else subject,
        torch.float64,
        device,
    )


@contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 within, whatever types a model asks for."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Float64Mode():
            yield
    finally:
        torch.set_default_dtype(before)


def copy_state(subject: Subject) -> list[torch.Tensor]:
    """Copy parameters, buffers and inputs to the CPU, for :func:`restore_state`."""
    return [tensor.detach().cpu().clone() for tensor in subject.list_state()]


def restore_state(subject: Subject, state: list[torch.Tensor]) -> None:
    """Write a copied state back in place: nothing is compiled anew for it."""
    _write_all(subject.list_state(), state)


def _write_all(tensors: Iterable[torch.Tensor], values: Iterable[torch.Tensor]) -> None:
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            _write(tensor, value)


def _write(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Write in place; torch refuses what `expand` repeats, so of that its first, which stands for all."""
    if tensor.layout == torch.strided and 0 in tensor.stride():
        first = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())
        tensor, value = tensor[first], value[first]
    tensor.copy_(value)


def redraw_state(subject: Subject, seed: int) -> bool:
    """Draw other weights and inputs from the factory under ``seed``; False where it cannot be done."""
    if not subject.case.factory or subject.exact is not None:  # whose weights would have to be drawn as well
        return False
    protocol = find_protocol(subject.case)
    if not protocol.can_redraw:
        return False
    workload = protocol.build(seed)
    state = _list_drawn(workload, subject)
    own = subject.list_state()
    if [tensor.shape for tensor in state] != [tensor.shape for tensor in own]:
        return False
    restore_state(subject, state)
    return True


def _list_drawn(workload: Workload, subject: Subject) -> list[torch.Tensor]:
    forward = workload.forward
    module = [*forward.parameters(), *forward.buffers()] if isinstance(forward, torch.nn.Module) else []
    dtype = next(
        (tensor.dtype for tensor in subject.list_state() if tensor.is_floating_point()), torch.float32
    )
    cast = cast_inputs(workload, CPU.name, dtype)
    return [*module, *(tensor for _, tensor in iterate_tensors(cast))]


def _raise_dtype(value: Any) -> Any:  # noqa: ANN401 - any argument
    return _RAISED.get(value, value) if isinstance(value, torch.dtype) else value
