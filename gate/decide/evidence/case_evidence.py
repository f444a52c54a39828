"""What a report shows of both sides of a case: phases, kernels, and whether they are the same code.

Inductor names a kernel by the operators that it fuses and a number: ``cpp_fused_add_relu_3``. A kernel more
changes all numbers behind it, so that kernels are matched by their code first, and by their name without
the number after.

Nothing here decides. Exact metrics have no distribution to show: a comparison holds their counts.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from gate.decide.evidence.values import Evidence, collect_medians
from gate.devices import TARGET_KIND
from gate.metrics import SPECS, Family
from gate.records import (
    BASE_ARM,
    CANDIDATE_ARM,
    FIRST_CALL,
    OTHER_PHASE,
    PHASES,
    CaseEvidence,
    Code,
    Compiled,
    Fact,
    KernelChange,
    Metric,
    Pairing,
    Run,
    SideEvidence,
    Trial,
)
from gate.records.cases import group_cases

_NUMBER = re.compile(r"_\d+$")
_FUSED = re.compile(r"^(?:cpp|mps|pallas|triton(?:_[a-z]{3,4})?)_fused_?")


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelPair:
    """A kernel of each side that stand for each other; ``""`` where a side has none."""

    before: str = ""
    after: str = ""


def match_kernels(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[KernelPair, ...]:
    """Match the kernels, name to hash, that do not have the same code on both sides."""
    same = set(before.values()) & set(after.values())
    old = [name for name, code in before.items() if code not in same]
    new = [name for name, code in after.items() if code not in same]
    pairs = []
    for key in (str, name_stem):
        for name in list(new):
            match = next((one for one in old if key(one) == key(name)), None)
            if match is not None:
                pairs.append(KernelPair(before=match, after=name))
                old.remove(match)
                new.remove(name)
    gone = [KernelPair(before=name) for name in old]
    return (*pairs, *(KernelPair(after=name) for name in new), *gone)


def name_stem(kernel: str) -> str:
    """Name what a kernel does, without its number."""
    return _NUMBER.sub("", kernel)


def name_operators(kernel: str) -> str:
    """Name the operators that a kernel fuses, joined as in its name; ``""`` where it has none."""
    stem = name_stem(kernel)
    return _FUSED.sub("", stem) if _FUSED.match(stem) else ""


def count_words(kernels: Iterable[str]) -> dict[str, int]:
    """Count the words of operators in the names of kernels."""
    counts: dict[str, int] = {}
    for kernel in kernels:
        for word in filter(None, name_operators(kernel).split("_")):
            counts[word] = counts.get(word, 0) + 1
    return counts


# Which phase each runs within. The graph of a backward pass is compiled when it is first called: beside
# the forward's autograd phase, but with the same phases within it.
_AUTOGRAD, _BACKWARD = "aot_autograd", "backward"
_WITHIN: Mapping[str, str] = {
    _AUTOGRAD: "dynamo",
    "garbage_collection": "dynamo",
    "inductor": _AUTOGRAD,
    "code_generation": "inductor",
    "triton": "code_generation",
}


def part_phases(phases_s: Mapping[str, float]) -> dict[str, float]:
    """Part a compile by what each phase took itself, less the phases within it.

    What no phase accounts for stands under :data:`OTHER_PHASE`, where the whole is known.
    """
    spans_s = {name: phases_s[name] for name in PHASES if name in phases_s}
    backward_s = spans_s.pop(_BACKWARD, 0.0)
    if _AUTOGRAD in spans_s:
        spans_s[_AUTOGRAD] += backward_s
    own_s = dict(spans_s)
    for name, seconds in spans_s.items():
        parent = _WITHIN.get(name, "")
        if parent in own_s:
            own_s[parent] -= seconds - (backward_s if name == _AUTOGRAD else 0.0)
    parted = {name: max(0.0, seconds) for name, seconds in own_s.items()}
    if FIRST_CALL in phases_s and parted:
        parted[OTHER_PHASE] = max(0.0, phases_s[FIRST_CALL] - sum(parted.values()))
    return parted


def find_unchanged_code(run: Run) -> frozenset[str]:
    """Find the cases whose generated code is the base's, digest by digest.

    A case counts only where every pair says so: one that failed, was not compiled, or was compiled in one arm
    alone may have changed.
    """
    failed = {failure.case_id for failure in run.failures}
    paired = group_cases(trial for trial in run.trials if trial.pairing is not Pairing.ALONE)
    same = set()
    for case_id, own in paired.items():
        base = {trial.identity.digest for trial in own if trial.arm == BASE_ARM}
        head = {trial.identity.digest for trial in own if trial.arm != BASE_ARM}
        if case_id not in failed and len(base) == 1 and base == head and "" not in base:
            same.add(case_id)
    return frozenset(same)


def note_unchanged_code(run: Run) -> tuple[Fact, ...]:
    """A note on how much of a target's code is the base's: a GPU need not measure those cases."""
    if run.environment.device_kind != TARGET_KIND or not run.finished:
        return ()
    same = find_unchanged_code(run)
    others = tuple(case.id for case in run.cases if case.id not in same)
    code = Code.CODE_DIFFERS if others else Code.CODE_IS_THE_BASES
    return (Fact(code=code, numbers={"same": len(same), "cases": len(run.cases)}, cases=others),)


# Kernels of one case that are shown: more are counted.
MAX_SHOWN_KERNELS = 12
MAX_SOURCE_CHARS = 8_000  # of one kernel on one side: some 150 lines
# Of all cases of a verdict together, so that it stays a file that can be posted.
MAX_ALL_CHARS = 400_000
_MAX_PARTS = 50  # of a case; a list of shapes is shorter
_DIGITS = 5  # a dot of a plot is not read more exactly


def show_case(evidence: Evidence, sources: Mapping[str, str], *, moved: bool) -> CaseEvidence:
    """Show both sides of a case; the kernels that differ only where it ``moved``."""
    baseline, compiled = evidence.code_baseline, evidence.fullest
    before, after = (one.identity.kernels if one else {} for one in (baseline, compiled))
    pairs = match_kernels(before, after) if moved and before and after else ()
    kernels = tuple(_show_kernel(pair, before, after, sources) for pair in pairs[:MAX_SHOWN_KERNELS])
    matched = {metric: evidence.find_baseline(metric) for metric in _SHOWN}
    stored = {metric: one.trials[metric] for metric, one in matched.items() if one}
    made = replace(
        compiled or Compiled(),
        phases_s=collect_medians(trial.phases_s for trial in evidence.trials),
        parts_s=collect_medians(trial.parts_s for trial in evidence.trials),
    )
    shown = _show_side(evidence.values, made)
    return CaseEvidence(
        case_id=evidence.case.id,
        before=_show_side(stored, baseline or Compiled()) if stored or baseline else None,
        after=replace(shown, unknown=compiled.unknown) if compiled else shown,
        kernels=kernels,
        more_kernels=len(pairs) - len(kernels),
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
    left, bounded = MAX_ALL_CHARS, {}
    for one in sorted(cases, key=lambda case: order.get(case.case_id, len(order))):
        kernels = []
        for kernel in one.kernels:
            size = len(kernel.before) + len(kernel.after)
            if size <= left:
                kernels.append(kernel)
                left -= size
        more = one.more_kernels + len(one.kernels) - len(kernels)
        bounded[one.case_id] = replace(one, kernels=tuple(kernels), more_kernels=more)
    return tuple(bounded[one.case_id] for one in cases)


def _show_side(values: Mapping[Metric, tuple[float, ...]], program: Compiled) -> SideEvidence:
    return SideEvidence(
        values={metric: _round(values[metric]) for metric in _SHOWN if values.get(metric)},
        phases_s=_round_all(part_phases(program.phases_s)),
        parts_s=_round_all(dict(islice(program.parts_s.items(), _MAX_PARTS))),
        graph_breaks=program.graph_breaks,
        recompile_reasons=program.recompile_reasons,
        caches=program.caches,
    )


_SHOWN = tuple(metric for metric, spec in SPECS.items() if spec.family is not Family.EXACT)


def _show_kernel(
    pair: KernelPair, before: Mapping[str, str], after: Mapping[str, str], sources: Mapping[str, str]
) -> KernelChange:
    texts = [
        sources.get(codes.get(name, ""), "") for codes, name in ((before, pair.before), (after, pair.after))
    ]
    if pair.before and pair.after and not all(texts):
        texts = ["", ""]  # one that was not kept would look like a kernel that only one side has
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
