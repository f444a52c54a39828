"""Which undecided cases no likely trials would settle: they are spared them. Pure.

What further trials may show is imagined, and judged by the same rules as what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from gate.check.content import Content, drop_unmeasured, plan_trial
from gate.check.pair_schedule import name_device
from gate.decide import collect_values, list_open
from gate.decide.constants import OUTLOOK_SCATTER, OUTLOOK_SIGMAS
from gate.metrics import SPECS, Family
from gate.records import (
    Comparison,
    Extent,
    MachineShift,
    Metric,
    Pairing,
    Reason,
    Run,
    Status,
    Trial,
    Verdict,
)
from gate.records.groups import group_cases

Judge = Callable[[Run], Sequence[Comparison]]

# Open for the scatter of trials, which foretells what more of them may show. A bad minute of one case it does
# not foretell, nor what the witnesses of a compile will say.
_FORESEEN = frozenset({Reason.SUSPECT, Reason.NOISE_TOO_HIGH, Reason.SHARED_SHIFT})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reach:
    """How far a mean may move and trials scatter, logarithms that are not negative; or how much of that."""

    worse: float = 0.0
    better: float = 0.0
    scatter: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prospect:
    """The trials of a case, a further one at their mean, and how far what that measures may move."""

    own: Sequence[Trial]
    further: Trial
    reaches: Mapping[Metric, _Reach]


# Less scatter is surer. Where the machine got slower more of it may clear: what is slower as it is seems no
# longer certain, and without the machine's shift nothing is.
_FUTURES = (
    _Reach(),
    _Reach(worse=1.0),
    _Reach(better=1.0),
    _Reach(scatter=1.0),
    _Reach(better=1.0, scatter=1.0),
)


def list_hopeless(run: Run, verdict: Verdict, trials: int, judge: Judge) -> tuple[str, ...]:
    """List the undecided cases that stand as they do, whatever up to ``trials`` trials are likely to show.

    Futures are imagined: further trials equal the mean of those that a case has, or scatter about it; and
    that mean is where it is, or worse or better by as much as so many trials are likely to move it. What
    they would not measure stays as it is.

    Args:
        run: What was measured.
        verdict: What was made of it.
        trials: How many of each case there can be in the end.
        judge: Compares a run as the verdict's was.
    """
    found, wanted = group_cases(verdict.comparisons), group_cases(list_open(verdict))
    fit = {
        case_id: own
        for case_id, own in group_cases(run.trials).items()
        if case_id in wanted and not any(map(_is_special, own))
    }
    others = tuple(trial for trial in run.trials if trial.case_id not in fit)
    prospects = []
    for case_id, own in fit.items():
        content = plan_trial({row.metric for row in wanted[case_id]}, own, name_device(run))
        rows = [row for row in found[case_id] if content.measures(row.metric)]
        reaches = _measure_reaches(rows, max(trials - len(own), 0), verdict.machine)
        prospects.append(_Prospect(own=own, further=_imagine_mean(own, content), reaches=reaches))
    left = [case_id for case_id in fit if all(map(_is_foreseen, wanted[case_id]))]
    for future in _FUTURES:
        if not left:
            break
        imagined = [trial for prospect in prospects for trial in _imagine_trials(prospect, trials, future)]
        seen = group_cases(judge(replace(run, trials=(*others, *imagined))))
        left = [one for one in left if _find_standing(seen[one]) is _find_standing(found[one])]
    return tuple(left)


def _is_special(trial: Trial) -> bool:
    """Whether another trial of its case would not be like it: it ran in a pair, or on an unfit host."""
    return trial.pairing is not Pairing.ALONE or bool(trial.conditions.disturbances)


def _is_foreseen(row: Comparison) -> bool:
    is_noisy = SPECS[row.metric].family is Family.NOISY
    return is_noisy and row.status is Status.INCONCLUSIVE and row.reason in _FORESEEN


def _find_standing(rows: Sequence[Comparison]) -> Status | None:
    """How a case stands: REGRESSED, INCONCLUSIVE or, with ``None``, neither."""
    statuses = {row.status for row in rows if row.decides}
    return next((one for one in (Status.REGRESSED, Status.INCONCLUSIVE) if one in statuses), None)


def _measure_reaches(rows: Sequence[Comparison], more: int, machine: MachineShift) -> Mapping[Metric, _Reach]:
    """How far the mean of each noisy metric may move with so many ``more`` trials of it.

    Either way by OUTLOOK_SIGMAS standard deviations times sqrt(1/m - 1/n); to the better also by what it does
    where the trials at hand were strays, and the others are as stored on the machine as it is. Eager stays
    where it is, so compiled latency moves by what the speedup may as well.
    """
    shift = math.log1p(max(machine.suite or machine.canary, 0.0))
    reaches = {}
    for row in rows:
        if SPECS[row.metric].family is Family.NOISY and row.change and row.candidate and row.candidate.noise:
            share = row.candidate.n / (row.candidate.n + more)  # of all its trials, those at hand
            chance = OUTLOOK_SIGMAS * row.candidate.noise * math.sqrt((1 - share) / row.candidate.n)
            own = math.log1p(row.change.centre) - (shift if SPECS[row.metric].unit == "s" else 0.0)
            reaches[row.metric] = _Reach(
                worse=chance,
                better=max(chance, (1 - share) * own),
                scatter=OUTLOOK_SCATTER * row.candidate.noise,
            )
    ratio = reaches.pop(Metric.WARM_SPEEDUP, _Reach())
    latency = reaches.get(Metric.COMPILED_LATENCY, _Reach())
    widest = replace(latency, worse=max(latency.worse, ratio.worse), better=max(latency.better, ratio.better))
    return {**reaches, Metric.COMPILED_LATENCY: widest, Metric.EAGER_LATENCY: _Reach()}


def _imagine_mean(own: Sequence[Trial], content: Content) -> Trial:
    """The mean of a case's trials, as far as a further one of this content would tell of it."""
    last = next((trial for trial in reversed(own) if trial.extent is Extent.WHOLE), own[-1])
    means = {
        metric: (geometric_mean(values),)
        for metric, values in collect_values(own).items()
        if metric in last.samples and SPECS[metric].family is Family.NOISY and min(values) > 0
    }
    mean = replace(last, samples={**last.samples, **means})
    return replace(drop_unmeasured(mean, content), extent=content.extent)


def _imagine_trials(prospect: _Prospect, trials: int, future: _Reach) -> list[Trial]:
    """The trials of a case and as many more about their mean, all of them moved."""
    own, reaches = prospect.own, prospect.reaches
    moved = [_move_trial(trial, reaches, replace(future, scatter=0.0)) for trial in own]
    for index in range(len(own) + 1, trials + 1):
        side = future.scatter if index % 2 else -future.scatter
        moved.append(
            _move_trial(replace(prospect.further, index=index), reaches, replace(future, scatter=side))
        )
    return moved


def _move_trial(trial: Trial, reaches: Mapping[Metric, _Reach], future: _Reach) -> Trial:
    return replace(
        trial,
        samples={
            metric: tuple(
                value * _find_factor(metric, reaches.get(metric, _Reach()), future) for value in values
            )
            for metric, values in trial.samples.items()
        },
    )


def _find_factor(metric: Metric, reach: _Reach, future: _Reach) -> float:
    change = future.worse * reach.worse - future.better * reach.better + future.scatter * reach.scatter
    return math.exp(-change if SPECS[metric].higher_is_better else change)
