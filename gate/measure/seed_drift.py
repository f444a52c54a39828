"""Measuring drift: at the case's dtype, and in float32 with TF32 off."""

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch

from gate.decide.constants import DRIFT_LIMIT_FLOAT32
from gate.measure.compilers import compile_anew, compile_together
from gate.measure.context import WorkerContext
from gate.measure.failures import NotFiniteError, describe_error
from gate.measure.kinds.protocol import make_protocol
from gate.measure.logbook import Logbook
from gate.measure.numerics import reference
from gate.measure.numerics.comparing import compare, list_reference_far, list_unlike
from gate.measure.numerics.draws import Recording, draws_alike, draws_nothing
from gate.measure.numerics.drift import MISMATCH, Drift, compute_checksum, describe_tensor
from gate.measure.numerics.habit import Habit, classify_habit, ignores_seed
from gate.measure.numerics.perturbing import excuse, measure_beyond
from gate.measure.numerics.reference import LATER, Called, Evaluation
from gate.measure.numerics.state import copy_state
from gate.measure.precision import bakes_tf32, convolves_in_tf32, without_tf32
from gate.measure.workload.build import SEED, Function, Subject, has_cudagraphs
from gate.records.cases import DType, Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import DRIFT_DEFINITION, Worst

_INDUCTOR = "inductor"  # the backend that draws random numbers of its own
# Random numbers are drawn by the operators that eager calls.
_DRAWS_AS_EAGER = {"torch._inductor.config": {"fallback_random": True}}
# No code is found in a cache, and none left there: no cache key names TF32.
_WITHOUT_CACHES = {
    "torch._functorch.config": {"enable_autograd_cache": False},
    "torch._inductor.config": {"fx_graph_cache": False},
}

Redrawn = Sequence[torch.Tensor] | None  # values of all parameters, buffers and inputs, by the factory


@dataclass(frozen=True, kw_only=True)
class CompiledSubject:
    subject: Subject
    compiled: Function


def measure_drift(context: WorkerContext, pair: CompiledSubject) -> bool:
    """Measure drift under each seed; the samples are the means. The subject's state must be as built.

    Returns whether calls just repeat: they draw no random numbers, and keep no state but what is put back.
    """
    context.logbook.record(drift_definition=DRIFT_DEFINITION)
    protocol, drawn = make_protocol(context.case), reference.draw_state(pair.subject, SEED + 1)
    if protocol.calls_follow:
        inputs = pair.subject.list_inputs()
        pair = _call_thrice(pair, drawn and drawn[len(drawn) - len(inputs) :])
    habit, first = classify_habit(pair.subject)
    if habit is Habit.STATEFUL:
        context.logbook.note(Code.STATE_UNJUDGED)
    elif habit is Habit.RANDOM and not protocol.shares_state:
        context.logbook.note(Code.RANDOM_UNJUDGED)
    elif habit is Habit.RANDOM and context.case.backend == _INDUCTOR:
        with compile_anew(_DRAWS_AS_EAGER):
            _measure_seeds(context, pair, first, habit, drawn)
    else:
        _measure_seeds(context, pair, first, habit, drawn)
    return habit is Habit.SAME


def _call_thrice(pair: CompiledSubject, redrawn: Sequence[torch.Tensor] | None) -> CompiledSubject:
    first = [tensor.detach().clone() for tensor in pair.subject.list_inputs()]
    later = ((), ()) if redrawn is None else (redrawn, first)
    return replace(pair, subject=replace(pair.subject, later=later))


def _iterate_seeds(
    context: WorkerContext, pair: CompiledSubject, drawn: Redrawn
) -> Iterator[CompiledSubject]:
    first = [tensor.detach().clone() for tensor in pair.subject.list_inputs()]
    yield pair
    for index in range(1, context.sampling.drift_seeds):
        if index > 1:
            drawn = reference.draw_state(pair.subject, SEED + index)
        if drawn is None or not make_protocol(context.case).can_redraw:
            return
        reference.write_values(pair.subject.list_state(), drawn)
        yield _call_thrice(pair, first) if pair.subject.later else pair


def _measure_seeds(
    context: WorkerContext, given: CompiledSubject, first: Called, habit: Habit, drawn: Redrawn
) -> None:
    twin: CompiledSubject | None = None
    drifts: dict[Metric, list[Drift]] = {Metric.DRIFT: [], Metric.DRIFT_FLOAT32: []}
    for index, pair in enumerate(_iterate_seeds(context, given, drawn)):
        eager = first if not index and habit is Habit.SAME else _evaluate_eager(pair.subject, habit)
        exact = _evaluate_reference(context, pair.subject, eager)
        if not index:
            _record_workload(context, exact, eager.evaluation)
            if exact is not None and pair.subject.workload.exact is None:
                context.logbook.add_warnings(*list_reference_far(exact, eager.evaluation))
            if not eager.evaluation.has_tensors:  # a drift of 0 would look as if all were well
                context.logbook.note(Code.NO_TENSORS)
        drift = _compare(context, pair, exact, eager)
        if drift is None:
            return
        drifts[Metric.DRIFT].append(drift)
        if exact is None:
            break
        # In 16 bits float32 may stand in for float64; and there may have been no room under an earlier seed.
        if not exact.is_float64 or len(drifts[Metric.DRIFT_FLOAT32]) < index:
            continue
        with _note_no_twin(context):
            twin = twin or _make_float32_twin(pair)
            precise = _compare_in_float32(context, pair, twin, exact, habit)
            drifts[Metric.DRIFT_FLOAT32].append(drift if precise is None else precise)
    for metric, seeds in drifts.items():
        if seeds and len(seeds) == len(drifts[Metric.DRIFT]):
            record_drift(context.logbook, metric, seeds)


def _evaluate_eager(subject: Subject, habit: Habit) -> Called:
    state = copy_state(subject)
    with Recording() if habit is Habit.RANDOM else nullcontext() as recording:
        evaluation = reference.evaluate(subject, subject.function, state)
    return Called(state=state, drawn=recording and recording.drawn, evaluation=evaluation)


def record_drift(logbook: Logbook, metric: Metric, seeds: Sequence[Drift]) -> None:
    ratios = [seed.log2_ratio for seed in seeds if seed.log2_ratio is not None]
    logbook.add_samples({metric: (MISMATCH if MISMATCH in ratios else statistics.mean(ratios),)})
    largest = max(seeds, key=lambda seed: (_get_doubt(seed), seed.log2_ratio or 0.0))
    worst = Worst(output=largest.worst, steps=largest.steps, beyond=largest.beyond)
    logbook.record(worst={**logbook.result.worst, metric: worst})


def _get_doubt(drift: Drift) -> float:
    if drift.log2_ratio is None or drift.log2_ratio <= DRIFT_LIMIT_FLOAT32:
        return -math.inf
    return math.inf if drift.beyond is None else drift.beyond


@contextmanager
def _note_no_twin(context: WorkerContext) -> Iterator[None]:
    """Note that the copy in float32 failed: the model is meant for another type, in which it does run."""
    try:
        yield
    except NotFiniteError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model or the compiler cannot do in float32
        is_of_memory = isinstance(error, RuntimeError) and reference.is_out_of_memory(error)
        no_room = "the device has no memory for the model in float32 beside its own"
        why = no_room if context.device.kind.is_gpu and is_of_memory else describe_error(error)
        context.logbook.note_unmeasured(Metric.DRIFT_FLOAT32, why)


def _make_float32_twin(pair: CompiledSubject) -> CompiledSubject | None:
    if pair.subject.case.dtype == DType.FLOAT32:
        return None  # it is its own copy
    subject = reference.make_twin(pair.subject, torch.float32)
    return CompiledSubject(subject=subject, compiled=make_protocol(subject.case).compile(subject))


def _compare_in_float32(
    context: WorkerContext,
    pair: CompiledSubject,
    twin: CompiledSubject | None,
    exact: Evaluation,
    habit: Habit,
) -> Drift | None:
    """Compare the float32 twin, if there is one; None where it shows no more than what was compared."""
    is_own = twin is None
    if twin is not None:
        reference.write_values(twin.subject.list_state(), pair.subject.list_state())
        twin = replace(twin, subject=replace(twin.subject, later=pair.subject.later))
    elif not context.device.kind.has_tf32:
        return None  # there is no TF32 to turn off
    pair = twin or pair
    # What is compiled may keep TF32, whatever is set when it is called: in its code, or in a CUDA graph.
    is_recorded = is_own and has_cudagraphs(pair.subject.case) and convolves_in_tf32()
    keeps_tf32 = bakes_tf32() or is_recorded
    with (
        # A processor's kernels are few, and its compilers would need the cores that the case's threads have.
        compile_together() if context.device.kind.is_gpu else nullcontext(),
        compile_anew(_WITHOUT_CACHES) if keeps_tf32 else nullcontext(),
        without_tf32(),
    ):
        eager = _evaluate_eager(pair.subject, habit)
        if habit is Habit.RANDOM and not is_own:  # 16 bits draw other numbers than 32
            return _compare(context, pair, _evaluate_reference(context, pair.subject, eager), eager)
        return _compare(context, pair, exact, eager)


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
    """Evaluate a case of 16 bits in 32; None where it cannot be called in these either."""
    try:
        twin = reference.make_twin(subject, torch.float32)
        return reference.evaluate_twin(twin, eager.state, eager.drawn, is_float64=False)
    except Exception:  # noqa: BLE001 - whatever it cannot do in float32
        return None


def _compare(
    context: WorkerContext, pair: CompiledSubject, exact: Evaluation | None, eager: Called
) -> Drift | None:
    """Compute the drift of a pair; None where the reference shows nothing, which is noted."""
    protocol = make_protocol(pair.subject.case)
    protocol.renew(pair.compiled)
    compiled = reference.evaluate(pair.subject, pair.compiled, eager.state)
    if eager.drawn is not None and not _can_judge(pair, eager, compiled):
        context.logbook.note(Code.RANDOM_UNJUDGED)
        return None
    if not protocol.shares_state:
        if eager.evaluation.written:  # by a package or another process, to tensors of its own
            names = {"outputs": tuple(sorted(eager.evaluation.written))}
            context.logbook.add_warnings(Fact(code=Code.WRITES_UNSEEN, names=names))
        eager = replace(eager, evaluation=replace(eager.evaluation, written={}, values={}))
        compiled = replace(compiled, written={}, values={})
    if Metric.LAYOUT_DIFFERENCES not in context.logbook.result.samples:
        unlike = list_unlike(eager.evaluation, compiled, eager.state)
        context.logbook.add_samples({Metric.LAYOUT_DIFFERENCES: (len(unlike),)})
        context.logbook.add_warnings(*unlike)
    drift = compare(exact, eager.evaluation, compiled, eager.state)
    if drift.log2_ratio is not None and drift.log2_ratio > DRIFT_LIMIT_FLOAT32:
        compiled = excuse(pair.subject, exact, eager, compiled)
        drift = compare(exact, eager.evaluation, compiled, eager.state)
    # Under another seed the same has other numbers.
    noted = [(fact.code, fact.names) for fact in context.logbook.result.warnings]
    context.logbook.add_warnings(*(fact for fact in drift.warnings if (fact.code, fact.names) not in noted))
    if drift.log2_ratio == MISMATCH:
        return drift
    if exact is None or drift.log2_ratio is None or not eager.evaluation.has_tensors:
        return None
    if drift.log2_ratio <= DRIFT_LIMIT_FLOAT32 or not exact.is_float64:
        return drift
    return replace(drift, beyond=_measure_beyond(pair.subject, exact, eager, compiled))


def _can_judge(pair: CompiledSubject, eager: Called, compiled: Evaluation) -> bool:
    """Whether compiled forwards draw what eager's do, or nothing: left out, random numbers are a fault.

    A backward that draws others computes the gradients of another forward.
    """
    if draws_alike(eager.evaluation.draws, compiled.draws):
        return True
    return draws_nothing(compiled.draws) and ignores_seed(pair.subject, pair.compiled, eager.state)


def _measure_beyond(subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation) -> float | None:
    try:
        return measure_beyond(subject, exact, eager, compiled)
    except RuntimeError as error:
        if not (subject.device.kind.is_gpu and reference.is_out_of_memory(error)):
            raise
        return None


def _record_workload(context: WorkerContext, exact: Evaluation | None, eager: Evaluation) -> None:
    first = {name: value for name, value in eager.outputs.items() if LATER not in name}
    named = {name.replace("the loss", "output"): value for name, value in first.items()}
    described = ", ".join(f"{name} {describe_tensor(value)}" for name, value in named.items())
    context.logbook.record(
        workload={
            **context.logbook.result.workload,
            "outputs": described,
            **({"reference": compute_checksum({**exact.outputs, **exact.gradients})} if exact else {}),
        }
    )
