"""What rounding may cost, measured by perturbing the reference.

Where eager is better than its type allows, compiled need not be: on a processor eager computes BatchNorm in
float64, and compiled code in float32.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.numerics.comparing import PARTS, compare, compute_rounding_step
from gate.measure.numerics.drift import Outputs, is_rounded
from gate.measure.numerics.reference import (
    Called,
    Evaluation,
    evaluate,
    evaluate_twin,
    make_exact_twin,
    make_twin,
    write_values,
)
from gate.measure.workload.build import Subject

_FUSED = (
    "native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward",
    "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "native_layer_norm", "native_layer_norm_backward",
    "native_group_norm", "native_group_norm_backward",
    "_softmax_backward_data", "_log_softmax_backward_data",
)  # fmt: skip
# A batch's statistics, summed in float32 one by one, are off by some ten steps, and each layer adds to it:
# with weights and inputs off by these, ten convolutions with BatchNorm train as far from float64 as compiled.
PERTURBED_STEPS = 16
PERTURBED = PERTURBED_STEPS * torch.finfo(torch.float32).eps
# Some in a hundred perturbations push no activation over its kink, and compiled code does, or the reverse.
_TRIES = 3
# The sums of 16 bits are in float32, and each layer rounds by half a step. With weights and inputs off by two
# each layer is off by some four times that: whatever rounding may turn is turned, and little else.
_STEPS_HALF = 2
# Where no perturbation comes, compiled may have so many times as many wrong as eager has: the limit of drift
# in float32, 1.0. Of near ties that are turned, three pairs of perturbations miss some in a hundred: one of
# eight is more than that by chance, and fewer than a fault that is somewhere else.
_TIMES_EAGER = 2
_SHARE_MISSED = 1 / 8
_ROUNDED = (torch.float32, torch.bfloat16, torch.float16, torch.complex64)  # float64 is no worse than itself
_WHOLE_PARTS = ("outputs", "written")
_Key = tuple[str, str]  # a part and a name in it
_Bounds = tuple[torch.Tensor, torch.Tensor]


class Pushing(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Pushes what operators return by a step, and a sum of n by sqrt(n): float32's own error of as many."""

    def __init__(self, step: float, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self._step, self._generator = step, generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's
        kwargs = kwargs or {}
        if func in (apart := _list_apart()):
            with self:
                return apart[func](*args, **kwargs)
        returned = func(*args, **kwargs)
        if any(value.alias_info is not None for value in func._schema.returns):  # noqa: SLF001 - torch names it so
            return returned
        given = [
            leaf.numel() for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        ]

        def push_summed(value: torch.Tensor) -> torch.Tensor:
            terms = max(given, default=1) / max(1, value.numel())
            return push(value, self._step * max(1.0, math.sqrt(terms)), self._generator)

        return pytree.tree_map_only(torch.Tensor, push_summed, returned)


def push(value: torch.Tensor, by: float, generator: torch.Generator) -> torch.Tensor:
    """Multiply each element by another factor within ``by`` of 1, but for whole numbers, which are exact.

    What is nested, sparse or of 8 bits stays: few functions take it.
    """
    is_plain = value.layout == torch.strided and not value.is_nested and value.itemsize > 1
    if not value.is_floating_point() or not is_plain:
        return value
    noise = torch.rand(value.shape, generator=generator, dtype=torch.float64).to(value.device)
    off = (by * (2 * noise - 1)).masked_fill(value == value.round(), 0.0)
    return value * (1 + off).to(value.dtype)


@functools.cache
def _list_apart() -> Mapping[Any, Callable[..., Any]]:
    from torch._decomp import get_decompositions  # noqa: PLC0415 - importing it takes a second

    return get_decompositions(
        [getattr(torch.ops.aten, name) for name in _FUSED if hasattr(torch.ops.aten, name)]
    )


def measure_beyond(subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation) -> float:
    tries = []
    for seed in range(_TRIES):
        perturbed = evaluate_perturbed(subject, eager, seed)
        parts: dict[str, Any] = {
            part: _add(*(getattr(evaluation, part) for evaluation in (eager.evaluation, perturbed, exact)))
            for part in PARTS
        }
        drift = compare(exact, replace(eager.evaluation, **parts), compiled, eager.state)
        tries.append(drift.log2_ratio or 0.0)
    return min(tries)


def evaluate_perturbed(
    subject: Subject, eager: Called, seed: int, by: float = PERTURBED, *, is_float64: bool = True
) -> Evaluation:
    """Evaluate the reference with parameters, buffers and inputs off by at most a share of ``by``."""
    twin = make_exact_twin(subject) if is_float64 else make_twin(subject, torch.float32)
    generator = torch.Generator().manual_seed(seed)
    write_values(twin.list_state(), [push(tensor.detach(), by, generator) for tensor in twin.list_state()])
    later = tuple([push(value, by, generator) for value in given] for given in twin.later)
    twin = replace(twin, later=later)
    with Pushing(by / PERTURBED_STEPS, generator):
        return evaluate_twin(twin, eager.state, eager.drawn, is_float64=is_float64)


def _add(eager: Outputs, perturbed: Outputs, exact: Outputs) -> Outputs:
    off = {
        name: (perturbed[name] - exact[name]).nan_to_num(0.0, 0.0, 0.0)  # of infinities: none
        for name, value in eager.items()
        if name in perturbed
        and name in exact
        and perturbed[name].shape == exact[name].shape == value.shape
        and value.dtype in _ROUNDED
    }
    return {
        name: (value + off[name]).to(value.dtype) if name in off else value for name, value in eager.items()
    }


def excuse(subject: Subject, exact: Evaluation | None, eager: Called, compiled: Evaluation) -> Evaluation:
    """Give compiled eager's values where they differ, and rounding or a clock explains it."""
    compiled = _excuse_values(subject, eager, compiled)
    keys = [] if exact is None else _list_differing(exact, eager.evaluation, compiled)
    if exact is None or not keys:
        return compiled
    parts: dict[str, Any] = {part: dict(getattr(compiled, part)) for part in _WHOLE_PARTS}
    for key, bound in _compute_bounds(subject, exact, eager, compiled, keys).items():
        of_eager = _count_outside(_get(eager.evaluation, key), bound)
        of_compiled = _count_outside(_get(compiled, key), bound)
        turned = int((_get(compiled, key) != _get(exact, key)).sum()) - of_compiled
        if of_compiled <= _TIMES_EAGER * of_eager + _SHARE_MISSED * turned:
            part, name = key
            parts[part][name] = _get(eager.evaluation, key)
    return replace(compiled, **parts)


def _excuse_values(subject: Subject, eager: Called, compiled: Evaluation) -> Evaluation:
    """Give compiled those values of Python that differ between two evaluations of eager, as a clock's."""
    if eager.evaluation.values == compiled.values:
        return compiled
    again = evaluate(subject, subject.function, eager.state).values
    given = {name: value for name, value in eager.evaluation.values.items() if again.get(name) != value}
    return replace(compiled, values={**compiled.values, **given})


def _compute_bounds(
    subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation, keys: Sequence[_Key]
) -> dict[_Key, _Bounds]:
    """Compute the least and largest values that perturbations make, until compiled is within all of them."""
    step = compute_rounding_step(eager.state)
    by = _STEPS_HALF * step if step > torch.finfo(torch.float32).eps else PERTURBED
    bounds = {key: (_get(exact, key),) * 2 for key in keys}
    for seed, sign in itertools.product(range(_TRIES), (1, -1)):
        if not any(_count_outside(_get(compiled, key), bound) for key, bound in bounds.items()):
            break
        perturbed = evaluate_perturbed(subject, eager, seed, sign * by, is_float64=exact.is_float64)
        for key, (low, high) in bounds.items():
            value = _get(perturbed, key)
            if value.shape == low.shape:
                bounds[key] = torch.minimum(low, value), torch.maximum(high, value)
    return bounds


def _list_differing(exact: Evaluation, eager: Evaluation, compiled: Evaluation) -> list[_Key]:
    keys = []
    for key in ((part, name) for part in _WHOLE_PARTS for name in getattr(eager, part)):
        values = [_get(side, key) for side in (exact, eager, compiled)]
        is_alike = len({(value.shape, value.dtype) for value in values}) == 1
        if is_alike and not is_rounded(values[0]) and not torch.equal(*values[1:]):
            keys.append(key)
    return keys


def _get(side: Evaluation, key: _Key) -> torch.Tensor:
    part, name = key
    value: torch.Tensor = getattr(side, part).get(name, torch.empty(0))
    return value


def _count_outside(value: torch.Tensor, bounds: _Bounds) -> int:
    low, high = bounds
    return int(((value < low) | (value > high)).sum())
