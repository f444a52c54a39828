"""Which cases are worth a side-by-side run, and which of those need more pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gate.decide.constants import LOOKS, MIN_CONFIRMING_PAIRS
from gate.decide.finding import Question
from gate.decide.paired_case import LEADING, PairRules, compare_paired, make_pair_rules
from gate.decide.rules import Rules
from gate.decide.screen import Bar, Level, read_change, screen_change
from gate.decide.sides import Side, gather_sides
from gate.decide.verdict import Screening
from gate.metrics import SPECS, Family
from gate.records import Comparison, Metric, Policy, Reason, Run, Status

_OPEN = frozenset({Status.REGRESSED, Status.INCONCLUSIVE, Status.NEW, Status.NOT_COMPARABLE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A case to run in pairs: for which metrics, and how many more pairs that measure all of these."""

    case_id: str
    metrics: tuple[Metric, ...]
    more: int = LOOKS[0]


def list_suspects(screening: Screening) -> tuple[Suspect, ...]:
    """The cases whose noisy metrics look changed or could not be judged, in the plan's order.

    A speedup that looks changed makes compiled latency suspect, even where the screen cleared it.
    A case that failed or did not run is none: it is INCOMPLETE whatever pairs say.
    """
    rows: dict[str, dict[Metric, Comparison]] = {}
    for row in screening.comparisons:
        rows.setdefault(row.case_id, {})[row.metric] = row
    found = []
    for position, one in enumerate(screening.evidence):
        if not one.trials or one.failures:
            continue
        questions = screening.questions[position] if screening.questions else {}
        metrics = _list_suspicious(rows.get(one.case.id, {}), questions, screening.rules)
        if metrics:
            found.append(Suspect(case_id=one.case.id, metrics=metrics))
    return tuple(found)


def list_unsettled(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[Suspect, ...]:
    """The cases that need more pairs to reach their next look; without ``suspects``, of the whole plan.

    A case that failed in either arm, or that the base lacks or defines otherwise, needs none.
    """
    sides, rules = gather_judged(run, policy, suspects)
    failed = {failure.case_id for failure in run.failures}
    bases = {case.id: case.definition for case in run.base.cases} if run.base else {}
    wanted = {one.case_id: one.metrics for one in suspects} if suspects is not None else {}
    found = []
    for side in sides:
        case = side.evidence.case
        if case.id in failed or bases.get(case.id) != case.definition:
            continue
        needs = dict(_list_needs(side, rules, wanted.get(case.id, _list_leading())))
        if needs:
            found.append(Suspect(case_id=case.id, metrics=tuple(needs), more=max(needs.values())))
    return tuple(found)


def gather_judged(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[tuple[Side, ...], PairRules]:
    """The sides of the suspects, or of the whole plan, and the rules that their number asks for."""
    if suspects is None:
        sides = gather_sides(run, policy)
        tests = sum(metric in side.questions for side in sides for metric in LEADING)
    else:
        sides = gather_sides(run, policy, [one.case_id for one in suspects])
        tests = sum(metric in one.metrics for one in suspects for metric in LEADING)
    return sides, make_pair_rules(sides, policy, tests)


def _list_suspicious(
    rows: Mapping[Metric, Comparison], questions: Mapping[Metric, Question], rules: Rules | None
) -> tuple[Metric, ...]:
    found = {metric for metric, row in rows.items() if _is_open(row)}
    speedup = questions.get(Metric.WARM_SPEEDUP)
    if Metric.WARM_SPEEDUP in found or (speedup and rules and _is_ratio_suspicious(speedup, rules)):
        found.add(Metric.COMPILED_LATENCY)
    if Metric.COMPILED_LATENCY in found:
        found.add(Metric.WARM_SPEEDUP)
    return tuple(metric for metric in SPECS if metric in found)


def _is_open(row: Comparison) -> bool:
    return row.decides and SPECS[row.metric].family is Family.NOISY and row.status in _OPEN


def _is_ratio_suspicious(question: Question, rules: Rules) -> bool:
    """Whether the screen would suspect the speedup by itself, before compiled latency acquits it."""
    if question.logs is None:
        return False
    reading = read_change(question.metric, question.logs, rules.priors[question.metric])
    return screen_change(reading, Bar(alpha=rules.alpha, threshold=question.threshold)) > Level.CLEAR


def _list_leading() -> tuple[Metric, ...]:
    return (*LEADING, Metric.WARM_SPEEDUP)


def _list_needs(side: Side, rules: PairRules, wanted: Iterable[Metric]) -> Iterator[tuple[Metric, int]]:
    """The metrics that are open, with the pairs that each needs until its next look."""
    if not side.paired:
        yield from ((metric, LOOKS[0]) for metric in wanted)
        return
    for row in compare_paired(side, rules):
        if row.reason is not Reason.UNSETTLED:
            continue
        steady = SPECS[row.metric].family is not Family.NOISY
        if steady and row.decides:
            yield row.metric, MIN_CONFIRMING_PAIRS - row.pairs
        elif row.metric in LEADING and row.metric in wanted and row.pairs < LOOKS[-1]:
            yield row.metric, next(look for look in LOOKS if look > row.pairs) - row.pairs
