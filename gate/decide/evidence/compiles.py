"""What both sides of a case compiled: with how much work, to which code, kernels and phases.

Inductor names a kernel by its operators and a number, which one kernel more changes:
``cpp_fused_add_relu_3``. So kernels are matched by code first, then by name without the number.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gate.decide.constants import MORE_PROCESSOR, MORE_WORK
from gate.decide.evidence.definitions import compare_items
from gate.decide.evidence.gather import Evidence
from gate.metrics import COMPILE_SIGNATURES, COMPILE_TIMES
from gate.records.cases import Kind, Metric, Task, group_cases
from gate.records.facts import FIRST_CALL, OTHER_PHASE, PHASES
from gate.records.run import BASE_ARM, Pairing, Run

# Where these are not zero a call runs Python that was not compiled.
_RUNS_PYTHON = (Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS)
# Of a workload: how large it is, and what a process may have set for all of torch.
_COMPARED = ("inputs", "parameters", "settings", "runtime")
# Calls of torch's own operators in generated code: other namespaces are of custom ones.
_OF_TORCH = re.compile(r"extern_kernels\.|torch\.ops\.(aten|prims|mkldnn|onednn|mkl|quantized)\.")
_OWN = "cpu_self"
# Processor seconds of a cold compile among its phases: the process's own, and its compilers'.
PROCESSOR_TIMES = (_OWN, "cpu_children")
# In the name of a kernel.
_NUMBER = re.compile(r"_\d+$")
_FUSED = re.compile(r"^(?:cpp|mps|pallas|triton(?:_[a-z]{3,4})?)_fused_?")
# The phase that each runs within. The graph of a backward pass is compiled when it is first called: after
# the forward's autograd phase, but with the same phases within it.
_AUTOGRAD, _BACKWARD = "aot_autograd", "backward"
_WITHIN: Mapping[str, str] = {
    _AUTOGRAD: "dynamo",
    "garbage_collection": "dynamo",
    "inductor": _AUTOGRAD,
    "code_generation": "inductor",
    "triton": "code_generation",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work of a compile less its baseline's; changes are logarithms, + is more, ``None`` is unknown."""

    calls: float | None = None  # Python calls
    processor: float | None = None  # CPU time of a cold compile, its compilers' included
    counts: bool = False  # a counter of the graph or of caches differs

    @property
    def has_more_calls(self) -> bool:
        return self.calls is not None and self.calls > math.log1p(MORE_WORK)

    @property
    def is_other(self) -> bool:
        """It made other work that was counted, or was not counted."""
        return self.calls is None or self.counts or self.has_more_calls

    def mirror(self) -> "Work":
        calls, processor = (None if change is None else -change for change in (self.calls, self.processor))
        return replace(self, calls=calls, processor=processor)

    def explains(self, metric: Metric) -> bool:
        """Whether a longer compile left a sign besides the clock, or had none to leave."""
        if metric is Metric.COLD_COMPILE_TIME and self.processor is not None:
            return self.has_more_calls or self.processor > math.log1p(MORE_PROCESSOR)
        return self.is_other

    def is_same(self, metric: Metric) -> bool:
        """What repeats exactly is the same."""
        return not self.is_other and not self.explains(metric)


def compare_work(evidence: Evidence) -> Work:
    """Calls of another baseline than that of the times explain nothing."""
    question = evidence.questions.get(Metric.COMPILE_CALLS)
    baselines = map(evidence.find_baseline, (Metric.COMPILE_CALLS, *COMPILE_TIMES))
    is_one = len({id(baseline) for baseline in baselines if baseline}) == 1
    stored = [match.baseline for match in evidence.stored if match.same_host and match.same_definition]
    before_s, after_s = (
        [sum_processor_s(side.phases_s) for side in sides if _OWN in side.phases_s]
        for sides in (stored, evidence.trials)
    )
    return Work(
        calls=_compare_medians(question.before, question.after) if question and is_one else None,
        processor=_compare_medians(before_s[:1], after_s),
        counts=has_other_counts(evidence),
    )


def _compare_medians(before: Sequence[float], after: Sequence[float]) -> float | None:
    """As a logarithm; ``None`` where a side has none, or zero."""
    old, new = (median(side) if side else 0.0 for side in (before, after))
    return math.log(new / old) if min(old, new) > 0 else None


def sum_processor_s(phases_s: Mapping[str, float]) -> float:
    return sum(phases_s.get(name, 0.0) for name in PROCESSOR_TIMES)


def has_other_counts(evidence: Evidence) -> bool:
    counters = (question for metric, question in evidence.questions.items() if metric in COMPILE_SIGNATURES)
    return any(median(question.before) != median(question.after) for question in counters)


def is_code_changed(evidence: Evidence) -> bool | None:
    """Whether no trial generated the baseline's code; ``None`` where either is unknown."""
    baseline = evidence.code_baseline
    digests = {trial.identity.digest for trial in evidence.trials} - {""}
    if baseline is None or not baseline.identity.digest or not digests:
        return None
    return baseline.identity.digest not in digests


def runs_stored_code(evidence: Evidence) -> bool:
    """Whether a call is known to run only the code that the baseline's compile made, on as much data.

    Not where settings that the code does not show differ or are unknown. Not where Python runs as well: after
    a graph break, in a training step, around the calls of another kind. Nor where the code calls an operator
    that is not torch's, which may have changed unseen.
    """
    case, baseline, questions = evidence.case, evidence.code_baseline, evidence.questions
    if case.kind is not Kind.CALL or case.task is not Task.INFERENCE or baseline is None:
        return False
    made = [trial.identity for trial in evidence.trials]
    if {identity.digest for identity in made} != {baseline.identity.digest} or not baseline.identity.digest:
        return False
    if is_other_workload(evidence) or not all(
        name in side.workload for side in (baseline, *evidence.trials) for name in _COMPARED
    ):
        return False
    if has_other_counts(evidence) or {identity.tuned for identity in made} != {baseline.identity.tuned}:
        return False
    if not all(metric in questions and not any(questions[metric].after) for metric in _RUNS_PYTHON):
        return False
    return has_torch_calls_alone(evidence)


def is_other_workload(evidence: Evidence) -> bool:
    baseline = evidence.code_baseline
    return baseline is not None and any(
        compare_items(baseline.workload, trial.workload) for trial in evidence.trials
    )


def has_torch_calls_alone(evidence: Evidence) -> bool:
    """Operators that are not torch's may be rebuilt unseen."""
    return all(_OF_TORCH.match(name) for trial in evidence.trials for name in trial.identity.calls)


def is_tuned_otherwise(evidence: Evidence) -> bool:
    """Than the baseline's, or differently by trial."""
    baseline = evidence.code_baseline
    tuned = {trial.identity.tuned for trial in evidence.trials} - {""}
    return bool(tuned) and (baseline is None or tuned != {baseline.identity.tuned})


def find_unchanged_code(run: Run) -> frozenset[str]:
    """By digest, in every pair. A case that failed, or was not compiled in both arms, may have changed."""
    failed = {failure.case_id for failure in run.failures}
    paired = group_cases(trial for trial in run.trials if trial.pairing is not Pairing.ALONE)
    same = set()
    for case_id, trials in paired.items():
        base = {trial.identity.digest for trial in trials if trial.arm == BASE_ARM}
        head = {trial.identity.digest for trial in trials if trial.arm != BASE_ARM}
        if case_id not in failed and len(base) == 1 and base == head and "" not in base:
            same.add(case_id)
    return frozenset(same)


def match_kernels(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Of kernels, name to hash, whose code differs between the sides.

    Pairs of names, before and after; ``""`` where a side has none.
    """
    same = set(before.values()) & set(after.values())
    old = [name for name, code in before.items() if code not in same]
    new = [name for name, code in after.items() if code not in same]
    pairs = []
    for key in (str, _name_stem):
        for name in list(new):
            match = next((kernel for kernel in old if key(kernel) == key(name)), None)
            if match is not None:
                pairs.append((match, name))
                old.remove(match)
                new.remove(name)
    return (*pairs, *(("", name) for name in new), *((name, "") for name in old))


def _name_stem(kernel: str) -> str:
    return _NUMBER.sub("", kernel)


def name_operators(kernel: str) -> str:
    """Joined as in its name; ``""`` where it fuses none."""
    stem = _name_stem(kernel)
    return _FUSED.sub("", stem) if _FUSED.match(stem) else ""


def count_words(kernels: Iterable[str]) -> Counter[str]:
    words = (word for kernel in kernels for word in name_operators(kernel).split("_"))
    return Counter(filter(None, words))


def part_phases(phases_s: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each phase of a compile, less the phases within it.

    What no phase accounts for is under :data:`OTHER_PHASE`.
    """
    spans_s = {name: phases_s[name] for name in PHASES if name in phases_s}
    backward_s = spans_s.pop(_BACKWARD, 0.0)
    if _AUTOGRAD in spans_s:
        spans_s[_AUTOGRAD] += backward_s
    self_s = dict(spans_s)
    for name, seconds in spans_s.items():
        parent = _WITHIN.get(name, "")
        if parent in self_s:
            self_s[parent] -= seconds - (backward_s if name == _AUTOGRAD else 0.0)
    parted = {name: max(0.0, seconds) for name, seconds in self_s.items()}
    if FIRST_CALL in phases_s and parted:
        parted[OTHER_PHASE] = max(0.0, phases_s[FIRST_CALL] - sum(parted.values()))
    return parted
