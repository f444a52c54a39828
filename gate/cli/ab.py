"""``ab``: two arms side by side on this machine, code or stack or one after the other."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gate.check import Checked, check_pairs, list_unfinished, want_whole
from gate.check.pair_schedule import is_paired
from gate.cli.baseline import find_anchor, note_anchor
from gate.cli.history import record_creep
from gate.cli.lanes import open_measurer
from gate.cli.output import (
    code_verdict,
    list_reports,
    print_traces,
    print_verdict,
    read_previous,
    save_reports,
)
from gate.cli.place import add_base, begin_sources, place_lab
from gate.cli.setup import RUN_FILE, Project, load_project
from gate.cli.verdict_notes import note_idle, note_origin
from gate.decide import Suspect, decide_side_by_side
from gate.errors import ExitCode, UsageError
from gate.lab.arms.arms import ArmOptions, find_checkouts, open_arms, resolve_arms
from gate.lab.trials.lane import Lane, LaneTerms
from gate.lab.trials.merging import carry_over
from gate.lab.trials.opening import open_lab
from gate.lab.trials.runner import make_run
from gate.lab.trials.side_by_side import open_side_by_side
from gate.project.arm_cases import load_head_cases
from gate.project.config import Config
from gate.records import BASE_ARM, Code, Fact, Metric, Outcome, Policy, Run
from gate.store.policy import AnchorFile, load_policy

# Which factor of a two-by-two run a directory below ``out`` is about.
STACK, CODE = "stack", "code"
_STRENGTH = tuple(ExitCode[outcome.name] for outcome in Outcome)  # strongest first


@dataclass(frozen=True, kw_only=True, slots=True)
class Factor:
    """One question: what to compare with what, and where its files go."""

    name: str  # empty where there is only one
    arms: ArmOptions
    out: Path
    suspects: tuple[Suspect, ...] | None = None  # what pairs must settle; None: everything


def run_ab(options: Namespace) -> ExitCode:
    """Measure two arms in pairs and judge head against base; nothing stored is needed."""
    request = load_project(options)
    policy = load_policy(request.config)
    codes = []
    anchor = find_anchor(options, request.config)
    if options.history and anchor is None:
        what = "--history: only comparisons with the release anchor are stored"
        raise UsageError(what, "Leave it out, or compare with the anchor: --anchor.")
    factors = list_factors(options, request.config, anchor)
    begun = read_previous(options, [factor.out for factor in factors])
    for factor in factors:
        resolve_arms(factor.arms)  # those of the second too, before the first is measured
    for factor in factors:
        if factor.name:
            print(f"== {factor.name}: {_FACTORS[factor.name]} ==")
        checked = compare_arms(options, request, policy, factor, begun)
        verdict = checked.verdict
        verdict = note_anchor(verdict, anchor)
        verdict = note_origin(note_idle(verdict, policy, request.registry), request.config, options)
        codes.append(code_verdict(verdict, request.config))
        save_reports(verdict, factor.out, codes[-1])
        if anchor is not None and factor.name != STACK:
            record_creep(options, request.config, verdict)
        print_verdict(verdict, codes[-1], request.config, options)
        print_traces(checked.run, factor.out)
    return min(codes, key=_STRENGTH.index)


_FACTORS = {
    STACK: "the base's code on both interpreters",
    CODE: "both codes on head's interpreter",
}


def list_factors(options: Namespace, config: Config, anchor: AnchorFile | None = None) -> tuple[Factor, ...]:
    """List what must be compared: code, or stack, or one after the other.

    Where both change at once, the stack is compared on the base's code and the code on head's stack, so
    that a change is charged to one of them. An ``anchor`` is the base, and the first name is head's then.
    """
    base, head = (anchor.commit, options.base) if anchor else (options.base, options.head)
    asked = ArmOptions(
        directory=config.directory,
        base=base or "",
        head=head or "",
        base_name=f"the anchor{f' {anchor.name}' if anchor.name else ''}" if anchor else "",
        base_python=options.base_python or "",
        head_python=options.head_python or "",
    )
    if not (asked.base and (asked.base_python or asked.head_python)):
        return (Factor(name="", arms=asked, out=config.out),)
    stack = replace(asked, head=asked.base)
    code = replace(asked, base_python=asked.head_python)
    return (
        Factor(name=STACK, arms=stack, out=config.out / STACK),
        Factor(name=CODE, arms=code, out=config.out / CODE),
    )


def compare_arms(
    options: Namespace, request: Project, policy: Policy, factor: Factor, begun: Mapping[Path, Run]
) -> Checked:
    """Measure both arms in pairs, until all is settled or what the factor asks for.

    ``begun`` are the runs that are continued, by their directories.
    """
    stale = [] if factor.name == CODE else _list_stale(request.config.out, begun)
    config = replace(request.config, out=factor.out)
    opening = partial(open_arms_lane, options, request, factor)
    with open_measurer(options, config, opening, *stale) as opened:
        run, measurer = opened.run, opened.measurer
        if previous := begun.get(factor.out):
            run = carry_over(run, previous)
        # What has no counterpart is measured on its own: what is new must run too. The pairs are still to
        # come then, so that what a kill leaves on disk is no finished run.
        alone = replace(measurer, save=lambda begun: measurer.save(replace(begun, finished=False)))
        run = replace(alone.add_trials(run, want_whole(_list_unpaired(run)), 1), finished=False)
        checked = check_pairs(measurer, run, policy, 60 * options.minutes, factor.suspects)
        if left := _list_left_alone(checked.run):
            run = replace(alone.add_trials(checked.run, left, 1), finished=checked.run.finished)
            checked = Checked(run=run, verdict=decide_side_by_side(run, policy))
        measurer.save(checked.run)
    if short := list_unfinished(checked.run, policy, factor.suspects):
        notes = (Fact(code=Code.TIME_UP, cases=short), *checked.verdict.notes)
        return replace(checked, verdict=replace(checked.verdict, notes=notes))
    return checked


@contextmanager
def open_arms_lane(options: Namespace, request: Project, factor: Factor, terms: LaneTerms) -> Iterator[Lane]:
    """Open a lane with both arms of a factor."""
    config = replace(request.config, out=terms.out)
    with open_arms(factor.arms) as sources:
        begin_sources(sources, request, terms.observe)
        cases = request.cases
        if factor.arms.head:
            directory = Path(sources.head.arm.directory)
            cases = load_head_cases(config, cases, directory, is_base=factor.name == STACK)
        arm, settings = place_lab(config, sources.head.arm)
        settings = replace(
            settings, traces=options.trace, checkouts=find_checkouts(sources), cores=terms.cores
        )
        with open_lab(arm, settings, terms.observe, cases) as lab:
            side_by_side = open_side_by_side(lab, sources.base.arm)
            run = replace(make_run(lab, cases, config.select, 0), provenance=sources.head.provenance)
            yield Lane(side_by_side=side_by_side, run=add_base(side_by_side, run, sources, config))


def _list_stale(out: Path, begun: Mapping[Path, Run]) -> list[Path]:
    """List what a run of one factor or two has left, which is no answer to this one.

    A run of head's code that is not continued now would count as this one's own later.
    """
    reports = [path for place in ("", STACK, CODE) for path in list_reports(out / place)]
    return reports if begun else [*reports, out / CODE / RUN_FILE]


def _list_left_alone(run: Run) -> Mapping[str, Collection[Metric]]:
    """The cases whose pairs ended as the base failed: whether head runs is unknown."""
    failed = {one.case_id for one in run.failures if one.arm == BASE_ARM}
    ran = {one.case_id for one in run.trials if one.arm != BASE_ARM}
    ran |= {one.case_id for one in run.failures if one.arm != BASE_ARM}
    return want_whole(failed - ran)


def _list_unpaired(run: Run) -> set[str]:
    base = {case.id: case for case in run.base.cases} if run.base else {}
    return {case.id for case in run.cases if not is_paired(case, base)}
