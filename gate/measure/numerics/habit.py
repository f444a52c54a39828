"""Whether calls of the same code repeat, with the same seed and with another."""

from dataclasses import replace
from enum import StrEnum

import torch

from gate.measure.failures import NotFiniteError
from gate.measure.numerics.comparing import PARTS, compare
from gate.measure.numerics.drift import MISMATCH
from gate.measure.numerics.reference import Called, Evaluation, evaluate
from gate.measure.numerics.state import State, copy_state
from gate.measure.workload.build import SEED, Function, Subject

_OTHER_SEED = SEED + 1_000  # each call of an evaluation has the next one


class Habit(StrEnum):
    SAME = "same"  # everything
    RANDOM = "random"  # what they draw with the same seed
    STATEFUL = "stateful"  # neither: they count, keep or draw where it is not put back


def classify_habit(subject: Subject) -> tuple[Habit, Called]:
    """Evaluate eager twice with one seed, and with another if it draws random numbers.

    Returns:
        The habit, and the first evaluation.
    """
    state = copy_state(subject)
    first, again = (evaluate(subject, subject.function, state) for _ in range(2))
    return _classify(subject, state, first, again), Called(state=state, evaluation=first)


def _classify(subject: Subject, state: State, first: Evaluation, again: Evaluation) -> Habit:
    if _differ(first, again, state):
        return Habit.STATEFUL
    if state.has_generator:  # put back before each call; for float64 it would draw others
        return Habit.RANDOM
    if not any(call.before != call.end for call in first.draws):
        return Habit.SAME
    reseeded = evaluate(subject, subject.function, state, seed=_OTHER_SEED)
    return Habit.SAME if _is_equal(first, reseeded) else Habit.RANDOM


def _differ(first: Evaluation, again: Evaluation, state: State) -> bool:
    if _is_equal(first, again) and not (first.non_tensors or again.non_tensors):
        return False
    try:
        first, again = replace(first, values={}), replace(again, values={})  # a clock's are not used
        return compare(None, first, again, state).log2_ratio == MISMATCH
    except NotFiniteError:  # that is raised where compiled is compared
        return False


def ignores_seed(subject: Subject, function: Function, state: State) -> bool:
    return _is_equal(*(evaluate(subject, function, state, seed=seed) for seed in (SEED, _OTHER_SEED)))


def _is_equal(first: Evaluation, second: Evaluation) -> bool:
    return all(
        left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
        for left, right in ((getattr(first, part), getattr(second, part)) for part in PARTS)
    )
