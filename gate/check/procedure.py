"""A check: screen, settle by more trials or by pairs, look by look, conclude; pure but for what measures."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from gate.check.schedule import awaits_count, list_needs
from gate.decide.conclude.limits import find_open_limits
from gate.decide.conclude.outcome import list_open
from gate.decide.constants import CHANCE_EDGES, MIN_PAIRS
from gate.decide.judge.screening import Screening
from gate.decide.side_by_side import confirm_screening, decide_side_by_side, list_unsettled
from gate.decide.suspects import Suspect, clear_unchanged_sources, list_suspects
from gate.decide.verdict import conclude_verdict, decide_verdict, screen_run
from gate.records.cases import Metric, Policy, group_cases
from gate.records.run import Baseline, Pairing, Run
from gate.records.verdict import Outcome, Verdict


class TrialMeasurer(Protocol):
    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Up to ``trials`` each, of the metrics that are wanted; fewer where one failed or time is up."""
        ...


class PairMeasurer(Protocol):
    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """None that would end after ``limit_s`` seconds of the run.

        A case that fails in either arm is a failure of the run and gets no further pair.
        """
        ...


class Measurer(TrialMeasurer, PairMeasurer, Protocol):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLimit:
    end_s: float = math.inf  # none ends later, in seconds of the run
    fits_two: bool = False  # nobody set it: two pairs of the first case fit, and the second look at a count
    fail_fast: bool = False  # pairs end with the first conviction

    def compute_end_s(self, suspect: Suspect, pairs: Mapping[str, int]) -> float:
        """Of the suspect's next pair; ``pairs`` are those of each case so far."""
        case_pairs, most = pairs.get(suspect.case_id, 0), max(pairs.values(), default=0)
        is_first = case_pairs == most < MIN_PAIRS
        is_again = case_pairs > 0 and awaits_count(suspect, case_pairs)
        return math.inf if self.fits_two and (is_first or is_again) else self.end_s


NO_LIMIT = PairLimit()


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckTerms:
    baselines: tuple[Baseline, ...]
    policy: Policy
    trials: int = 1  # of each case, which the run has
    max_trials: int = 1  # of a case that more trials could settle
    pair_budget_s: float = math.inf  # seconds of pairs, on top of what the run took
    fits_two: bool = False  # nobody set that budget: two pairs of a case fit
    thorough: bool = False  # whether a case that pairs have convicted is measured on
    fail_fast: bool = False  # whether nothing is measured on once a case is convicted


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    run: Run
    verdict: Verdict


def check_against_baselines(measurer: TrialMeasurer, run: Run, terms: CheckTerms) -> Checked:
    """A further trial measures what is still open of its case, where that is noisy."""
    policy = _count_looks(terms)
    verdict = decide_verdict(run, terms.baselines, policy)
    for trials in range(terms.trials + 1, terms.max_trials + 1):
        rows = group_cases(list_open(verdict))
        wanted = {case_id: {row.metric for row in case_rows} for case_id, case_rows in rows.items()}
        is_over = terms.fail_fast and verdict.outcome is Outcome.REGRESSION
        if is_over or not wanted:
            break
        extended = measurer.add_trials(run, wanted, trials)
        if (extended.trials, extended.failures) == (run.trials, run.failures):  # none came to an end
            break
        run = extended
        verdict = decide_verdict(run, terms.baselines, policy)
    return Checked(run=run, verdict=verdict)


def check_against_base(measurer: Measurer | None, run: Run, terms: CheckTerms) -> Checked:
    """Screen by stored baselines, and let pairs with the run's base decide about the suspects.

    Without a measurer nothing is added to the run.
    """
    if terms.policy.limits:
        terms = replace(terms, policy=_count_looks(terms))
        run = run if measurer is None else _settle_limits(measurer, run, terms)
    policy = terms.policy
    screening = _screen_against_base(run, terms)
    suspects = _list_suspects(screening, terms)
    if measurer is not None and not terms.thorough and (longer := _list_longer_compiles(screening, suspects)):
        run = measurer.add_trials(run, longer, terms.trials + 1)
        screening = _screen_against_base(run, terms)
        suspects = _list_suspects(screening, terms)
    if suspects and measurer is not None:
        end_s = run.wall_s + terms.pair_budget_s
        limit = PairLimit(end_s=end_s, fits_two=terms.fits_two, fail_fast=terms.fail_fast)
        run = settle_pairs(measurer, run, policy, limit, suspects)
        # Screened again, since a case that failed in a pair has failed; it is no less suspect for that.
        screening = _screen_against_base(run, terms)
    confirmed = confirm_screening(screening, run, policy, suspects)
    return Checked(run=run, verdict=conclude_verdict(run, confirmed, policy))


def _list_suspects(screening: Screening, terms: CheckTerms) -> tuple[Suspect, ...]:
    """Without what looks faster in a program that is the base's."""
    listed = list_suspects(screening, thorough=terms.thorough)
    return tuple(suspect for suspect in listed if suspect.case_id not in screening.base.same)


def _list_longer_compiles(screening: Screening, suspects: Iterable[Suspect]) -> dict[str, Collection[Metric]]:
    """The cases of which a cold compile alone is open, that chance may have made longer."""
    compiles = {row.case_id: row for row in screening.comparisons if row.metric is Metric.COLD_COMPILE_TIME}
    return {
        suspect.case_id: suspect.metrics
        for suspect in suspects
        if set(suspect.metrics) == {Metric.COLD_COMPILE_TIME}
        and compiles[suspect.case_id].severity < CHANCE_EDGES
    }


def _settle_limits(measurer: TrialMeasurer, run: Run, terms: CheckTerms) -> Run:
    for trials in range(terms.trials + 1, terms.max_trials + 1):
        evidence = screen_run(run, terms.baselines, terms.policy).evidence
        wanted = find_open_limits(evidence, terms.policy, run.environment.device_kind)
        extended = measurer.add_trials(run, wanted, trials) if wanted else run
        if (extended.trials, extended.failures) == (run.trials, run.failures):  # none came to an end
            break
        run = extended
    return run


def _count_looks(terms: CheckTerms) -> Policy:
    """The error budget is for the whole verdict, however often the same trials are judged."""
    return replace(terms.policy, times_judged=terms.max_trials - terms.trials + 1)


def _screen_against_base(run: Run, terms: CheckTerms) -> Screening:
    screening = screen_run(run, terms.baselines, terms.policy)
    return screening if terms.thorough else clear_unchanged_sources(screening, run)


def judge_recorded(run: Run, terms: CheckTerms) -> Verdict:
    """As the command that measured it would: by its pairs too, where it has a base.

    A run that was stopped is INCOMPLETE, whatever its pairs show.
    """
    if run.base is None or not run.finished:
        return decide_verdict(run, terms.baselines, terms.policy)
    if any(trial.pairing is Pairing.ALONE for trial in run.trials):
        return check_against_base(None, run, terms).verdict
    return decide_side_by_side(run, terms.policy)


def check_pairs(measurer: PairMeasurer, run: Run, policy: Policy, limit: PairLimit = NO_LIMIT) -> Checked:
    run = settle_pairs(measurer, run, policy, limit, None)
    return Checked(run=run, verdict=decide_side_by_side(run, policy))


def settle_pairs(
    measurer: PairMeasurer, run: Run, policy: Policy, limit: PairLimit, suspects: Sequence[Suspect] | None
) -> Run:
    """Look by look, until all is settled, the last look is over or the time is up.

    One case after the other, by its rank; the whole plan where ``suspects`` is ``None``.
    """
    stopped: set[str] = set()  # no time, no counterpart or a failure: asking again would not help
    fast = limit.fail_fast
    while needs := list_needs(run, list_unsettled(run, policy, suspects, fail_fast=fast), stopped):
        first, *_ = needs
        pairs = run.pair_counts
        asked = needs if run.wall_s < limit.end_s else [first]
        run = measurer.add_pairs(run, asked, limit.compute_end_s(first, pairs))
        if run.pair_counts[first.case_id] < pairs[first.case_id] + first.more:
            stopped.add(first.case_id)
    return replace(run, finished=True)


def list_unfinished(run: Run, policy: Policy) -> tuple[str, ...]:
    """The cases that :func:`settle_pairs` would give more pairs, had there been time."""
    return tuple(need.case_id for need in list_needs(run, list_unsettled(run, policy), ()))
