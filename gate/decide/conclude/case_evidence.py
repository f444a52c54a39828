"""Both sides of each case that a verdict shows beside its comparisons."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from gate.decide.evidence.compiles import match_kernels, part_phases
from gate.decide.evidence.functions import get_functions, list_shown
from gate.decide.evidence.gather import Evidence
from gate.decide.evidence.values import collect_medians
from gate.decide.judge.screening import Screening
from gate.metrics import SPECS, Family
from gate.records.cases import Metric, group_cases
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Compiled, Run, Trial
from gate.records.verdict import MAYBE_MOVED, CaseEvidence, Comparison, KernelChange, SideEvidence

# Kernels of one case that are shown: more are counted.
MAX_SHOWN_KERNELS = 12
MAX_SOURCE_CHARS = 8_000  # of one kernel on one side: some 150 lines
# Of all cases of a verdict together, so that it stays a file that can be posted.
MAX_ALL_CHARS = 400_000
_MAX_PARTS = 50  # of a case; a list of shapes is shorter
_ROUNDED = "%.5g "  # a dot of a plot is not read more exactly
_SHOWN = tuple(metric for metric, spec in SPECS.items() if spec.family is not Family.EXACT)


def show_all(run: Run, screening: Screening, comparisons: Sequence[Comparison]) -> tuple[CaseEvidence, ...]:
    """With the kernels of those that moved."""
    moved = {row.case_id: row.severity for row in comparisons if row.decides and row.status in MAYBE_MOVED}
    trials = group_cases(run.trials)
    shown = (
        add_traces(
            show_case(
                screening.base.sides.get(evidence.case.id, evidence),
                run.sources,
                moved=evidence.case.id in moved,
            ),
            trials.get(evidence.case.id, ()),
        )
        for evidence in screening.evidence
        if evidence.trials
    )
    return bound_sources(shown, first=sorted(moved, key=moved.__getitem__, reverse=True))


def show_case(evidence: Evidence, sources: Mapping[str, str], *, moved: bool) -> CaseEvidence:
    baseline, compiled = evidence.code_baseline, evidence.fullest
    before, after = (side.identity.kernels if side else {} for side in (baseline, compiled))
    pairs = match_kernels(before, after) if moved and before and after else ()
    kernels = tuple(
        _show_kernel(names, (before.get(names[0], ""), after.get(names[1], "")), sources)
        for names in pairs[:MAX_SHOWN_KERNELS]
    )
    matched = {metric: evidence.find_baseline(metric) for metric in _SHOWN}
    stored = {metric: baseline.trials[metric] for metric, baseline in matched.items() if baseline}
    calls = list_shown(*get_functions(evidence)) if moved else ({}, {})
    old, new = baseline or Compiled(), compiled or Compiled()
    recorded = SideEvidence(phases_s=old.phases_s, parts_s=old.parts_s, calls_within=calls[0])
    made = SideEvidence(
        phases_s=collect_medians(trial.phases_s for trial in evidence.trials),
        parts_s=collect_medians(trial.parts_s for trial in evidence.trials),
        calls_within=calls[1],
        unknown=compiled.unknown if compiled else (),
    )
    return CaseEvidence(
        case_id=evidence.case.id,
        before=_show_side(stored, old, recorded) if stored or baseline else None,
        after=_show_side(evidence.values, new, made),
        kernels=kernels,
        more_kernels=len(pairs) - len(kernels),
    )


def add_traces(shown: CaseEvidence, trials: Iterable[Trial]) -> CaseEvidence:
    paths: dict[str, list[str]] = {BASE_ARM: [], CANDIDATE_ARM: []}
    for trial in trials:
        if trial.trace:
            paths[trial.arm].append(trial.trace)
    if not any(paths.values()):
        return shown
    before = shown.before and replace(shown.before, traces=tuple(paths[BASE_ARM]))
    return replace(shown, before=before, after=replace(shown.after, traces=tuple(paths[CANDIDATE_ARM])))


def bound_sources(shown: Iterable[CaseEvidence], first: Collection[str] = ()) -> tuple[CaseEvidence, ...]:
    """Within MAX_ALL_CHARS, those of the cases ``first`` last to go."""
    cases = list(shown)
    order = {case_id: position for position, case_id in enumerate(first)}
    left, bounded = MAX_ALL_CHARS, {}
    for case in sorted(cases, key=lambda case: order.get(case.case_id, len(order))):
        kernels = []
        for kernel in case.kernels:
            size = len(kernel.before) + len(kernel.after)
            if size <= left:
                kernels.append(kernel)
                left -= size
        more = case.more_kernels + len(case.kernels) - len(kernels)
        bounded[case.case_id] = replace(case, kernels=tuple(kernels), more_kernels=more)
    return tuple(bounded[case.case_id] for case in cases)


def _show_side(
    values: Mapping[Metric, tuple[float, ...]], program: Compiled, exact: SideEvidence
) -> SideEvidence:
    return SideEvidence(
        values={metric: _round(values[metric]) for metric in _SHOWN if values.get(metric)},
        phases_s=_round_all(part_phases(exact.phases_s)),
        parts_s=_round_all(dict(islice(exact.parts_s.items(), _MAX_PARTS))),
        calls_within=exact.calls_within,
        unknown=exact.unknown,
        graph_breaks=program.graph_breaks,
        recompile_reasons=program.recompile_reasons,
        caches=program.caches,
    )


def _show_kernel(names: tuple[str, str], codes: tuple[str, str], sources: Mapping[str, str]) -> KernelChange:
    before, after = (sources.get(code, "") for code in codes)
    if all(names) and not (before and after):
        before = after = ""  # one that was not kept would look like a kernel that only one side has
    return KernelChange(
        name=names[1] or names[0],
        before=before[:MAX_SOURCE_CHARS],
        after=after[:MAX_SOURCE_CHARS],
        is_cut=max(len(before), len(after)) > MAX_SOURCE_CHARS,
    )


def _round(values: Sequence[float]) -> tuple[float, ...]:
    # One text of all takes two thirds of the time of one text each.
    return tuple(map(float, (_ROUNDED * len(values) % tuple(values)).split()))


def _round_all(values: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(values, _round((*values.values(),)), strict=True))
