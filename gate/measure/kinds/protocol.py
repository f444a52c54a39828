"""The steps of a measurement that a kind of case may do in its own way; here those of a plain call."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from gate.errors import UsageError
from gate.installation import name_page
from gate.kinds import has_metric
from gate.measure import identity
from gate.measure.device.device import Device
from gate.measure.graph import GraphReport, get_cache_directory
from gate.measure.rounds import Step
from gate.measure.workload.build import (
    SEED,
    Function,
    Subject,
    build_workload,
    compile_function,
    make_compiled_step,
    make_step,
    make_subject,
)
from gate.records.cases import Case, Kind, Metric
from gate.records.run import CodeIdentity
from gate.workload import Workload

_NAMED_FRAMES = 2  # frames left to eager that a message names
_CLASSES = {
    Kind.SHAPES: "variants.Shapes",
    Kind.EXPORT: "exported.Export",
    Kind.CACHE: "variants.Cache",
    Kind.DATA: "variants.Data",
    Kind.SERVING: "variants.Serving",
    Kind.DISTRIBUTED: "distributed.Distributed",
    Kind.SCOPE: "variants.PartialCompile",
    Kind.ONNX: "exported.Onnx",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    samples: Mapping[Metric, Sequence[float]] = field(default_factory=dict)
    parts_s: Mapping[str, float] = field(default_factory=dict)  # compiled seconds of a call's parts


class Protocol:
    """A kind of case: each method is one step of a measurement, in the order in which they are called."""

    # Whether other weights and inputs can be written into the tensors of what is compiled.
    can_redraw = True
    # Whether what is compiled writes the subject's own tensors; else what it writes is not seen.
    shares_state = True
    # Whether a compiled call begins with what the one before it has left.
    calls_follow = True

    def __init__(self, case: Case) -> None:
        self.case = case

    def build(self, seed: int = SEED) -> Workload:
        return build_workload(self.case, seed)

    def make_subject(self, workload: Workload, device: Device) -> Subject:
        return make_subject(workload, self.case, device, self.spread)

    def spread(self, function: Function) -> Function:
        return function

    def enter(self, *, is_cold: bool) -> None:
        """Prepare the caches of this process; ``is_cold`` is true in the first process only."""

    def compile(self, subject: Subject) -> Function:
        """Make the compiled ``subject.function``; nothing is compiled before its first call."""
        return self.spread(compile_function(subject.plain, subject.case))

    def renew(self, compiled: Function) -> None:
        """Reset the state of what :meth:`compile` made, where that has its own."""

    def make_eager_step(self, subject: Subject) -> Step:
        return make_step(subject, subject.function)

    def make_compiled_step(self, subject: Subject, compiled: Function) -> Step:
        return make_compiled_step(subject, compiled)

    def check_compiled(self, report: GraphReport) -> None:
        """Check that a compiled call compiled: else it is eager's, and no figure of it is a compiled one.

        A graph is what counts. One without kernels is fine: library calls and some backends need none.

        Raises:
            UsageError: There is no graph; Dynamo's reasons are in the message where it gives any.
        """
        # What torch does not report is no finding, and what is exported into a file would have failed by now.
        if report.counts.get(Metric.UNIQUE_GRAPHS) != 0 or not has_metric(self.case, Metric.UNIQUE_GRAPHS):
            return
        left = (
            " at ".join(filter(None, map(frame.name, ("reason", "location")))) for frame in report.skipped
        )
        frames = "; ".join(islice(left, _NAMED_FRAMES))
        why = frames or "it makes no tensors, or Dynamo is disabled or skips it"
        fix = f"Compile something, or leave the case out; what Dynamo skips: {name_page('adding-a-model')}."
        raise UsageError(f"nothing was compiled, 0 graphs: {why}", fix)

    def count_misses(self, report: GraphReport) -> int:
        """Count what the second process had to compile although the first one had left it."""
        return report.cache.misses

    def identify(self) -> CodeIdentity:
        return identity.read_identity(get_cache_directory())

    def count_kernels(self) -> int:
        return identity.count_kernels(get_cache_directory())

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        return Seen()

    def leave(self) -> None:
        """Leave what the second process needs apart from the caches, where no process has yet."""

    def close(self) -> None:
        """End whatever was started."""


def join_workloads(built: Sequence[Workload]) -> Workload:
    inputs = tuple((workload.inputs, dict(workload.kwargs)) for workload in built)
    return replace(built[0], inputs=inputs, kwargs={})


def make_protocol(case: Case) -> Protocol:
    """Make the protocol of a case's kind; importing what two processes need takes seconds."""
    if case.kind is Kind.CALL:
        return Protocol(case)
    module, _, name = _CLASSES[case.kind].partition(".")
    made: Protocol = getattr(importlib.import_module(f"{__package__}.{module}"), name)(case)
    return made
