"""Both sides of a case that ran in pairs: the base's trials stand where a stored baseline would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gate.decide.evidence.baselines import make_baseline
from gate.decide.evidence.pairs import Pair, Paired, collect_paired, collect_processor, list_pairs
from gate.decide.evidence.stored import Evidence, Stored, find_base_cases
from gate.decide.evidence.values import Question, collect_values
from gate.decide.judge.compare import find_pair_threshold, list_questions
from gate.records import (
    CANDIDATE_ARM,
    BaseArm,
    Case,
    CaseFailure,
    Metric,
    Pairing,
    Policy,
    Reason,
    Run,
    Trial,
)
from gate.records.groups import group_cases


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePairs:
    """A case with its pairs; ``evidence.stored`` holds what the base measured."""

    evidence: Evidence
    questions: Mapping[Metric, Question]
    paired: Mapping[Metric, Paired]
    processor: Paired | None  # of cold compiles


@dataclass(frozen=True, kw_only=True, slots=True)
class _Material:
    """What the sides of all cases are cut from."""

    base: BaseArm | None
    bases: Mapping[str, Case]  # cases as the base defines them, by id
    pairs: Mapping[str, Sequence[Pair]]
    heads: Mapping[str, Sequence[Trial]]
    redefined: Mapping[str, Case]  # as the base defines them, where that is otherwise
    failures: Mapping[str, Sequence[CaseFailure]]


def gather_case_pairs(
    run: Run, policy: Policy, case_ids: Iterable[str] | None = None
) -> tuple[CasePairs, ...]:
    """The sides of these cases, or of all the plan's, in the plan's order."""
    wanted = None if case_ids is None else set(case_ids)
    heads = (trial for trial in run.trials if trial.arm == CANDIDATE_ARM)
    material = _Material(
        base=run.base,
        bases={case.id: case for case in run.base.cases} if run.base else {},
        pairs=list_pairs(run),
        heads=group_cases(trial for trial in heads if wanted is None or trial.pairing is not Pairing.ALONE),
        failures=group_cases(failure for failure in run.failures if failure.arm == CANDIDATE_ARM),
        redefined=find_base_cases(run),
    )
    return tuple(
        _make_side(case, material, policy) for case in run.cases if wanted is None or case.id in wanted
    )


def _make_side(case: Case, material: _Material, policy: Policy) -> CasePairs:
    pairs = material.pairs.get(case.id, ())
    trials = [pair.head for pair in pairs] or list(material.heads.get(case.id, ()))
    evidence = Evidence(
        case=case,
        # The fullest last: causes are read off the last one, and some trials measure latencies only.
        trials=tuple(sorted(trials, key=lambda trial: len(trial.samples))),
        failures=tuple(material.failures.get(case.id, ())),
        values=collect_values(trials),
        stored=_list_stored(case, material, [pair.base for pair in pairs]),
        absence=_explain_absence(case, material),
        base_case=material.redefined.get(case.id),
    )
    questions = list_questions(evidence, policy, find_pair_threshold)
    return CasePairs(
        evidence=evidence,
        questions=questions,
        paired=collect_paired(pairs),
        processor=collect_processor(pairs),
    )


def _explain_absence(case: Case, material: _Material) -> Reason:
    """Why the base measured nothing of a case, where it did not."""
    if case.id not in material.bases:
        return Reason.NO_BASELINE
    return Reason.STALE_DEFINITION if case.id in material.redefined else Reason.UNPAIRED


def _list_stored(case: Case, material: _Material, trials: Sequence[Trial]) -> tuple[Stored, ...]:
    """The base's trials as a baseline of the same sitting, whatever stack the base has."""
    base, known = material.base, material.bases.get(case.id)
    if base is None or known is None or not trials:
        return ()
    stored = Stored(
        baseline=make_baseline(known, trials, environment=base.environment, provenance=base.provenance),
        same_host=True,
        same_stack=True,
        same_codegen=True,
        same_definition=known.definition == case.definition,
    )
    return (stored,)
