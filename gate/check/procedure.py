"""A check: screen, repeat what is exact, settle by more trials or confirm by pairs, conclude."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.check.content import want_whole
from gate.check.measurer import Measurer, PairMeasurer, TrialMeasurer
from gate.check.pair_schedule import Need
from gate.check.settle import settle_pairs
from gate.decide import (
    Screening,
    Suspect,
    clear_same_programs,
    conclude_verdict,
    confirm_screening,
    decide_side_by_side,
    decide_verdict,
    list_open,
    list_same_programs,
    list_suspects,
    screen_run,
)
from gate.metrics import SPECS, Family
from gate.records import MAYBE_WORSE, Baseline, Metric, Outcome, Pairing, Policy, Run, Verdict
from gate.records.groups import group_cases

EXACT_TRIALS = 2  # a counter that moves twice did not move by accident


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckTerms:
    """What a run is judged by, and what it may cost."""

    baselines: tuple[Baseline, ...]
    policy: Policy
    trials: int = 1  # of each case, which the run has
    max_trials: int = 1  # of a case that more trials could settle
    pair_budget_s: float = math.inf  # seconds of pairs, on top of what the run took
    thorough: bool = False  # whether a case that pairs have convicted is measured on


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A verdict, and the run that it is about: with all that was measured on the way."""

    run: Run
    verdict: Verdict


def check_alone(measurer: TrialMeasurer, run: Run, terms: CheckTerms) -> Checked:
    """Judge by stored baselines, and give the cases that more trials could settle one more at a time.

    A further trial measures what is still open of its case, where that is noisy.
    """
    # The error budget is for the whole verdict, however often these data are looked at.
    policy = replace(terms.policy, looks=terms.max_trials - terms.trials + 1)
    verdict = decide_verdict(run, terms.baselines, policy)
    wanted = _list_wanted(verdict)
    for trials in range(terms.trials + 1, terms.max_trials + 1):
        if not wanted or verdict.outcome is Outcome.NOTHING_COMPARED:
            break
        extended = measurer.add_trials(run, wanted, trials)
        if _count_ended(extended) == _count_ended(run):
            break
        run = extended
        verdict = decide_verdict(run, terms.baselines, policy)
        wanted = _list_wanted(verdict)
    return Checked(run=run, verdict=verdict)


def check_beside(measurer: Measurer, run: Run, terms: CheckTerms) -> Checked:
    """Screen by stored baselines, and let pairs with the run's base decide on what is suspect."""
    policy = terms.policy
    screening = screen_run(run, terms.baselines, policy)
    if moved := _list_moved(screening):
        run = measurer.add_trials(run, want_whole(moved), max(terms.trials, EXACT_TRIALS))
        screening = screen_run(run, terms.baselines, policy)
    suspects = list_suspects(screening, thorough=terms.thorough)
    same = list_same_programs(screening, run, suspects)
    suspects = tuple(one for one in suspects if one not in same)
    if suspects:
        run = settle_pairs(measurer, run, policy, run.wall_s + terms.pair_budget_s, suspects)
        # Screened again, since a case that failed in a pair has failed; it is no less suspect for that.
        screening = screen_run(run, terms.baselines, policy)
    confirmed = clear_same_programs(confirm_screening(screening, run, policy, suspects), same)
    return Checked(run=run, verdict=conclude_verdict(run, confirmed, policy))


def judge_recorded(run: Run, terms: CheckTerms) -> Verdict:
    """Judge what a run has, as the command that measured it would: by its pairs too, where it has a base.

    A run that was stopped is judged by what is stored: it is INCOMPLETE, whatever its pairs show.
    """
    if run.base is None or not run.finished:
        return decide_verdict(run, terms.baselines, terms.policy)
    if any(trial.pairing is Pairing.ALONE for trial in run.trials):
        return check_beside(_Recorded(), run, terms).verdict
    return check_pairs(_Recorded(), run, terms.policy).verdict


class _Recorded:
    """Measures nothing more: what a run has is all there is."""

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        del wanted, trials
        return run

    def add_pairs(self, run: Run, needs: Sequence[Need], limit_s: float) -> Run:
        del needs, limit_s
        return run


def check_pairs(
    measurer: PairMeasurer,
    run: Run,
    policy: Policy,
    limit_s: float = math.inf,
    suspects: Sequence[Suspect] | None = None,
) -> Checked:
    """Judge the whole plan by pairs with the run's base; ``limit_s`` counts the run's seconds.

    With ``suspects`` pairs are measured until these are settled, whatever else they leave open.
    """
    run = settle_pairs(measurer, run, policy, limit_s, suspects)
    return Checked(run=run, verdict=decide_side_by_side(run, policy))


def _list_wanted(verdict: Verdict) -> Mapping[str, Collection[Metric]]:
    """List the cases that further trials could settle, each with what is open."""
    rows = group_cases(list_open(verdict))
    return {case_id: {row.metric for row in found} for case_id, found in rows.items()}


def _list_moved(screening: Screening) -> set[str]:
    """List the cases whose counters, memory or drift moved: they need another trial, not pairs."""
    return {
        row.case_id
        for row in screening.comparisons
        if row.decides and SPECS[row.metric].family is not Family.NOISY and row.status in MAYBE_WORSE
    }


def _count_ended(run: Run) -> int:
    return len(run.trials) + len(run.failures)
