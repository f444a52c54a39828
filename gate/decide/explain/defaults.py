"""What setting back options of torch.compile has shown: the default that made something worse."""

from collections.abc import Sequence
from dataclasses import replace

from gate.decide.explain.inquiry import CAUSES, MAX_NAMED
from gate.records.cases import group_by
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Probe, Run
from gate.records.verdict import Cause

# A default is the cause if setting it back undoes at least this share of the change: a pair of the smallest
# relevant change tells so much from nothing.
UNDONE_SHARE = 0.5
_MOST_LISTED = 60  # of the defaults that differ; two releases of torch have some 40


def is_gone(probe: Probe) -> bool:
    """Whether so much of a change is undone that what was set back is its cause."""
    return probe.left <= (1 - UNDONE_SHARE) * probe.change


def add_defaults(causes: Sequence[Cause], run: Run) -> tuple[Cause, ...]:
    """Add the cause that setting back options has shown to those of its case, by weight."""
    if (found := find_default(run)) is None:
        return tuple(causes)
    weight = CAUSES[Code.DEFAULT_CHANGED][0]
    place = next(
        (
            number
            for number, cause in enumerate(causes)
            if cause.case_id == found.cases[0] and cause.weight < weight
        ),
        len(causes),
    )
    added = Cause(case_id=found.cases[0], fact=replace(found, cases=()), weight=weight)
    return (*causes[:place], added, *causes[place:])


def find_default(run: Run) -> Fact | None:
    """Find the fewest options that undid the change each time; the fact's case is the one it is of."""
    groups = group_by(run.probes, lambda probe: probe.options)
    undone = {options: probes for options, probes in groups.items() if all(map(is_gone, probes))}
    if not undone or run.base is None:
        return None
    options = min(undone, key=len)
    probes, defaults = undone[options], run.base.defaults
    return Fact(
        code=Code.DEFAULT_CHANGED,
        cases=(probes[0].case_id,),
        metrics=(probes[0].metric,),
        numbers={
            "change": probes[0].change,
            "left": max(probe.left for probe in probes),
            "pairs": len(probes),
            "more": max(0, len(options) - MAX_NAMED),
        },
        names={name: defaults[name] for name in options[:MAX_NAMED] if name in defaults},
    )


def note_defaults(run: Run) -> tuple[Fact, ...]:
    """A note on the defaults that differ between both stacks, and on whether they are innocent together."""
    defaults = run.base.defaults if run.base else {}
    if not defaults:
        return ()
    shown = dict(list(defaults.items())[:_MOST_LISTED])
    stays = bool(run.probes) and not is_gone(max(run.probes, key=lambda probe: len(probe.options)))
    numbers = {"defaults": len(defaults), "more": len(defaults) - len(shown), "stays": float(stays)}
    names = {name: (base or "none", head or "none") for name, (base, head) in shown.items()}
    return (Fact(code=Code.DEFAULTS_DIFFER, numbers=numbers, names=names),)
