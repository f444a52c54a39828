"""Comparing evaluations of a case: of different code, and of the same code called again."""

import math
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

import torch

from gate.measure.numerics.drift import LARGEST_STEP, MISMATCH, Drift, compute_drift, is_rounded, list_far
from gate.measure.numerics.layout import compare_layout
from gate.measure.numerics.reference import LATER, Evaluation
from gate.measure.numerics.state import HELD, State
from gate.measure.workload.tensors import compare_leaves
from gate.records.codes import Code
from gate.records.facts import Fact, name_words

PARTS = ("outputs", "gradients", "written")


def compare(exact: Evaluation | None, eager: Evaluation, compiled: Evaluation, state: State) -> Drift:
    """Compute the drift of the worst of all that a call returns and leaves behind.

    Without a reference (``exact``) only a mismatch with eager has a drift.

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
    left = sorted(_list_lost_values(eager, compiled) | _list_kept(eager, compiled, state))
    alone = [Fact(code=Code.LEFT_BY_ONE, names=name_words(output=name)) for name in left]
    return [*compare_layout(eager.layout, compiled.layout), *alone]


def list_reference_far(exact: Evaluation, eager: Evaluation) -> list[Fact]:
    """List outputs that are another computation's in float64: a branch on the type, or views cast apart."""
    first = {name: value for name, value in eager.outputs.items() if LATER not in name and is_rounded(value)}
    far = list_far(exact.outputs, first, [name for name in first if name in exact.outputs], LARGEST_STEP)
    return [replace(fact, code=Code.REFERENCE_FAR) for fact in far]


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
