"""Judges a simulated pull request as ``check`` judges a real one, with trials and pairs from a drawer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.calibration import Effort
from gate.decide.outcome import list_undecided
from gate.decide.pairs import Pair
from gate.decide.side_by_side import confirm_screening
from gate.decide.suspects import Suspect, find_next_look, list_suspects, list_unsettled
from gate.decide.verdict import Screening, conclude_verdict, decide_verdict, screen_run
from gate.metrics import SPECS, Family
from gate.records import Baseline, Policy, Run, Status, Trial, Verdict

# A counter that moved is looked at in a second trial before it counts.
EXACT_TRIALS = 2
_MOVED = frozenset({Status.REGRESSED, Status.INCONCLUSIVE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One simulated pull request: what is stored, and trials and pairs of the change in their order."""

    baselines: tuple[Baseline, ...]
    candidates: Mapping[str, Sequence[Trial]]  # by case id
    pairs: Mapping[str, Sequence[Pair]] = field(default_factory=dict)  # empty: there is no base


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A verdict, and what it took."""

    verdict: Verdict
    trials: int
    pairs: int


def judge_request(run: Run, request: Request, policy: Policy, effort: Effort) -> Judged:
    """Judge a request: with the base beside it where there are pairs, else by more trials."""
    if request.pairs:
        return _confirm(run, request, policy, effort)
    policy = replace(policy, looks=effort.max_trials - effort.trials + 1)
    run = replace(run, base=None)
    given = dict.fromkeys(request.candidates, effort.trials)
    verdict = decide_verdict(_take_trials(run, request, given), request.baselines, policy)
    for _ in range(effort.trials, effort.max_trials):
        undecided = list_undecided(verdict)
        if not undecided:
            break
        given |= {case_id: given[case_id] + 1 for case_id in undecided}
        verdict = decide_verdict(_take_trials(run, request, given), request.baselines, policy)
    return Judged(verdict=verdict, trials=sum(given.values()), pairs=0)


def _confirm(run: Run, request: Request, policy: Policy, effort: Effort) -> Judged:
    """Screen, look again at what moved without noise, and let pairs decide on the suspects."""
    given = dict.fromkeys(request.candidates, effort.trials)
    screening = screen_run(_take_trials(run, request, given), request.baselines, policy)
    moved = _list_moved(screening)
    if moved:
        again = min(effort.max_trials, max(effort.trials, EXACT_TRIALS))
        given |= dict.fromkeys(moved, again)
        screening = screen_run(_take_trials(run, request, given), request.baselines, policy)
    suspects = list_suspects(screening)
    drawn = _settle(_take_trials(run, request, given), request, policy, suspects)
    verdict = conclude_verdict(drawn, confirm_screening(screening, drawn, policy), policy)
    trials = sum(given.values())
    return Judged(verdict=verdict, trials=trials, pairs=(len(drawn.trials) - trials) // 2)


def _settle(run: Run, request: Request, policy: Policy, suspects: Sequence[Suspect]) -> Run:
    """Draw pairs, look by look, until all is settled or the last look is over."""
    taken = dict.fromkeys(request.pairs, 0)
    while unsettled := list_unsettled(run, policy, suspects) if suspects else ():
        fresh: list[Trial] = []
        for one in unsettled:
            start = taken[one.case_id]
            chosen = request.pairs[one.case_id][start : find_next_look(start)]
            taken[one.case_id] += len(chosen)
            fresh += [trial for pair in chosen for trial in (pair.base, pair.head)]
        if not fresh:
            break
        run = replace(run, trials=(*run.trials, *fresh))
    return run


def _list_moved(screening: Screening) -> set[str]:
    """The cases whose counters, memory or drift moved: they need another trial, not pairs."""
    return {
        row.case_id
        for row in screening.comparisons
        if row.decides and SPECS[row.metric].family is not Family.NOISY and row.status in _MOVED
    }


def _take_trials(run: Run, request: Request, given: Mapping[str, int]) -> Run:
    trials = (trial for case_id, count in given.items() for trial in request.candidates[case_id][:count])
    return replace(run, trials=tuple(trials))
