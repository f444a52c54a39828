"""What setting back options of torch.compile has shown: the default that made something worse."""

from collections.abc import Sequence
from dataclasses import replace

from gate.decide.constants import COMPILE_PAIR_SD, LIVE_PAIR_SD, MIN_PAIRS
from gate.decide.explain.inquiry import CAUSES, MAX_NAMED, insert_cause
from gate.metrics import COMPILE_TIMES, SPECS, Family
from gate.records.cases import Metric, group_by
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Probe, Run
from gate.records.verdict import Cause

# A default is the cause if setting it back undoes at least this share of the change.
UNDONE_SHARE = 0.5
# A change of a noisy metric is looked into from so many standard deviations of a pair on: half of it is two.
LEAST_DEVIATIONS = 4.0
_MOST_LISTED = 60  # of the defaults that differ; two releases of torch have some 40


def is_clear(metric: Metric, change: float) -> bool:
    if SPECS[metric].family is not Family.NOISY:
        return change > 0
    return change >= LEAST_DEVIATIONS * (COMPILE_PAIR_SD if metric in COMPILE_TIMES else LIVE_PAIR_SD)


def is_gone(probe: Probe) -> bool:
    """Whether setting back undid at least UNDONE_SHARE."""
    return probe.left <= (1 - UNDONE_SHARE) * probe.change


def add_defaults(causes: Sequence[Cause], run: Run) -> tuple[Cause, ...]:
    if (fact := find_default(run)) is None:
        return tuple(causes)
    weight = CAUSES[Code.DEFAULT_CHANGED][0]
    return insert_cause(causes, Cause(case_id=fact.cases[0], fact=replace(fact, cases=()), weight=weight))


def find_default(run: Run) -> Fact | None:
    """The fewest options that undid the change each time, as a fact with its case.

    It must also be undone whenever more than these were set back. A noisy metric needs two such pairs.
    """
    groups = group_by(run.probes, lambda probe: probe.options)
    undone = [options for options, probes in groups.items() if all(map(is_gone, probes))]
    if not undone or run.base is None:
        return None
    options, defaults = min(undone, key=len), run.base.defaults
    probes = [probe for probe in run.probes if set(options) <= set(probe.options)]
    first, *_ = probes  # all are of one change
    if len(probes) < MIN_PAIRS and SPECS[first.metric].family is Family.NOISY:
        return None
    return Fact(
        code=Code.DEFAULT_CHANGED,
        cases=(first.case_id,),
        metrics=(first.metric,),
        numbers={
            "change": first.change,
            "left": max(probe.left for probe in probes),
            "pairs": len(probes),
            "more": max(0, len(options) - MAX_NAMED),
        },
        names={name: defaults[name] for name in options[:MAX_NAMED] if name in defaults},
    )


def note_defaults(run: Run) -> tuple[Fact, ...]:
    """The defaults that differ between both stacks, and whether setting all back changed nothing.

    Those that both have come first, then new ones, then those that are gone.
    """
    defaults = run.base.defaults if run.base else {}
    if not defaults:
        return ()
    defaults = dict(sorted(defaults.items(), key=lambda item: (not item[1][1], not item[1][0])))
    shown = dict(list(defaults.items())[:_MOST_LISTED])
    new, gone = (sum(not sides[side] for sides in defaults.values()) for side in (0, 1))
    stays = bool(run.probes) and not is_gone(max(run.probes, key=lambda probe: len(probe.options)))
    numbers = {"defaults": len(defaults), "more": len(defaults) - len(shown), "stays": float(stays)}
    numbers |= {"moved": len(defaults) - new - gone, "new": new, "gone": gone}
    names = {name: (base or "none", head or "none") for name, (base, head) in shown.items()}
    return (Fact(code=Code.DEFAULTS_DIFFER, numbers=numbers, names=names),)
