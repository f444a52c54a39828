"""Comparing evaluations of a case: of different code, and of the same code called again.

Where eager is better than its type allows, compiled need not be: on a processor eager computes BatchNorm in
float64, and compiled code in float32. So what rounding may cost is measured, by perturbing the reference.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.numerics.drift import LARGEST_STEP, MISMATCH, Drift, Outputs, compute_drift, is_rounded
from gate.measure.numerics.layout import compare_layout
from gate.measure.numerics.reference import (
    LATER,
    Called,
    Evaluation,
    evaluate,
    evaluate_twin,
    make_exact_twin,
    make_twin,
    write_values,
)
from gate.measure.numerics.state import HELD, State
from gate.measure.workload.build import Subject
from gate.measure.workload.tensors import compare_leaves
from gate.records.codes import Code
from gate.records.facts import Fact, name_words


def compare(exact: Evaluation | None, eager: Evaluation, compiled: Evaluation, state: State) -> Drift:
    """Compute the drift of the worst of all that a call returns and leaves behind.

    ``state`` is from before the calls. Without a reference (``exact``) only a mismatch with eager has a
    drift.

    Raises:
        NotFiniteError: As :func:`gate.measure.numerics.drift.compute_drift`.
    """
    lost = _list_lost_values(eager, compiled)
    exact = exact and _add_values(exact, lost)
    eager, compiled = _add_values(eager, lost), _add_values(compiled, lost)
    sides = [side for side in (exact, eager, compiled) if side is not None]
    names = sorted((eager.written.keys() | compiled.written.keys()) - _list_kept(eager, compiled, state))
    values = [
        {**side.outputs, **{name: value for name in names if (value := _read(name, side, state)) is not None}}
        for side in sides
    ]
    gradients = [side.gradients for side in sides]
    if exact is None:
        values, gradients = [{}, *values], [{}, *gradients]
    step = compute_rounding_step(state)
    drifts = [compute_drift(*values, step=step), compute_drift(*gradients, pooled=True, step=step)]
    if not (eager.gradients or compiled.gradients):
        drifts.pop()
    worst = max(drifts, key=lambda drift: -math.inf if drift.log2_ratio is None else drift.log2_ratio)
    differing, unseen = _compare_others(eager, compiled)
    if differing and worst.log2_ratio != MISMATCH:
        worst = Drift(log2_ratio=MISMATCH, worst=differing[0].name("output"))
    facts = (fact for drift in drifts for fact in drift.warnings)
    return replace(worst, warnings=tuple(_drop_repeated([*facts, *differing, *unseen])))


def _drop_repeated(facts: Iterable[Fact]) -> Iterator[Fact]:
    seen = set()
    for fact in facts:
        shown = fact.code, fact.name("output").partition(LATER)[0]
        if shown not in seen:
            yield fact
        seen.add(shown)


def list_unlike(eager: Evaluation, compiled: Evaluation, state: State) -> list[Fact]:
    """List what is no number: outputs that are laid out otherwise, and what only one side leaves behind."""
    left = sorted(_list_lost_values(eager, compiled) | _list_kept(eager, compiled, state))
    alone = [Fact(code=Code.LEFT_BY_ONE, names=name_words(output=name)) for name in left]
    return [*compare_layout(eager.layout, compiled.layout), *alone]


def _list_lost_values(eager: Evaluation, compiled: Evaluation) -> AbstractSet[str]:
    return eager.values.keys() ^ compiled.values.keys()


def _list_kept(eager: Evaluation, compiled: Evaluation, state: State) -> AbstractSet[str]:
    alone = eager.written.keys() ^ compiled.written.keys()
    return {name for name in alone if name not in state.tensors and name.startswith(HELD)}


def _add_values(side: Evaluation, lost: AbstractSet[str]) -> Evaluation:
    shared = {name: value for name, value in side.values.items() if name not in lost}
    rounded = {name: value for name, value in shared.items() if isinstance(value, torch.Tensor)}
    return replace(side, outputs={**side.outputs, **rounded}, non_tensors={**side.non_tensors, **shared})


def compute_rounding_step(state: State) -> float:
    dtypes = {tensor.dtype for tensor in state.tensors.values() if tensor.is_floating_point()}
    return max((min(LARGEST_STEP, torch.finfo(dtype).eps) for dtype in dtypes), default=0.0)


def _compare_others(eager: Evaluation, compiled: Evaluation) -> tuple[list[Fact], list[Fact]]:
    differing, unseen = [], []
    for name in sorted(
        (eager.non_tensors.keys() | compiled.non_tensors.keys())
        - eager.outputs.keys()
        - compiled.outputs.keys()
    ):
        if name not in eager.non_tensors or name not in compiled.non_tensors:
            differing.append(Fact(code=Code.OUTPUT_LOST, names=name_words(output=name)))
            continue
        leaf = eager.non_tensors[name]
        same, kind = compare_leaves(leaf, compiled.non_tensors[name]), type(leaf).__qualname__
        if same is None:
            unseen.append(Fact(code=Code.OUTPUT_UNSEEN, names=name_words(output=name, dtype=kind)))
        elif same is False:
            differing.append(Fact(code=Code.OUTPUT_DIFFERS, names=name_words(output=name, dtype=kind)))
    return differing, unseen


def _read(name: str, side: Evaluation, state: State) -> torch.Tensor | None:
    if name in side.written or name not in state.tensors:
        return side.written.get(name)
    like = next(iter(side.written.values()), state.tensors[name])
    return state.tensors[name].to(like.device)


PARTS = ("outputs", "gradients", "written")


_FUSED = (
    *("native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward"),
    *("_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    *("native_layer_norm", "native_layer_norm_backward"),
    *("native_group_norm", "native_group_norm_backward"),
    *("_softmax_backward_data", "_log_softmax_backward_data"),
)


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
    if not value.is_floating_point() or value.layout != torch.strided:
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

_Place = tuple[str, str]  # a part and a name in it


def measure_beyond(subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation) -> float:
    """Compute log2 of compiled's error over eager's with what rounding may cost added, in the worst group."""
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
    """Evaluate the reference with parameters, buffers and inputs off by at most a share of ``by``.

    What operators make of them is off by a sixteenth of it, and sums by more. Operators that fuse a mean and
    its subtraction are decomposed first, as compilers do.
    """
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
    if eager.evaluation.values != compiled.values:
        again = evaluate(subject, subject.function, eager.state).values
        given = {name: value for name, value in eager.evaluation.values.items() if again.get(name) != value}
        compiled = replace(compiled, values={**compiled.values, **given})
    whole = [] if exact is None else _list_whole(exact, eager.evaluation, compiled)
    if exact is None or not whole:
        return compiled
    step = compute_rounding_step(eager.state)
    by = _STEPS_HALF * step if step > torch.finfo(torch.float32).eps else PERTURBED
    bounds = {key: (_get(exact, key),) * 2 for key in whole}
    for seed, sign in itertools.product(range(_TRIES), (1, -1)):
        if not any(_count_outside(_get(compiled, key), bounds[key]) for key in whole):
            break
        perturbed = evaluate_perturbed(subject, eager, seed, sign * by, is_float64=exact.is_float64)
        for key, (low, high) in bounds.items():
            value = _get(perturbed, key)
            if value.shape == low.shape:
                bounds[key] = torch.minimum(low, value), torch.maximum(high, value)
    parts: dict[str, Any] = {part: dict(getattr(compiled, part)) for part in _WHOLE_PARTS}
    for key, bound in bounds.items():
        of_compiled, of_eager = (
            _count_outside(_get(side, key), bound) for side in (compiled, eager.evaluation)
        )
        turned = int((_get(compiled, key) != _get(exact, key)).sum()) - of_compiled
        if of_compiled <= _TIMES_EAGER * of_eager + _SHARE_MISSED * turned:
            part, name = key
            parts[part][name] = _get(eager.evaluation, key)
    return replace(compiled, **parts)


def _list_whole(exact: Evaluation, eager: Evaluation, compiled: Evaluation) -> list[_Place]:
    keys = []
    for key in ((part, name) for part in _WHOLE_PARTS for name in getattr(eager, part)):
        values = [_get(side, key) for side in (exact, eager, compiled)]
        is_alike = len({(value.shape, value.dtype) for value in values}) == 1
        if is_alike and not is_rounded(values[0]) and not torch.equal(*values[1:]):
            keys.append(key)
    return keys


def _get(side: Evaluation, key: _Place) -> torch.Tensor:
    part, name = key
    value: torch.Tensor = getattr(side, part).get(name, torch.empty(0))
    return value


def _count_outside(value: torch.Tensor, bounds: tuple[torch.Tensor, torch.Tensor]) -> int:
    low, high = bounds
    return int(((value < low) | (value > high)).sum())
