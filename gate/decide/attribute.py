"""Why a case changed: evidence beside the numbers, each told only where it is true of that case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gate.decide.controls import COMPILE_TIMES
from gate.decide.evidence import Evidence, match_metric
from gate.decide.machine import Shifts, list_shifts
from gate.decide.proxies import PROCESSOR_TIMES, is_code_changed, is_tuned_otherwise
from gate.decide.values import collect_phases
from gate.metrics import SPECS, Family
from gate.records import Cause, Comparison, Explanation, GraphBreak, Metric, Status, Trial
from gate.units import render_seconds
from gate.words import count_noun, describe_change

# Longer texts are Dynamo's own, many lines of hints; the first words name the fault.
_MAX_TEXT = 200
# So many of a kind are named, the rest are counted.
_MAX_NAMED = 3
# Dynamo's clocks count a phase within the one that called it. The graph of a backward pass is compiled
# when it is first called: beside the forward's autograd phase, but within the same later ones.
_AUTOGRAD = "aot_autograd"
_BACKWARD = "backward"
_INNER = {
    "dynamo": _AUTOGRAD,
    _AUTOGRAD: "inductor",
    "inductor": "code_generation",
    "code_generation": "triton",
}
# Processor time of the process and of the compilers that it started: no phases, though told beside them.
_COMPILERS = "cpu_children"
_NOTABLE_PHASE = 0.02  # of the whole compile: a smaller move explains no change beyond a threshold of 10 %
_QUIET = frozenset({Status.UNCHANGED, Status.NEW, Status.NOT_COMPARABLE})
_RATES = frozenset({Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP})
SAME_CODE = "The generated code is the same: look at the machine, or at Python code outside the graphs."
TUNED = (
    "The generated code is the same, its kernels were tuned otherwise: their speed may differ by that alone."
)
_MOVED = frozenset({Status.REGRESSED, Status.IMPROVED, Status.INCONCLUSIVE, Status.ACCEPTED})


def explain_case(
    evidence: Evidence, comparisons: Sequence[Comparison], shifts: Shifts
) -> tuple[Explanation, ...]:
    """Evidence on one case; empty unless something that decides has changed or failed."""
    deciding = [one for one in comparisons if one.decides and one.status not in _QUIET]
    if not deciding:
        return ()
    moved = {one.metric for one in deciding if one.status in _MOVED}
    found = [
        *_explain_breaks(evidence),
        *_explain_recompiles(evidence, moved),
        *_explain_code(evidence, comparisons, moved),
        *_explain_workload(evidence),
        *_explain_eager(comparisons, moved),
        *_explain_phases(evidence, moved),
        *_explain_cache(comparisons),
        *_explain_machine(evidence, shifts),
    ]
    return tuple(
        Explanation(case_id=evidence.case.id, kind=kind, sentence=sentence) for kind, sentence in found
    )


Found = tuple[Cause, str]


def _explain_breaks(evidence: Evidence) -> list[Found]:
    """Graph breaks that the baseline does not have, by reason and place."""
    baseline = evidence.code_baseline
    if baseline is None or not evidence.trials:
        return []
    new = _list_new(evidence.trials[-1].graph_breaks, baseline.graph_breaks)
    sentences = [f"{_name_break(one)}: {_shorten(one.reason)}" for one in new]
    return [(Cause.GRAPH_BREAK, sentence) for sentence in _name_some(sentences)]


def _list_new(after: Iterable[GraphBreak], before: Iterable[GraphBreak]) -> list[GraphBreak]:
    """List the breaks that are not of before; as many of a file and reason as were there only moved."""
    added, gone = Counter(after) - Counter(before), Counter(before) - Counter(after)
    more = Counter({_name_kind(one): 0 for one in added})
    more.update(_name_kind(one) for one in added.elements())
    more.subtract(_name_kind(one) for one in gone.elements())
    return [one for one in added if more[_name_kind(one)] > 0]


def _name_kind(found: GraphBreak) -> tuple[str, str]:
    return found.reason, found.location.rpartition(":")[0]


def _name_break(found: GraphBreak) -> str:
    return f"New graph break{f' at {found.location}' if found.location else ''}"


def find_new_breaks(found: Iterable[GraphBreak], told: Iterable[Explanation]) -> list[GraphBreak]:
    """Find which of the breaks of a case its explanations call new."""
    sentences = [one.sentence for one in told if one.kind == Cause.GRAPH_BREAK]
    return [one for one in found if any(text.startswith(f"{_name_break(one)}: ") for text in sentences)]


def _explain_recompiles(evidence: Evidence, moved: set[Metric]) -> list[Found]:
    if not moved & {Metric.RECOMPILES, Metric.UNIQUE_GRAPHS}:
        return []
    reasons = dict.fromkeys(reason for trial in evidence.trials for reason in trial.recompile_reasons)
    sentences = [f"Recompiled because {_shorten(reason)}" for reason in reasons]
    return [(Cause.RECOMPILE, sentence) for sentence in _name_some(sentences)]


def _explain_code(evidence: Evidence, comparisons: Iterable[Comparison], moved: set[Metric]) -> list[Found]:
    """That the generated code changed; or, of a warm time, that nothing about the compiled program did."""
    if is_code_changed(evidence):
        return [(Cause.CHANGED_CODE, f"The generated code changed{_compare_kernels(evidence)}.")]
    traced = any(_is_counter(one.metric) and one.change and one.change.centre for one in comparisons)
    if is_code_changed(evidence) is None or traced or not moved & _RATES:
        return []
    return [(Cause.TUNING, TUNED)] if is_tuned_otherwise(evidence) else [(Cause.SAME_CODE, SAME_CODE)]


def _is_counter(metric: Metric) -> bool:
    return SPECS[metric].family is Family.EXACT


def _compare_kernels(evidence: Evidence) -> str:
    """Which kernels are changed, added or removed, where both sides list them."""
    baseline = evidence.code_baseline
    before = baseline.identity.kernels if baseline else {}
    after = next((trial.identity.kernels for trial in evidence.trials if trial.identity.kernels), {})
    if not before or not after:
        return ""
    changes = (
        ("changed", [name for name in after if name in before and after[name] != before[name]]),
        ("added", [name for name in after if name not in before]),
        ("removed", [name for name in before if name not in after]),
    )
    parts = [f"{len(names)} {verb} ({_join_some(names)})" for verb, names in changes if names]
    return f"; of {len(before)} kernels: {', '.join(parts)}" if parts else ""


def _explain_workload(evidence: Evidence) -> list[Found]:
    """The measured model itself: its size, outputs and reference checksum."""
    baseline = evidence.code_baseline
    if baseline is None or not evidence.trials:
        return []
    after = evidence.trials[-1].workload
    changes = [
        f"{key} {baseline.workload[key]} -> {after[key]}"
        for key in baseline.workload
        if key in after and after[key] != baseline.workload[key]
    ]
    return [(Cause.WORKLOAD, f"The model itself changed: {_join_some(changes)}.")] if changes else []


def _explain_eager(comparisons: Sequence[Comparison], moved: set[Metric]) -> list[Found]:
    """Whether eager moved along with compiled."""
    changes = {one.metric: one.change for one in comparisons if one.change}
    eager, compiled = changes.get(Metric.EAGER_LATENCY), changes.get(Metric.COMPILED_LATENCY)
    if not moved & _RATES or eager is None or compiled is None:
        return []
    return [(Cause.EAGER, describe_arms(eager.centre, compiled.centre))]


def describe_arms(eager: float, compiled: float) -> str:
    """How both latencies changed, as fractions."""
    metric = Metric.COMPILED_LATENCY
    return (
        f"Eager latency changed by {describe_change(metric, eager)},"
        f" compiled latency by {describe_change(metric, compiled)}."
    )


def _explain_phases(evidence: Evidence, moved: set[Metric]) -> list[Found]:
    """Which phases of the compile moved; where the baseline stores none, which took longest."""
    after = collect_phases(evidence.trials)
    if not moved & COMPILE_TIMES or not after:
        return []
    baseline = match_metric(SPECS[Metric.COLD_COMPILE_TIME], evidence.stored).baseline
    if baseline is None or not baseline.phases_s:
        largest = sorted(_own_phases(after).items(), key=lambda item: item[1], reverse=True)
        told = [f"{name} {_seconds(own_s)}" for name, own_s in largest[:_MAX_NAMED]]
        return [(Cause.COMPILE_PHASE, f"Longest phases of the compile: {', '.join(told)}.")] if told else []
    return [(Cause.COMPILE_PHASE, sentence) for sentence in _compare_phases(baseline.phases_s, after)]


def _own_phases(phases_s: Mapping[str, float]) -> dict[str, float]:
    """What each phase took itself, less the phase within it."""
    spans_s = {name: seconds for name, seconds in phases_s.items() if name not in PROCESSOR_TIMES}
    beside_s = {_AUTOGRAD: spans_s.pop(_BACKWARD, 0.0)}
    return {
        name: max(0.0, seconds + beside_s.get(name, 0.0) - spans_s.get(_INNER.get(name, ""), 0.0))
        for name, seconds in spans_s.items()
    }


def _compare_phases(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Phases whose own time moved notably, most first, and the processor time of compilers beside it."""
    old, new = _own_phases(before), _own_phases(after)
    notable_s = _NOTABLE_PHASE * sum(old.values())
    changes = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in {**old, **new}}
    largest = sorted(changes.items(), key=lambda item: abs(item[1]), reverse=True)
    told = [
        f"{name} by {_signed_seconds(change)} to {_seconds(new.get(name, 0.0))}"
        for name, change in largest[:_MAX_NAMED]
        if abs(change) > notable_s
    ]
    sentences = [f"Phases of the compile that changed: {', '.join(told)}."] if told else []
    compilers_s = after.get(_COMPILERS, 0.0) - before.get(_COMPILERS, 0.0)
    if abs(compilers_s) > notable_s:
        sentences.append(f"Processor time of the compilers it started: {_signed_seconds(compilers_s)}.")
    if sentences:
        return sentences
    return [f"No phase of the compile changed by more than {100 * _NOTABLE_PHASE:.0f} % of the whole."]


def _seconds(seconds: float) -> str:
    return render_seconds(seconds)


def _signed_seconds(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{_seconds(abs(seconds))}"


def _explain_cache(comparisons: Sequence[Comparison]) -> list[Found]:
    for one in comparisons:
        if one.metric is Metric.CACHE_MISSES and one.change and one.change.centre > 0 and one.candidate:
            many = count_noun(round(one.candidate.centre), "time")
            return [(Cause.CACHE, f"The second process missed the full compile cache {many}.")]
    return []


def _explain_machine(evidence: Evidence, shifts: Shifts) -> list[Found]:
    found = []
    if list_shifts(shifts, evidence.case.id):
        parts = (
            ("fixed test programs over the run", shifts.canary),
            ("eager over all cases", shifts.suite),
            ("fixed test programs beside this case", shifts.cases.get(evidence.case.id)),
        )
        changes = [
            f"{name} {describe_change(Metric.EAGER_LATENCY, math.expm1(shift))}"
            for name, shift in parts
            if shift is not None
        ]
        found.append((Cause.MACHINE, f"The machine changed since the baseline: {', '.join(changes)}."))
    return found + [(Cause.MACHINE, sentence) for sentence in _describe_disturbances(evidence.trials)]


def _describe_disturbances(trials: Iterable[Trial]) -> list[str]:
    reasons = dict.fromkeys(reason for trial in trials for reason in trial.conditions.throttled)
    foreign = max((trial.conditions.foreign_processes for trial in trials), default=0)
    sentences = [f"The device lowered its clocks: {', '.join(reasons)}."] if reasons else []
    return sentences + ([f"Other processes on the device: {foreign}."] if foreign else [])


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."


def _name_some(sentences: list[str]) -> list[str]:
    rest = len(sentences) - _MAX_NAMED
    return sentences[:_MAX_NAMED] + ([f"... and {rest} more."] if rest > 0 else [])


def _join_some(names: list[str]) -> str:
    rest = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
