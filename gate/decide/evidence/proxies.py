"""Noise-free signs that a compile did other work than its baseline, and that a trial had its device alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from gate.decide.constants import MORE_PROCESSOR, MORE_WORK
from gate.decide.evidence.values import Evidence, compare_items
from gate.metrics import COMPILE_SIGNATURES, COMPILE_TIMES
from gate.records import Kind, Metric, Task

# Where these are not zero a call runs Python that was not compiled.
_PYTHON_BESIDE = (Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS)
# Of a workload: how large it is, and what a process may have set for all of torch.
_COMPARED = ("inputs", "parameters", "settings", "runtime")
# What generated code calls of torch's own: the other namespaces are of custom operators.
_OF_TORCH = re.compile(r"extern_kernels\.|torch\.ops\.(aten|prims|mkldnn|onednn|mkl|quantized)\.")
_OWN = "cpu_self"
# Processor seconds of a cold compile among its phases: the process's own, and its compilers'.
PROCESSOR_TIMES = (_OWN, "cpu_children")


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a compile did against its baseline; changes are logarithms, + is more, ``None`` is unknown."""

    calls: float | None = None  # Python calls
    processor: float | None = None  # CPU time of a cold compile, its compilers' included
    counts: bool = False  # a counter of the graph or of caches differs

    @property
    def has_more_calls(self) -> bool:
        """Whether it is known to have made more Python calls."""
        return self.calls is not None and self.calls > math.log1p(MORE_WORK)

    @property
    def is_other(self) -> bool:
        """Whether it did other work that can be counted, or was not counted."""
        return self.calls is None or self.counts or self.has_more_calls

    def mirror(self) -> Work:
        """The same with more and less exchanged."""
        calls, processor = (None if one is None else -one for one in (self.calls, self.processor))
        return replace(self, calls=calls, processor=processor)

    def explains(self, metric: Metric) -> bool:
        """Whether a longer compile left a trace beside the clock, or there is nothing to know it by.

        A cold one whose CPU time is known must have taken more of it, or made more Python calls: a guard
        more is a trace, and no reason for seconds.
        """
        if metric is Metric.COLD_COMPILE_TIME and self.processor is not None:
            return self.has_more_calls or self.processor > math.log1p(MORE_PROCESSOR)
        return self.is_other

    def is_same(self, metric: Metric) -> bool:
        """Whether a compile is known to have done its baseline's work: what repeats exactly did not move."""
        return not self.is_other and not self.explains(metric)


def compare_work(evidence: Evidence) -> Work:
    """Compare what the compiles of a case did with its baseline's, or the base's.

    Another baseline's calls, of a newer release or another host, say nothing of what this one's time is of.
    """
    calls = processor = None
    question = evidence.questions.get(Metric.COMPILE_CALLS)
    baselines = map(evidence.find_baseline, (Metric.COMPILE_CALLS, *COMPILE_TIMES))
    is_one = len({id(one) for one in baselines if one}) == 1
    if question is not None and is_one and min(*question.before, *question.after) > 0:
        calls = math.log(median(question.after) / median(question.before))
    known = (one.baseline.phases_s for one in evidence.stored if one.same_host and one.same_definition)
    before_s = next((sum_processor_s(phases_s) for phases_s in known if _OWN in phases_s), 0.0)
    after_s = [sum_processor_s(trial.phases_s) for trial in evidence.trials if _OWN in trial.phases_s]
    if before_s > 0 and after_s and min(after_s) > 0:
        processor = math.log(median(after_s) / before_s)
    return Work(calls=calls, processor=processor, counts=has_other_counts(evidence))


def sum_processor_s(phases_s: Mapping[str, float]) -> float:
    """Processor seconds of a cold compile, its compilers' included; 0 where they are unknown."""
    return sum(phases_s.get(name, 0.0) for name in PROCESSOR_TIMES)


def has_other_counts(evidence: Evidence) -> bool:
    """Whether a counter of the compile differs from the baseline's."""
    counters = (one for metric, one in evidence.questions.items() if metric in COMPILE_SIGNATURES)
    return any(median(one.before) != median(one.after) for one in counters)


def is_code_changed(evidence: Evidence) -> bool | None:
    """Whether no trial generated the baseline's code; ``None`` where either side's is unknown."""
    baseline = evidence.code_baseline
    digests = {trial.identity.digest for trial in evidence.trials} - {""}
    if baseline is None or not baseline.identity.digest or not digests:
        return None
    return baseline.identity.digest not in digests


def runs_stored_code(evidence: Evidence) -> bool:
    """Whether a call is known to run nothing but the code that the baseline's compile made, on as much data.

    Not so where sizes that the code leaves open, or settings that no code shows, as how many threads there
    are, are others or unknown. Not so where Python runs beside it:
    after a graph break, in a training step, in what a kind of case does around its calls. Nor where the code
    calls an operator that is not torch's own, whose implementation may be another one: eager calls it too.
    """
    case, baseline, asked = evidence.case, evidence.code_baseline, evidence.questions
    if case.kind is not Kind.CALL or case.task is not Task.INFERENCE or baseline is None:
        return False
    made = [trial.identity for trial in evidence.trials]
    if {one.digest for one in made} != {baseline.identity.digest} or not baseline.identity.digest:
        return False
    if is_other_workload(evidence) or not all(
        name in side.workload for side in (baseline, *evidence.trials) for name in _COMPARED
    ):
        return False
    if has_other_counts(evidence) or {one.tuned for one in made} != {baseline.identity.tuned}:
        return False
    if not all(metric in asked and not any(asked[metric].after) for metric in _PYTHON_BESIDE):
        return False
    return has_torch_calls_alone(evidence)


def is_other_workload(evidence: Evidence) -> bool:
    """Whether a trial is known to have had other sizes or settings than the baseline."""
    baseline = evidence.code_baseline
    return baseline is not None and any(
        compare_items(baseline.workload, trial.workload) for trial in evidence.trials
    )


def has_torch_calls_alone(evidence: Evidence) -> bool:
    """Whether the generated code calls torch's own operators alone: another may be built anew, unseen."""
    stored = [evidence.code_baseline] if evidence.code_baseline else []
    made = [one.identity for one in (*stored, *evidence.trials)]
    return all(_OF_TORCH.match(name) for one in made for name in one.calls)


def is_tuned_otherwise(evidence: Evidence) -> bool:
    """Whether kernels were tuned to other configurations than the baseline's, or otherwise in each trial."""
    baseline = evidence.code_baseline
    tuned = {trial.identity.tuned for trial in evidence.trials} - {""}
    return bool(tuned) and (baseline is None or tuned != {baseline.identity.tuned})
