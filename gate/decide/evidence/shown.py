"""What a reader is shown of both sides of a case: values, phases, breaks, and the kernels that differ.

Nothing here decides. Exact metrics have no distribution to show: a comparison holds their counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from gate.decide.evidence.kernels import KernelPair, match_kernels
from gate.decide.evidence.pairs import Pair, compute_pair_changes
from gate.decide.evidence.phases import part_phases
from gate.decide.evidence.stored import Evidence, match_metric
from gate.decide.evidence.values import collect_medians
from gate.metrics import SPECS, Family
from gate.records import (
    BASE_ARM,
    CANDIDATE_ARM,
    Baseline,
    CaseEvidence,
    Compiled,
    KernelChange,
    Metric,
    SideEvidence,
    Trial,
)
from gate.records.groups import collect_columns

# Kernels of one case that are shown: more are counted.
MAX_SHOWN_KERNELS = 12
MAX_SOURCE_CHARS = 8_000  # of one kernel on one side: some 150 lines
# Of all cases of a verdict together, so that it stays a file that can be posted.
MAX_ALL_CHARS = 400_000
_MAX_PARTS = 50  # of a case; a list of shapes is shorter
_DIGITS = 5  # a dot of a plot is not read more exactly


def show_case(
    evidence: Evidence, pairs: Sequence[Pair], sources: Mapping[str, str], *, moved: bool
) -> CaseEvidence:
    """Show both sides of a case; the kernels that differ only where it ``moved``."""
    baseline = evidence.code_baseline
    compiled = evidence.fullest
    kernels = _list_kernels(baseline, compiled, sources) if moved else []
    return CaseEvidence(
        case_id=evidence.case.id,
        before=_show_before(evidence, baseline),
        after=_show_after(evidence, compiled),
        changes=_list_changes(pairs),
        kernels=tuple(kernels[:MAX_SHOWN_KERNELS]),
        more_kernels=max(0, len(kernels) - MAX_SHOWN_KERNELS),
    )


def add_traces(shown: CaseEvidence, trials: Iterable[Trial]) -> CaseEvidence:
    """Add where torch's own traces of both arms lie."""
    found: dict[str, list[str]] = {BASE_ARM: [], CANDIDATE_ARM: []}
    for trial in trials:
        if trial.trace:
            found[trial.arm].append(trial.trace)
    before = shown.before and replace(shown.before, traces=tuple(found[BASE_ARM]))
    return replace(shown, before=before, after=replace(shown.after, traces=tuple(found[CANDIDATE_ARM])))


def bound_sources(shown: Iterable[CaseEvidence], first: Collection[str] = ()) -> tuple[CaseEvidence, ...]:
    """Leave out the source of kernels beyond MAX_ALL_CHARS, those of the cases ``first`` last."""
    cases = list(shown)
    order = {case_id: position for position, case_id in enumerate(first)}
    left, kept = MAX_ALL_CHARS, {}
    for one in sorted(cases, key=lambda case: order.get(case.case_id, len(order))):
        kernels = []
        for kernel in one.kernels:
            size = len(kernel.before) + len(kernel.after)
            if size <= left:
                kernels.append(kernel)
                left -= size
        kept[one.case_id] = tuple(kernels)
    return tuple(_keep_kernels(one, kept[one.case_id]) for one in cases)


def _keep_kernels(one: CaseEvidence, kernels: tuple[KernelChange, ...]) -> CaseEvidence:
    dropped = len(one.kernels) - len(kernels)
    return replace(one, kernels=kernels, more_kernels=one.more_kernels + dropped) if dropped else one


def _show_before(evidence: Evidence, baseline: Baseline | None) -> SideEvidence | None:
    matched = {metric: match_metric(SPECS[metric], evidence.stored).baseline for metric in _SHOWN}
    values = {metric: _round(one.trials[metric]) for metric, one in matched.items() if one}
    return _show_side(values, baseline or Compiled()) if values or baseline else None


def _show_after(evidence: Evidence, compiled: Trial | None) -> SideEvidence:
    values = {metric: _round(found) for metric in _SHOWN if (found := evidence.values.get(metric))}
    phases_s = collect_medians(trial.phases_s for trial in evidence.trials)
    parts_s = collect_medians(trial.parts_s for trial in evidence.trials)
    shown = _show_side(values, replace(compiled or Compiled(), phases_s=phases_s, parts_s=parts_s))
    return replace(shown, unknown=compiled.unknown) if compiled else shown


def _show_side(values: Mapping[Metric, tuple[float, ...]], program: Compiled) -> SideEvidence:
    return SideEvidence(
        values=values,
        phases_s=_round_all(part_phases(program.phases_s)),
        parts_s=_round_all(dict(islice(program.parts_s.items(), _MAX_PARTS))),
        graph_breaks=program.graph_breaks,
        recompile_reasons=program.recompile_reasons,
        caches=program.caches,
        calls=program.identity.calls,
    )


_SHOWN = tuple(metric for metric, spec in SPECS.items() if spec.family is not Family.EXACT)


def _list_changes(pairs: Sequence[Pair]) -> dict[Metric, tuple[float, ...]]:
    """The change of each pair, in the order in which they ran."""
    changes = collect_columns(compute_pair_changes(pairs))
    return {metric: _round(map(math.expm1, found)) for metric, found in changes.items()}


def _list_kernels(
    baseline: Baseline | None, compiled: Trial | None, sources: Mapping[str, str]
) -> list[KernelChange]:
    """The kernels whose code differs, as far as either side's source was kept."""
    before, after = (one.identity.kernels if one else {} for one in (baseline, compiled))
    if not before or not after:
        return []
    return [_show_kernel(pair, before, after, sources) for pair in match_kernels(before, after)]


def _show_kernel(
    pair: KernelPair, before: Mapping[str, str], after: Mapping[str, str], sources: Mapping[str, str]
) -> KernelChange:
    texts = [
        sources.get(codes.get(name, ""), "") for codes, name in ((before, pair.before), (after, pair.after))
    ]
    return KernelChange(
        name=pair.after or pair.before,
        before=texts[0][:MAX_SOURCE_CHARS],
        after=texts[1][:MAX_SOURCE_CHARS],
        is_cut=max(map(len, texts)) > MAX_SOURCE_CHARS,
    )


def _round(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)


def _round_all(values: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(values, _round(values.values()), strict=True))
