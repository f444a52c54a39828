"""Measuring drift of what only training has: parameters after some steps, and what a step does not return."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from gate.decide.constants import DRIFT_WRONG
from gate.measure.context import WorkerContext
from gate.measure.failures import NotFiniteError, describe_error
from gate.measure.numerics import reference
from gate.measure.numerics.comparing import compare
from gate.measure.numerics.draws import draws_alike
from gate.measure.numerics.drift import MISMATCH, Drift, compute_drift, is_finite
from gate.measure.numerics.exact import in_float64
from gate.measure.numerics.reference import Evaluation, evaluate
from gate.measure.numerics.state import copy_state
from gate.measure.seed_drift import CompiledSubject, record_drift
from gate.measure.workload.build import Function, StepResult, Subject, compile_function
from gate.measure.workload.tensors import map_tensors
from gate.records.cases import DEFAULT_BACKEND, Kind, Metric, Mode
from gate.records.codes import Code

STEPS = 10
# A case's rate is small so that thousands of timed steps leave its weights as they were: at 1e-5 the weights'
# own rounding is all that ten steps show.
LEAST_RATE = 1e-3

Moves = Mapping[str, torch.Tensor]
# The compiler's own front half: Dynamo and AOTAutograd make the graphs of both passes in a second, for which
# Inductor would generate code for many. What that makes of each operator, the measured step shows.
_FRONT_HALF = "aot_eager"


def has_steps(subject: Subject) -> bool:
    return (
        subject.is_training
        and subject.case.kind is Kind.CALL
        and bool(subject.list_named_parameters())
        and subject.workload.optimizer is not None
    )


def measure_step_drift(context: WorkerContext, pair: CompiledSubject, *, repeats: bool) -> None:
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
    """Take the steps with a new optimizer; return how far each parameter has moved, in float64."""
    leaves = {name: leaf for name, leaf in subject.list_named_parameters().items() if leaf.requires_grad}
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


def measure_unreturned(context: WorkerContext, subject: Subject) -> None:
    """Record a mismatch as drift where a step's outputs or its inputs' gradients have one."""
    samples = context.logbook.result.samples
    if samples.get(Metric.DRIFT, (MISMATCH,))[0] > DRIFT_WRONG:
        return
    try:
        compared = compare_unreturned(subject)
    except NotFiniteError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model or the compiler cannot do with such gradients
        context.logbook.note(Code.TRAINING_UNSEEN, why=describe_error(error))
        return
    if isinstance(compared, str):
        context.logbook.note(Code.TRAINING_UNSEEN, why=compared)
    elif compared is not None and compared.log2_ratio == MISMATCH:
        context.logbook.add_warnings(*compared.warnings)
        for metric in samples.keys() & {Metric.DRIFT, Metric.DRIFT_FLOAT32}:
            record_drift(context.logbook, metric, [compared])


def compare_unreturned(subject: Subject) -> Drift | str | None:
    if not subject.is_training or subject.case.kind is not Kind.CALL:
        return None
    measured = {f"the gradient of {name}" for name in subject.list_named_leaves()}
    subject, case = _ask_for_gradients(subject), subject.case
    forward, loss, state = subject.workload.forward, subject.workload.loss, copy_state(subject)

    def compute_all(*inputs: Any, **kwargs: Any) -> StepResult:  # noqa: ANN401 - any model's
        returned = forward(*inputs, **kwargs)
        return StepResult(loss(returned) if loss else returned, returned)

    eager = evaluate(subject, compute_all, state)
    # Of a mask of infinities eager has none that is a number.
    new = {name for name, value in eager.gradients.items() if name not in measured and is_finite(value)}
    if len(eager.outputs) + len(eager.non_tensors) <= 1 and not new:
        return None  # the loss depends on the only output
    if case.backend == DEFAULT_BACKEND:
        case = replace(case, backend=_FRONT_HALF, mode=Mode.DEFAULT, options={})
    compiled = evaluate(subject, compile_function(compute_all, case), state)
    if not draws_alike(eager.draws, compiled.draws):
        return "compiled code draws other random numbers"
    return compare(None, _keep(eager, new), _keep(compiled, new), state)


def _keep(side: Evaluation, names: Collection[str]) -> Evaluation:
    gradients = {name: value for name, value in side.gradients.items() if name in names}
    return replace(side, gradients=gradients, written={}, values={})


def _ask_for_gradients(subject: Subject) -> Subject:
    def ask(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.requires_grad or not tensor.is_floating_point():
            return tensor
        return tensor.detach().clone().requires_grad_()

    inputs, kwargs = map_tensors(ask, (subject.workload.inputs, subject.workload.kwargs))
    return replace(subject, workload=replace(subject.workload, inputs=inputs, kwargs=kwargs), later=())
