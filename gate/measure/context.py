import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gate.errors import UsageError
from gate.kinds import has_metric
from gate.measure import graph
from gate.measure.compile_options import read_set_options
from gate.measure.compilers import tune_together
from gate.measure.device.device import Device
from gate.measure.environment import describe_runtime, describe_settings
from gate.measure.graph import GraphReport
from gate.measure.identity import read_sources
from gate.measure.kinds.protocol import Protocol, make_protocol
from gate.measure.logbook import Logbook
from gate.measure.numerics.drift import check_any_finite, describe_tensor
from gate.measure.turns import Turns
from gate.measure.workload.build import Function, Subject, load_factory
from gate.measure.workload.tensors import is_foreign, iterate_tensors
from gate.metrics import SPECS
from gate.records.cases import Case, Kind, Metric, Mode, Task
from gate.records.codes import Code
from gate.records.protocol import Sampling, Side, Stage
from gate.records.run import GRADIENTS, GraphBreak
from gate.workload import Workload

_FIX = "Register what it uses in a module, as in a torch.nn.ModuleList, and give that module as forward."
_MAX_INPUTS = 8  # tensors that are named
_DYNAMO = "torch._dynamo"


def call_watched(subject: Subject, step: Callable[[], Any]) -> str:
    """Call ``step``; describe the parameters that it uses and that are neither cast nor trained.

    Raises:
        UsageError: It fails, or is to train, and uses such parameters. Else what the call raises.
    """
    watch = _Watch(subject)
    try:
        with watch:
            step()
    except Exception as error:
        if reason := watch.describe():
            raise UsageError(f"{type(error).__name__}: {error}; {reason}", _FIX) from error
        raise
    reason = watch.describe()
    if reason and subject.is_training:
        raise UsageError(reason, _FIX)
    return reason


class _Watch(TorchFunctionMode):
    """Collects the parameters that functions of torch get and the subject does not hold."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._known = {id(tensor) for tensor in subject.list_state()}
        self._unseen: dict[int, torch.nn.Parameter] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's
        if getattr(func, "__name__", "") != "__get__":
            for argument in pytree.tree_leaves((args, kwargs)):
                if isinstance(argument, torch.nn.Parameter) and id(argument) not in self._known:
                    self._unseen[id(argument)] = argument
        return func(*args, **(kwargs or {}))

    def describe(self) -> str:
        if not self._unseen:
            return ""
        shapes = ["x".join(map(str, parameter.shape)) or "one number" for parameter in self._unseen.values()]
        more = f" and {len(shapes) - 1} more" if shapes[1:] else ""
        return (
            f"forward uses a parameter of {shapes[0]}{more} that no module which can be found has registered"
        )


@dataclass(frozen=True, kw_only=True)
class WorkerContext:
    case: Case
    device: Device
    sampling: Sampling
    logbook: Logbook
    directory: str  # of the measured code; locations in it are relative to it
    turns: Turns | None = None  # in a pair
    skips_calls: bool = False  # a warm process does not count those of a compile
    caches: Mapping[str, str] = field(default_factory=dict)  # directories by their variables

    def arrive(self) -> None:
        """In a pair, wait for this arm's first turn: if both call at once, their threads wait for cores."""
        if self.turns is not None:
            self.turns.arrive()
            self.logbook.charge(Stage.TURN, self.turns.take_waited_s())


@dataclass(frozen=True, kw_only=True)
class Prepared:
    subject: Subject
    compiled: Function
    eager_step: Callable[[], Any]
    compiled_step: Callable[[], Any]
    protocol: Protocol


@contextmanager
def open_case(
    context: WorkerContext, workload: Workload | None, *, is_cold: bool = True, arrives: bool = True
) -> Iterator[Prepared]:
    """Build the workload, unless the caller brings one, and call it eagerly; end what it started afterwards.

    ``is_cold`` is true in a process that compiles, false in one that finds what another compiled. Where it
    ``arrives``, this arm of a pair calls in its turn alone.

    Raises:
        NotFiniteError: The first output holds NaN, or nothing but infinities.
    """
    with use_gradients(context.case), closing(make_protocol(context.case)) as protocol:
        subject = build_subject(context, workload, lambda built: protocol.make_subject(built, context.device))
        if arrives:
            context.arrive()
        yield _prepare_case(context, subject, protocol, is_cold=is_cold)


def _prepare_case(context: WorkerContext, subject: Subject, protocol: Protocol, *, is_cold: bool) -> Prepared:
    logbook, compiles = context.logbook, _count_compiles()
    for path, leaf in subject.iterate_given():
        if is_foreign(leaf):
            logbook.note(Code.INPUT_AS_IT_IS, input=path, kind=type(leaf).__qualname__)
    logbook.enter(Stage.EAGER)
    eager_step = protocol.make_eager_step(subject)
    if context.case.kind is Kind.DISTRIBUTED:  # each process trains a copy
        eager_step()
    elif unseen := call_watched(subject, eager_step):
        logbook.note(Code.PARAMETERS_UNSEEN, why=unseen)
    returned = eager_step()  # the first call sets libraries up, this one shows that it worked
    settings = describe_settings(context.device.kind)  # the workload's own: its calls may set some
    about = {**logbook.result.workload, "settings": settings, "runtime": describe_runtime()}
    logbook.record(workload=about)
    outputs = {f"output{path}": value for path, value in iterate_tensors(returned)}
    check_any_finite(outputs, Side.EAGER)
    caches = graph.observe_graphs(context.directory).caches if _DYNAMO in sys.modules else {}
    if caches or _count_compiles() > compiles:  # another backend than Inductor asks no cache
        logbook.note(Code.EAGER_COMPILED)
    logbook.hold_caches(context.caches)  # eager calls may set them too
    logbook.enter(Stage.COMPILE)  # torch refuses wrong options and backends here, before the first call
    if context.device.kind.draws_tuning and context.case.is_tuned:
        tune_together()
    protocol.enter(is_cold=is_cold)
    compiled = protocol.compile(subject)
    return Prepared(
        subject=subject,
        compiled=compiled,
        eager_step=eager_step,
        compiled_step=protocol.make_compiled_step(subject, compiled),
        protocol=protocol,
    )


def _count_compiles() -> int:
    return graph.count_chosen_compiles() if _DYNAMO in sys.modules else 0


def try_case(context: WorkerContext, workload: Workload | None) -> None:
    """Call the workload eagerly, and trace what would be compiled; no code is generated.

    Raises:
        UsageError: Nothing would be compiled. Else as :func:`open_case`.
    """
    with open_case(context, workload) as prepared:
        # What is no graph of this process is not traced here: a package, or two processes.
        if has_metric(context.case, Metric.UNIQUE_GRAPHS) and context.case.kind is not Kind.DISTRIBUTED:
            _trace(context, prepared.subject)


def _trace(context: WorkerContext, subject: Subject) -> None:
    context.logbook.enter(Stage.COMPILE)
    case = replace(context.case, backend="eager", mode=Mode.DEFAULT, options={})
    protocol = make_protocol(case)
    torch.compiler.reset()
    graph.start_observation()
    traced = protocol.compile(replace(subject, case=case))
    traced(*subject.workload.inputs, **subject.workload.kwargs)
    protocol.check_compiled(graph.observe_graphs(context.directory))


def build_subject(
    context: WorkerContext, workload: Workload | None, make_subject: Callable[[Workload], Subject]
) -> Subject:
    if workload is None:
        context.logbook.enter(Stage.IMPORT)
        load_factory(context.case.factory)
    context.logbook.enter(Stage.BUILD)
    subject = make_subject(workload or make_protocol(context.case).build())
    context.logbook.hold_caches(context.caches)
    parameters = subject.module.parameters() if subject.module is not None else ()
    size = {
        "parameters": str(sum(parameter.numel() for parameter in parameters)),
        "inputs": _describe_inputs(subject),
    }
    asking = [path for path, leaf in subject.iterate_given() if getattr(leaf, "requires_grad", False)]
    if asking and not subject.is_training:  # as forces are taken by positions
        torch.set_grad_enabled(True)
        size[GRADIENTS] = asking[0]
        context.logbook.note(Code.GRADIENTS_TAKEN, input=asking[0])
    context.logbook.record(workload=size)
    return subject


def record_first(context: WorkerContext, report: GraphReport, phases_s: Mapping[str, float]) -> None:
    about = {**context.logbook.result.workload, **report.settings}
    phases_s = {**report.phases_s, **phases_s}
    context.logbook.record(workload=about, graph_breaks=report.graph_breaks, phases_s=phases_s)
    context.logbook.record(options=read_set_options())
    _add_counts(context, {Metric.GRAPH_BREAKS: report.counts.get(Metric.GRAPH_BREAKS)})


def record_graphs(context: WorkerContext, protocol: Protocol) -> None:
    record_code(context, protocol)
    report = graph.observe_graphs(context.directory)
    counts: dict[Metric, int | None] = {**report.counts, Metric.GENERATED_KERNELS: protocol.count_kernels()}
    breaks = _add_later(context.logbook.result.graph_breaks, report.graph_breaks)
    if Metric.GRAPH_BREAKS in counts:
        counts[Metric.GRAPH_BREAKS] = len(breaks)
    _add_counts(context, counts)
    context.logbook.record(graph_breaks=breaks, recompile_reasons=report.recompile_reasons)
    context.logbook.record(unknown=report.unknown)
    context.logbook.add_warnings(*report.skipped, *report.unknown)


def _add_later(first: Iterable[GraphBreak], seen: Iterable[GraphBreak]) -> tuple[GraphBreak, ...]:
    """Add to the first call's breaks those of later calls.

    A frame that is recompiled breaks where it did, if for a reason that names other shapes.
    """
    breaks = [*first]
    for item in seen:
        if all((item.location or item.reason) != (before.location or before.reason) for before in breaks):
            breaks.append(item)
    return tuple(breaks)


def record_code(context: WorkerContext, protocol: Protocol) -> None:
    context.logbook.enter(Stage.EVIDENCE)
    sources = read_sources(graph.get_cache_directory())
    context.logbook.record(identity=protocol.identify(), sources=sources)


def _add_counts(context: WorkerContext, counts: Mapping[Metric, int | None]) -> None:
    context.logbook.add_samples(
        {
            metric: (value,)
            for metric, value in counts.items()
            if value is not None
            and (context.device.kind.is_gpu or not SPECS[metric].is_gpu_only)
            and has_metric(context.case, metric)
        }
    )


def _describe_inputs(subject: Subject) -> str:
    tensors = subject.list_inputs()
    listed, more = tensors[:_MAX_INPUTS], tensors[_MAX_INPUTS:]
    rest = [f"{len(more)} more of {sum(tensor.numel() for tensor in more)} elements"] if more else []
    return ", ".join([*map(describe_tensor, listed), *rest])


@contextmanager
def use_gradients(case: Case) -> Iterator[None]:
    with torch.set_grad_enabled(case.task == Task.TRAINING):
        yield
