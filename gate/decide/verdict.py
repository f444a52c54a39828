"""Judges a run in three steps: gather, screen, conclude.

Between screening and concluding, :func:`gate.decide.side_by_side.confirm_screening` replaces the suspects'
comparisons by those of their pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gate.collector import pause_collector
from gate.decide.conclude.accept import apply_acceptances, apply_quarantine, keep_own, note_quarantine
from gate.decide.conclude.case_evidence import show_all
from gate.decide.conclude.coverage import measure_tally
from gate.decide.conclude.limits import apply_limits, judge_limits
from gate.decide.conclude.outcome import decide_outcome, remark_regressed_anyway
from gate.decide.conclude.suite_summary import summarize_suite
from gate.decide.evidence.disturbed import (
    blame_disturbance,
    collect_head,
    doubt_stored,
    drop_host_metrics,
    note_disturbed,
    set_aside_disturbed,
)
from gate.decide.evidence.gather import gather_evidence
from gate.decide.explain import advice, notes
from gate.decide.explain.causes import rank_all
from gate.decide.explain.defaults import add_defaults
from gate.decide.judge.compare import add_questions, follow_times
from gate.decide.judge.machine import compare_machine
from gate.decide.judge.screening import Screening
from gate.decide.judge.stored import compare_case, make_rules
from gate.fingerprint import compares_stacks, compute_environment_id
from gate.metrics import SPECS, Scope
from gate.records.cases import Policy, group_by
from gate.records.codes import Code
from gate.records.run import Baseline, Environment, Run
from gate.records.verdict import PairBase, Verdict


@pause_collector()
def decide_verdict(run: Run, baselines: Iterable[Baseline], policy: Policy) -> Verdict:
    """Pure: the same arguments give the same verdict, and ``policy.today`` is the only date."""
    return conclude_verdict(run, screen_run(run, baselines, policy), policy)


def screen_run(run: Run, baselines: Iterable[Baseline], policy: Policy) -> Screening:
    if run.counts_only:
        baselines = [replace(baseline, trials=drop_host_metrics(baseline.trials)) for baseline in baselines]
    gathered = gather_evidence(set_aside_disturbed(run), baselines)
    cases = tuple(add_questions(evidence, policy) for evidence in gathered)
    places = {
        name: compare_machine(group) for name, group in group_by(cases, lambda case: case.place).items()
    }
    # The cases of other shards have their share of the error budget: joining them changes no result.
    share = len(run.cases) / run.shard.cases if run.shard else 1.0
    shard_policy = replace(policy, error_budget=policy.error_budget * share)
    rules = make_rules(cases, shard_policy, has_base=run.base is not None)
    rows = tuple(row for case in cases for row in compare_case(case, rules, places[case.place]))
    return Screening(evidence=cases, comparisons=rows, machine=compare_machine(cases), places=places)


def conclude_verdict(run: Run, screening: Screening, policy: Policy) -> Verdict:
    pair_base, here = _name_base(run), compute_environment_id(run.environment)
    policy = keep_own(policy, here)
    if run.counts_only:
        kept = [limit for limit in policy.limits if SPECS[limit.metric].scope is not Scope.HOST]
        policy = replace(policy, limits=tuple(kept))
    base, head = screening.base, collect_head(run)
    believed = doubt_stored(follow_times(screening.comparisons), run, screening.evidence)
    limits = judge_limits(screening.evidence, policy, run.environment.device_kind)
    # A limit is doubted by itself: in doubt it replaces nothing that pairs show.
    limited = apply_limits(believed, doubt_stored(limits, run, screening.evidence), policy)
    disturbed = note_disturbed(head)
    accepted = apply_quarantine(apply_acceptances(limited, policy), policy)
    comparisons = remark_regressed_anyway(accepted)
    outcome = decide_outcome(comparisons, finished=run.finished)
    headline = advice.make_headline(outcome, comparisons, run.cases, finished=run.finished)
    steps = advice.list_next_steps(run, comparisons, policy, in_pairs=base.in_pairs)
    if policy.has_anchor:
        steps += advice.suggest(Code.HOLD_AGAINST_ANCHOR, (row.case_id for row in base.acquitted))
    used = screening.list_used_baselines()
    environments: list[Environment] = []
    for baseline in used:
        if baseline.environment not in environments:
            environments.append(baseline.environment)
    return Verdict(
        outcome=outcome,
        headline=advice.add_base_to_headline(headline) if base.in_pairs else headline,
        cases=run.cases,
        comparisons=comparisons,
        failures=run.failures,
        causes=add_defaults(rank_all(screening, comparisons, run.environment), run),
        next_steps=(*blame_disturbance(head, comparisons), *steps),
        evidence=show_all(run, screening, comparisons),
        notes=(
            *notes.list_notes_of_run(run, in_pairs=base.in_pairs),
            *notes.list_notes(run, comparisons, used, policy, in_pairs=base.in_pairs),
            *notes.list_notes_of_rows(run, screening, comparisons),
            *disturbed,
            *notes.note_lanes(run),
            *notes.note_warnings(run),
            *note_quarantine(comparisons, policy),
        ),
        machine=screening.machine.since_recorded,
        environment=run.environment,
        provenance=run.provenance,
        base=pair_base,
        base_environment=run.base.environment if run.base else used[0].environment if used else None,
        baseline_provenance=tuple(dict.fromkeys(baseline.provenance for baseline in used)),
        baseline_environments=tuple(dict.fromkeys(map(compute_environment_id, environments))),
        tally=measure_tally(run, head, comparisons, base.acquitted),
        summary=summarize_suite(run.cases, comparisons),
        trials=len(run.trials),
        wall_s=run.wall_s,
        toolchain_s=run.toolchain_s,
        overhead_s=sum(trial.overhead_s for trial in run.trials),
    )


def _name_base(run: Run) -> PairBase | None:
    if run.base is None:
        return None
    base, provenance = run.base, run.base.provenance
    return PairBase(
        label=base.label,
        commit="" if provenance.dirty else provenance.commit,
        head_commit=base.head_commit,
        other_stack=compares_stacks(run),
        pythons=base.pythons,
    )
