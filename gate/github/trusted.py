"""What of somebody else's verdict may be shown: numbers, enums, and cases that the base commit knows.

Every text of the artifact is dropped and written again from what is trusted: the base commit's
registry and baselines, GitHub's own facts of the run, and fixed sentences. The outcome is not ours
to change: it counts all comparisons, also those of cases that are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gate.decide.advice import list_notes, note_machine
from gate.decide.attribute import SAME_CODE, TUNED, describe_arms
from gate.decide.coverage import is_judged
from gate.decide.finding import Finding
from gate.decide.headline import write_headline
from gate.decide.outcome import decide_outcome
from gate.decide.tally import note_tally
from gate.decide.wording import describe_finding
from gate.fingerprint import compute_environment_id
from gate.github.approved import NOTHING_APPROVED, Approved
from gate.github.events import WorkflowRun
from gate.protocol import Stage
from gate.records import (
    Baseline,
    Case,
    CaseFailure,
    Cause,
    Comparison,
    Environment,
    Explanation,
    FailureKind,
    Metric,
    Outcome,
    Policy,
    Provenance,
    Run,
    Status,
    Verdict,
)
from gate.words import count_noun

# Explanations without the words of whoever measured. Eager's is written from the numbers.
EXPLANATIONS: Mapping[str, str] = {
    Cause.GRAPH_BREAK: "There are new graph breaks; their places are in the run's summary.",
    Cause.RECOMPILE: "It recompiled; the reasons are in the run's summary.",
    Cause.SAME_CODE: SAME_CODE,
    Cause.TUNING: TUNED,
    Cause.CHANGED_CODE: "The generated code changed; the kernels are in the run's summary.",
    Cause.WORKLOAD: "The model itself changed.",
    Cause.COMPILE_PHASE: "What each phase of the compile took is in the run's summary.",
    Cause.CACHE: "The second process missed the compile cache.",
    Cause.MACHINE: "The machine is not as it was when the baselines were recorded.",
}
_FAILURES: Mapping[FailureKind, str] = {
    FailureKind.ERROR: "an exception; see the run's log",
    FailureKind.CRASH: "the process died; see the run's log",
    FailureKind.KILLED: "the process was killed, most often for want of memory",
    FailureKind.HANG: "over the time limit",
    FailureKind.NOT_FINITE: "NaN or infinity",
}
_STAGES = frozenset(stage.value for stage in Stage)
_BLANK = Environment(
    device_kind="",
    device_model="",
    device_uuid="",
    driver="",
    clocks="",
    cpu="",
    cores=0,
    threads=0,
    isa="",
    torch="",
    triton="",
    cuda="",
    python="",
    compiler="",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """What the base commit says: its cases, its stored baselines, its policy.

    ``rules`` are the paths of all this in the repository; a change that touches them is flagged.
    ``can_accept`` is whether one of its workflows accepts regressions.
    """

    cases: tuple[Case, ...]
    baselines: tuple[Baseline, ...] = ()
    policy: Policy = field(default_factory=lambda: Policy(thresholds={}))
    rules: tuple[str, ...] = ()
    can_accept: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What GitHub itself says of a run besides the run: ``base_sha`` is on the base branch, or empty.

    ``remark`` is one more note, ahead of the others; ``approved`` is who accepted what of it.
    """

    base_sha: str = ""
    remark: str = ""
    approved: Approved = NOTHING_APPROVED


NOTHING_KNOWN = Known()


def make_trusted_verdict(
    verdict: Verdict, base: Base, run: WorkflowRun, known: Known = NOTHING_KNOWN
) -> Verdict:
    """Make a verdict that holds nothing but what may be shown in the repository's own name."""
    ours = {case.id: case for case in base.cases}
    comparisons = tuple(_rewrite(one) for one in verdict.comparisons if one.case_id in ours)
    cases = tuple(ours[case.id] for case in verdict.cases if case.id in ours)
    stored = [(compute_environment_id(one.environment), one) for one in base.baselines]
    environments = {name: one.environment for name, one in stored}
    used_ids = tuple(name for name in dict.fromkeys(verdict.baseline_environments) if name in environments)
    used = [one for name, one in stored if name in used_ids and one.case_id in ours]
    environment = environments.get(compute_environment_id(verdict.environment), _BLANK)
    provenance = Provenance(commit=run.head_sha, created=run.started, run_url=run.url)
    # Notes on how it ran are made from the tally: this run has no trials.
    shown = Run(cases=cases, environment=environment, provenance=provenance, finished=True)
    judged = any(is_judged(one) for one in comparisons)
    against = replace(verdict.base, label="", commit=known.base_sha, head_commit="") if verdict.base else None
    named = f"the base commit {known.base_sha[:12]}" if known.base_sha else "the base"
    return replace(
        verdict,
        headline=_write_headline(verdict, comparisons, cases),
        cases=cases,
        comparisons=comparisons,
        failures=tuple(_rewrite_failure(one) for one in verdict.failures if one.case_id in ours),
        explanations=_rewrite_explanations(verdict, ours, comparisons),
        next_steps=(),  # commands are for who has the machine
        notes=(
            *((known.remark,) if known.remark else ()),
            *known.approved.notes,
            *note_unknown(verdict, cases),
            *_note_environment(environment),
            *list_notes(shown, comparisons, used, base.policy),
            *note_tally(verdict.tally, named),
            *note_machine(verdict.machine, judged=judged),
        ),
        environment=environment,
        provenance=provenance,
        baseline_provenance=tuple(dict.fromkeys(one.provenance for one in used)),
        baseline_environments=used_ids,
        base=against,
        config="",
    )


def _rewrite(comparison: Comparison) -> Comparison:
    finding = Finding(
        status=comparison.status,
        reason=comparison.reason,
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        change=comparison.change,
        pairs=comparison.pairs,
        more_pairs=comparison.more_pairs,
    )
    sentence = describe_finding(comparison.metric, finding, comparison.threshold)
    return replace(comparison, sentence=sentence)


def _rewrite_failure(failure: CaseFailure) -> CaseFailure:
    return CaseFailure(
        case_id=failure.case_id,
        trial=failure.trial,
        kind=failure.kind,
        stage=failure.stage if failure.stage in _STAGES else "unknown",
        message=_FAILURES[failure.kind],
    )


def _rewrite_explanations(
    verdict: Verdict, known: Mapping[str, Case], comparisons: Iterable[Comparison]
) -> tuple[Explanation, ...]:
    """Fixed sentences for each kind of evidence that a case has, each once."""
    changes = {(one.case_id, one.metric): one.change.centre for one in comparisons if one.change}
    written = (
        Explanation(case_id=one.case_id, kind=one.kind, sentence=_explain(one, changes))
        for one in verdict.explanations
        if one.case_id in known
    )
    return tuple(dict.fromkeys(one for one in written if one.sentence))


def _explain(explanation: Explanation, changes: Mapping[tuple[str, Metric], float]) -> str:
    if explanation.kind != Cause.EAGER:
        return EXPLANATIONS.get(explanation.kind, "")
    eager = changes.get((explanation.case_id, Metric.EAGER_LATENCY))
    compiled = changes.get((explanation.case_id, Metric.COMPILED_LATENCY))
    if eager is None or compiled is None:
        return ""
    return describe_arms(eager, compiled)


def _write_headline(verdict: Verdict, comparisons: tuple[Comparison, ...], cases: tuple[Case, ...]) -> str:
    """The headline; that of a regression names a case, so only one that is known."""
    if verdict.outcome is not Outcome.REGRESSION:
        return write_headline(
            verdict.outcome, verdict.comparisons, verdict.cases, finished=verdict.tally.finished
        )
    if decide_outcome(comparisons, finished=verdict.tally.finished) is Outcome.REGRESSION:
        return write_headline(verdict.outcome, comparisons, cases)
    unknown = len(verdict.cases) - len(cases)
    return f"The reason is in {count_noun(unknown, 'case')} that the default branch does not have."


def note_unknown(verdict: Verdict, cases: tuple[Case, ...]) -> tuple[str, ...]:
    """A note on the cases of a verdict that are not among ``cases``, and so are not shown."""
    unknown = len(verdict.cases) - len(cases)
    if not unknown:
        return ()
    shown = {case.id for case in cases}
    rows = [one for one in verdict.comparisons if one.decides and one.case_id not in shown]
    regressed = sum(one.status is Status.REGRESSED for one in rows)
    lost = sum(one.status in {Status.FAILED, Status.MISSING} for one in rows)
    one_is = "1 case of this change is" if unknown == 1 else f"{unknown} cases of this change are"
    counts = f"{regressed} of {count_noun(len(rows), 'comparison')} regressed, {lost} failed"
    return (f"{one_is} not on the default branch, so only counted here: {counts}.",)


def _note_environment(environment: Environment) -> tuple[str, ...]:
    if environment is not _BLANK:
        return ()
    return ("The default branch has no baselines from this machine.",)
