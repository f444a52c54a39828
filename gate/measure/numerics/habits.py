"""Whether a forward can be compared at all: what it does when it is called again."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import torch

from gate.measure.numerics import reference
from gate.measure.numerics.comparing import compare
from gate.measure.numerics.draws import read_generators
from gate.measure.numerics.drift import MISMATCH
from gate.measure.numerics.reference import Evaluation
from gate.measure.numerics.state import State, copy_state
from gate.measure.process.logbook import NotFiniteError
from gate.measure.workload.build import SEED, Subject, seed_everything

_PARTS = ("outputs", "gradients", "written")


class Habit(StrEnum):
    """What calls with the same tensors have in common."""

    SAME = "same"  # everything
    RANDOM = "random"  # what they draw with the same seed
    STATEFUL = "stateful"  # neither: they count, keep or draw where nobody puts it back


def find_habit(subject: Subject) -> Habit:
    """Call eager twice with one seed, and with another if it draws random numbers.

    Calls with one seed may differ by rounding, as sums of a GPU do whose order is nobody's.
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
    except NotFiniteError:  # that is told where compiled is compared
        return False


def _is_equal(first: Evaluation, other: Evaluation) -> bool:
    return all(
        left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
        for left, right in ((getattr(first, part), getattr(other, part)) for part in _PARTS)
    )
