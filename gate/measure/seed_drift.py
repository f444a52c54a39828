"""Measuring drift: at the case's dtype, in float32 with TF32 off, and over steps of training.

Gradients that are right once may still train another model: an error can add up in the optimizer's moments.
What is compared is how far the parameters have moved. A step that is smaller than the rounding of what it
changes is lost in eager alike, so the optimizer steps at a usual rate where the case's own is smaller.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch

from gate.decide.constants import DRIFT_LIMIT_FLOAT32
from gate.measure.context import WorkerContext
from gate.measure.environment import bakes_tf32, convolves_in_tf32, without_tf32
from gate.measure.identity import compile_anew, compile_together
from gate.measure.kinds.protocol import find_protocol
from gate.measure.logbook import Logbook, NotFiniteError, describe_error
from gate.measure.numerics import reference
from gate.measure.numerics.comparing import Habit, compare, excuse, find_habit, measure_beyond
from gate.measure.numerics.drift import MISMATCH, Drift, compute_checksum, compute_drift, describe_tensor
from gate.measure.numerics.exact import Recording, has_drawn_alike, in_float64
from gate.measure.numerics.reference import Called, Evaluation
from gate.measure.numerics.state import copy_state
from gate.measure.workload.build import SEED, Function, Subject, has_cudagraphs
from gate.records.cases import DType, Kind, Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Worst

_INDUCTOR = "inductor"  # the backend that draws random numbers of its own
# Random numbers are drawn by the operators that eager calls.
_DRAWS_AS_EAGER = {"torch._inductor.config": {"fallback_random": True}}
# Nothing is found that was compiled before, and nothing left: no cache key says that code uses TF32.
_WITHOUT_CACHES = {
    "torch._functorch.config": {"enable_autograd_cache": False},
    "torch._inductor.config": {"fx_graph_cache": False},
}


@dataclass(frozen=True, kw_only=True)
class CompiledSubject:
    """A subject and its compiled function."""

    subject: Subject
    compiled: Function


def measure_drift(context: WorkerContext, pair: CompiledSubject) -> bool:
    """Measure drift under each seed; the samples are the means. The subject's state must be as built.

    Weights and inputs of further seeds are written into the same tensors, so nothing is recompiled.
    Returns whether calls just repeat: they draw no random numbers, and keep no state but what is put back.
    """
    habit = find_habit(pair.subject)
    if habit is Habit.STATEFUL:
        context.logbook.note(Code.STATE_UNJUDGED)
    elif habit is Habit.RANDOM and not find_protocol(context.case).shares_state:
        context.logbook.note(Code.RANDOM_UNJUDGED)
    elif habit is Habit.RANDOM and context.case.backend == _INDUCTOR:
        with compile_anew(_DRAWS_AS_EAGER):
            _measure_seeds(context, pair, habit)
    else:
        _measure_seeds(context, pair, habit)
    return habit is Habit.SAME


def _measure_seeds(context: WorkerContext, pair: CompiledSubject, habit: Habit) -> None:
    twin = None
    drifts: dict[Metric, list[Drift]] = {Metric.DRIFT: [], Metric.DRIFT_FLOAT32: []}
    for index in range(context.sampling.drift_seeds):
        if index and not reference.redraw_state(pair.subject, SEED + index):
            break
        eager = _evaluate_eager(pair.subject, habit)
        exact = _evaluate_reference(context, pair.subject, eager)
        if not index:
            _record_workload(context, exact, eager.found)
            if not eager.found.has_tensors:  # a drift of 0 would say that all is well
                context.logbook.note(Code.NO_TENSORS)
        own = _compare(context, pair, exact, eager)
        if own is None:
            return
        drifts[Metric.DRIFT].append(own)
        if exact is None:
            break
        # In 16 bits float32 may stand in for float64; and there may have been no room under an earlier seed.
        if not exact.is_float64 or len(drifts[Metric.DRIFT_FLOAT32]) < index:
            continue
        with _note_no_twin(context):
            twin = twin or _make_float32_pair(pair)
            precise = _compare_in_float32(context, pair, twin, exact, habit)
            drifts[Metric.DRIFT_FLOAT32].append(own if precise is None else precise)
    for metric, seeds in drifts.items():
        if seeds and len(seeds) == len(drifts[Metric.DRIFT]):
            record_drift(context.logbook, metric, seeds)


def _evaluate_eager(subject: Subject, habit: Habit) -> Called:
    state = copy_state(subject)
    with Recording() if habit is Habit.RANDOM else nullcontext() as recording:
        found = reference.evaluate(subject, subject.function, state)
    return Called(state=state, drawn=recording and recording.drawn, found=found)


def record_drift(logbook: Logbook, metric: Metric, seeds: Sequence[Drift]) -> None:
    """Record the mean over seeds, each of which has a ratio, and what the largest of them is of.

    Another answer under one seed is another answer.
    """
    ratios = [seed.log2_ratio for seed in seeds if seed.log2_ratio is not None]
    logbook.add_samples({metric: (MISMATCH if MISMATCH in ratios else statistics.mean(ratios),)})
    largest = max(seeds, key=lambda one: (_get_doubt(one), one.log2_ratio or 0.0))
    worst = Worst(output=largest.worst, steps=largest.steps, beyond=largest.beyond)
    logbook.record(worst={**logbook.result.worst, metric: worst})


def _get_doubt(drift: Drift) -> float:
    """How doubtful it is that a ratio is no more than rounding."""
    if drift.log2_ratio is None or drift.log2_ratio <= DRIFT_LIMIT_FLOAT32:
        return -math.inf
    return math.inf if drift.beyond is None else drift.beyond


@contextmanager
def _note_no_twin(context: WorkerContext) -> Iterator[None]:
    """Note that the copy in float32 cannot be made, compiled or called; what was compared without it stands.

    The model is meant for another type, in which it does run.
    """
    try:
        yield
    except NotFiniteError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model or the compiler cannot do in float32
        is_of_memory = isinstance(error, RuntimeError) and reference.is_out_of_memory(error)
        no_room = "the device has no memory for the model in float32 beside its own"
        why = no_room if context.device.kind.is_gpu and is_of_memory else describe_error(error)
        context.logbook.note_unmeasured(Metric.DRIFT_FLOAT32, why)


def _make_float32_pair(pair: CompiledSubject) -> CompiledSubject:
    if pair.subject.case.dtype == DType.FLOAT32:
        return pair  # it is its own copy
    subject = reference.make_twin(pair.subject, torch.float32)
    return CompiledSubject(subject=subject, compiled=find_protocol(subject.case).compile(subject))


def _compare_in_float32(
    context: WorkerContext, pair: CompiledSubject, twin: CompiledSubject, exact: Evaluation, habit: Habit
) -> Drift | None:
    """Compare the float32 twin; None where it shows no more than what was compared already."""
    if twin is not pair:
        reference.write_state(twin.subject, pair.subject.list_state())
    elif not context.device.kind.has_tf32:
        return None  # there is no TF32 to turn off
    # What is compiled may keep TF32, whatever is set when it is called: in its code, or in a CUDA graph.
    is_recorded = twin is pair and has_cudagraphs(twin.subject.case) and convolves_in_tf32()
    keeps_tf32 = bakes_tf32() or is_recorded
    with (
        # A processor's kernels are few, and its compilers would need the cores that the case's threads have.
        compile_together() if context.device.kind.is_gpu else nullcontext(),
        compile_anew(_WITHOUT_CACHES) if keeps_tf32 else nullcontext(),
        without_tf32(),
    ):
        eager = _evaluate_eager(twin.subject, habit)
        if habit is Habit.RANDOM and twin is not pair:  # 16 bits draw other numbers than 32
            return _compare(context, twin, _evaluate_reference(context, twin.subject, eager), eager)
        return _compare(context, twin, exact, eager)


def _evaluate_reference(context: WorkerContext, subject: Subject, eager: Called) -> Evaluation | None:
    try:
        return reference.evaluate_reference(subject, eager.state, eager.drawn)
    except reference.NoRoomError as error:
        numbers = {"needed": error.needed_bytes, "free": error.free_bytes}
        context.logbook.note(Code.REFERENCE_TOO_LARGE, numbers)
    except Exception as error:  # noqa: BLE001 - whatever a model cannot do in float64
        exact = None if subject.case.dtype == DType.FLOAT32 else _evaluate_float32(subject, eager)
        code = Code.NO_FLOAT64 if exact is None else Code.FLOAT32_REFERENCE
        context.logbook.note(code, why=describe_error(error))
        return exact
    return None


def _evaluate_float32(subject: Subject, eager: Called) -> Evaluation | None:
    """What has 16 bits can be compared with 32 as well; None where it cannot be called in these either."""
    try:
        twin = reference.make_twin(subject, torch.float32)
        return reference.evaluate_twin(twin, eager.state, eager.drawn, is_float64=False)
    except Exception:  # noqa: BLE001 - whatever it cannot do in float32
        return None


def _compare(
    context: WorkerContext, pair: CompiledSubject, exact: Evaluation | None, eager: Called
) -> Drift | None:
    """Compute the drift of a pair; None where the reference shows nothing, which is noted."""
    compiled = reference.evaluate(pair.subject, pair.compiled, eager.state)
    if eager.drawn is not None and not has_drawn_alike(eager.found.generators, compiled.generators):
        context.logbook.note(Code.RANDOM_UNJUDGED)
        return None
    if not find_protocol(pair.subject.case).shares_state:
        if eager.found.written:  # by a package or another process, to tensors of its own
            names = {"outputs": tuple(sorted(eager.found.written))}
            context.logbook.add_warnings(Fact(code=Code.WRITES_UNSEEN, names=names))
        eager = replace(eager, found=replace(eager.found, written={}))
        compiled = replace(compiled, written={})
    drift = compare(exact, eager.found, compiled, eager.state)
    if drift.log2_ratio is not None and drift.log2_ratio > DRIFT_LIMIT_FLOAT32:
        compiled = excuse(pair.subject, exact, eager, compiled)
        drift = compare(exact, eager.found, compiled, eager.state)
    # Under another seed the same has other numbers.
    noted = [(one.code, one.names) for one in context.logbook.result.warnings]
    context.logbook.add_warnings(*(one for one in drift.warnings if (one.code, one.names) not in noted))
    if drift.log2_ratio == MISMATCH:
        return drift
    if exact is None or drift.log2_ratio is None or not eager.found.has_tensors:
        return None
    if drift.log2_ratio <= DRIFT_LIMIT_FLOAT32 or not exact.is_float64:
        return drift
    return replace(drift, beyond=_measure_beyond(pair.subject, exact, eager, compiled))


def _measure_beyond(subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation) -> float | None:
    """Compute how far compiled is beyond what rounding may cost; None where there is no room to know."""
    try:
        return measure_beyond(subject, exact, eager, compiled)
    except RuntimeError as error:
        if not (subject.device.kind.is_gpu and reference.is_out_of_memory(error)):
            raise
        return None


def _record_workload(context: WorkerContext, exact: Evaluation | None, eager: Evaluation) -> None:
    """Record what recognizes the model: shapes of its outputs, and the reference's size to six digits."""
    named = {name.replace("the loss", "output"): value for name, value in eager.outputs.items()}
    described = ", ".join(f"{name} {describe_tensor(value)}" for name, value in named.items())
    context.logbook.record(
        workload={
            **context.logbook.result.workload,
            "outputs": described,
            **({"reference": compute_checksum({**exact.outputs, **exact.gradients})} if exact else {}),
        }
    )


STEPS = 10
# A case's rate is small so that thousands of timed steps leave its weights as they were: at 1e-5 the weights'
# own rounding is all that ten steps show.
LEAST_RATE = 1e-3

Moves = Mapping[str, torch.Tensor]


def has_steps(subject: Subject) -> bool:
    """Whether there is something to step: a plain training step with parameters and an optimizer."""
    return (
        subject.is_training
        and subject.case.kind is Kind.CALL
        and bool(subject.name_parameters())
        and subject.workload.optimizer is not None
    )


def measure_step_drift(context: WorkerContext, pair: CompiledSubject, *, repeats: bool) -> None:
    """Measure drift over steps where calls just repeat; the subject's state must be as built."""
    logbook = context.logbook
    if not repeats:
        logbook.note_unmeasured(Metric.DRIFT_STEPS, "calls do not repeat")
        return
    context.device.free_memory()
    try:
        drift = compute_step_drift(pair.subject, pair.compiled)
    except Exception as error:  # noqa: BLE001 - what a model or an optimizer cannot do at this rate, or in float64
        logbook.note_unmeasured(Metric.DRIFT_STEPS, describe_error(error))
        return
    if drift.log2_ratio is None:
        logbook.note_unmeasured(Metric.DRIFT_STEPS, "no parameter is finite in float64")
        return
    record_drift(logbook, Metric.DRIFT_STEPS, [drift])


def compute_step_drift(subject: Subject, compiled: Function) -> Drift:
    """Compute the drift of the parameters after ``STEPS`` steps; the subject's state is as before.

    Raises:
        NotFiniteError: A parameter of eager or compiled became NaN or infinite.
    """
    twin = reference.make_exact_twin(subject)
    exact = move_parameters(twin, twin.function, in_float64)
    del twin
    state = copy_state(subject)
    moves = []
    for function in (subject.function, compiled):
        try:
            moves.append(move_parameters(subject, function))
        finally:
            state.restore()
    return compute_drift(exact, *moves, pooled=True)


def move_parameters(
    subject: Subject, function: Function, mode: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Moves:
    """Take the steps with an optimizer of their own; return how far each parameter has moved, in float64.

    ``mode`` is what gradients are computed in. The optimizer has no part in it: its own numbers, as a
    scaler's, have the types that they ask for.
    """
    leaves = {name: one for name, one in subject.name_parameters().items() if one.requires_grad}
    before = {name: leaf.detach().double().clone() for name, leaf in leaves.items()}
    make = subject.workload.optimizer
    optimizer = make(list(leaves.values())) if make else None
    for group in getattr(optimizer, "param_groups", ()):
        group["lr"] = max(group["lr"], LEAST_RATE)
    for _ in range(STEPS):
        subject.device.mark_step()
        with mode():
            function(*subject.workload.inputs, **subject.workload.kwargs).backward()
        if optimizer is not None:
            optimizer.step()
        for leaf in subject.list_leaves():
            leaf.grad = None
    return {name: leaf.detach().double() - before[name] for name, leaf in leaves.items()}
