"""Comparing evaluations of a case: of different code, and of the same code called again."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import StrEnum

import torch

from gate.measure.numerics import reference
from gate.measure.numerics.drift import LARGEST_STEP, MISMATCH, Drift, compute_drift
from gate.measure.numerics.exact import read_generators
from gate.measure.numerics.reference import Evaluation
from gate.measure.numerics.state import HELD, State, copy_state
from gate.measure.process.logbook import NotFiniteError
from gate.measure.workload.build import SEED, Subject, seed_everything
from gate.measure.workload.tensors import compare_leaves
from gate.records import Code, Fact, name_words


def compare(exact: Evaluation | None, eager: Evaluation, compiled: Evaluation, state: State) -> Drift:
    """Compute the drift of the worst of all that a call returns and leaves behind.

    ``state`` is what there was before the calls. Without a reference (``exact``) only another answer than
    eager's has a drift.

    Raises:
        NotFiniteError: As :func:`gate.measure.numerics.drift.compute_drift`.
    """
    lost = eager.numbers.keys() ^ compiled.numbers.keys()
    exact = exact and _add_numbers(exact, lost)
    eager, compiled = _add_numbers(eager, lost), _add_numbers(compiled, lost)
    sides = [side for side in (exact, eager, compiled) if side is not None]
    names, kept = _name_written(eager, compiled, state)
    values = [
        {**side.outputs, **{name: value for name in names if (value := _read(name, side, state)) is not None}}
        for side in sides
    ]
    gradients = [side.gradients for side in sides]
    if exact is None:
        values, gradients = [{}, *values], [{}, *gradients]
    step = find_step(state)
    drifts = [compute_drift(*values, step=step), compute_drift(*gradients, pooled=True, step=step)]
    if not (eager.gradients or compiled.gradients):
        drifts.pop()
    worst = max(drifts, key=lambda one: -math.inf if one.log2_ratio is None else one.log2_ratio)
    differing, unseen = _compare_others(eager, compiled)
    if differing and worst.log2_ratio != MISMATCH:
        worst = Drift(log2_ratio=MISMATCH, worst=differing[0].name("output"))
    facts = (fact for one in drifts for fact in one.warnings)
    kept += [Fact(code=Code.OUTPUT_LOST, names=name_words(output=one)) for one in sorted(lost)]
    return replace(worst, warnings=(*facts, *differing, *kept, *unseen))


def _add_numbers(side: Evaluation, lost: AbstractSet[str]) -> Evaluation:
    """Add Python's numbers that both sides changed, of which those that may be rounded are tensors."""
    shared = {name: value for name, value in side.numbers.items() if name not in lost}
    rounded = {name: value for name, value in shared.items() if isinstance(value, torch.Tensor)}
    return replace(side, outputs={**side.outputs, **rounded}, others={**side.others, **shared})


def find_step(state: State) -> float:
    """Find the rounding step of the lowest type that computes: that of a parameter, a buffer or an input."""
    dtypes = {tensor.dtype for tensor in state.tensors.values() if tensor.is_floating_point()}
    return max((min(LARGEST_STEP, torch.finfo(dtype).eps) for dtype in dtypes), default=0.0)


def _compare_others(eager: Evaluation, compiled: Evaluation) -> tuple[list[Fact], list[Fact]]:
    """List which numbers, words and keys differ among what was returned, and what cannot be compared."""
    differing, unseen = [], []
    for name in sorted(
        (eager.others.keys() | compiled.others.keys()) - eager.outputs.keys() - compiled.outputs.keys()
    ):
        if name not in eager.others or name not in compiled.others:
            differing.append(Fact(code=Code.OUTPUT_LOST, names=name_words(output=name)))
            continue
        leaf = eager.others[name]
        same, kind = compare_leaves(leaf, compiled.others[name]), type(leaf).__qualname__
        if same is None:
            unseen.append(Fact(code=Code.OUTPUT_UNSEEN, names=name_words(output=name, dtype=kind)))
        elif not same:
            differing.append(Fact(code=Code.OUTPUT_DIFFERS, names=name_words(output=name, dtype=kind)))
    return differing, unseen


def _name_written(eager: Evaluation, compiled: Evaluation, state: State) -> tuple[list[str], list[Fact]]:
    """Name what either side wrote, and what only one of them keeps in an attribute.

    Many a model leaves out such notes for itself when it is compiled.
    """
    written = eager.written.keys() | compiled.written.keys()
    kept = {
        name
        for name in eager.written.keys() ^ compiled.written.keys()
        if name not in state.tensors and name.startswith(HELD)
    }
    return sorted(written - kept), [Fact(code=Code.OUTPUT_LOST, names=name_words(output=one)) for one in kept]


def _read(name: str, side: Evaluation, state: State) -> torch.Tensor | None:
    """What a tensor holds after a call: what it held before, unless it was written."""
    if name in side.written or name not in state.tensors:
        return side.written.get(name)
    like = next(iter(side.written.values()), state.tensors[name])
    return state.tensors[name].to(like.device)


_PARTS = ("outputs", "gradients", "written")


class Habit(StrEnum):
    """What calls with the same tensors have in common."""

    SAME = "same"  # everything
    RANDOM = "random"  # what they draw with the same seed
    STATEFUL = "stateful"  # neither: they count, keep or draw where it is not put back


def find_habit(subject: Subject) -> Habit:
    """Call eager twice with one seed, and with another if it draws random numbers.

    Calls with one seed may differ by rounding, as sums of a GPU do whose order is not fixed.
    """
    state = copy_state(subject)
    first, again = (reference.evaluate(subject, subject.function, state) for _ in range(2))
    if _differ(first, again, state):
        return Habit.STATEFUL
    if state.has_generator:  # put back before each call; for float64 it would draw others
        return Habit.RANDOM
    seed_everything(SEED)
    if first.generators == read_generators(subject.device):
        return Habit.SAME
    other = reference.evaluate(subject, subject.function, state, seed=SEED + 1)
    return Habit.SAME if _is_equal(first, other) else Habit.RANDOM


def _differ(first: Evaluation, again: Evaluation, state: State) -> bool:
    """Whether two calls differ by more than rounding."""
    try:
        first, again = replace(first, numbers={}), replace(again, numbers={})  # a clock's are not used
        return compare(None, first, again, state).log2_ratio == MISMATCH
    except NotFiniteError:  # that is raised where compiled is compared
        return False


def _is_equal(first: Evaluation, other: Evaluation) -> bool:
    return all(
        left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
        for left, right in ((getattr(first, part), getattr(other, part)) for part in _PARTS)
    )
