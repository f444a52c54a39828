"""``ab``: two arms side by side on this machine: two states of the code, or two interpreters."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from gate.check.procedure import Checked, check_pairs, list_unfinished
from gate.check.schedule import want_whole
from gate.cli.lanes import begin_sources, load_previous, open_lane, open_measurer
from gate.cli.output import print_traces, record_creep, report_verdict
from gate.cli.setup import Project, load_project, note_idle, note_origin
from gate.decide.evidence.pairs import list_alike
from gate.decide.side_by_side import decide_side_by_side
from gate.errors import ExitCode, FileError, UsageError
from gate.lab.arms.arms import ArmOptions, find_checkouts, open_arms, resolve_arms
from gate.lab.trials.lane import Lane, LaneTerms
from gate.project.arm_cases import load_head_cases
from gate.project.config import Config
from gate.records import BASE_ARM, Code, Fact, Metric, Policy, Run, Verdict, name_words
from gate.revisions import advise_missing, find_ref, find_top
from gate.store.policy import ANCHOR_FILE, AnchorFile, describe_anchor, load_anchor, load_policy


def run_ab(options: Namespace) -> ExitCode:
    """Measure two arms in pairs and judge head against base; nothing stored is needed."""
    request = load_project(options)
    policy = load_policy(request.config)
    anchor = find_anchor(options, request.config)
    if options.history and anchor is None:
        what = "--history: only comparisons with the release anchor are stored"
        raise UsageError(what, "Leave it out, or compare with the anchor: --anchor.")
    arms = make_arms(options, request.config, anchor)
    checked = compare_arms(options, request, policy, arms)
    verdict = note_anchor(checked.verdict, anchor)
    verdict = note_origin(note_idle(verdict, policy, request.registry), request.config, options)
    if anchor is not None:
        record_creep(options, request.config, verdict)
    code = report_verdict(verdict, request.config, options, request.config.out)
    print_traces(checked.run, request.config.out)
    return code


_RECORD = "compile-gate baseline anchor REF --reason TEXT"


def find_anchor(options: Namespace, config: Config) -> AnchorFile | None:
    """Find the anchor that ``--anchor`` asks for; ``None`` where it is not asked for.

    Raises:
        UsageError: There is none, or BASE is named as well.
        FileError: It cannot be used, or its commit is not in this repository.
    """
    if not options.anchor:
        return None
    if options.head:
        what = f"--anchor is the base, so there is no place for both {options.base} and {options.head}"
        raise UsageError(what, "Give HEAD alone: compile-gate ab --anchor HEAD.")
    anchor, path = load_anchor(config.baselines), config.baselines / ANCHOR_FILE
    if anchor is None:
        what = f"--anchor: {path} does not exist, so there is no anchor"
        raise UsageError(what, f"Record one and commit it: {_RECORD}")
    find_top(config.directory)
    if find_ref(config.directory, anchor.commit) is None:
        fix = advise_missing(config.directory, f"Fetch it, or record another: {_RECORD}")
        raise FileError(str(path), "commit", f"{anchor.commit} is not in this repository", fix)
    return anchor


def note_anchor(verdict: Verdict, anchor: AnchorFile | None) -> Verdict:
    """Say first what head was compared with, and that a change may be that of many commits."""
    if anchor is None:
        return verdict
    note = Fact(code=Code.ANCHOR, names=name_words(anchor=describe_anchor(anchor)))
    return replace(verdict, notes=(note, *verdict.notes))


def make_arms(options: Namespace, config: Config, anchor: AnchorFile | None = None) -> ArmOptions:
    """Make what to compare of the options. An ``anchor`` is the base, and the first name is head's then.

    Raises:
        UsageError: Code and interpreter both differ: nobody could tell which of them changed something.
    """
    base, head = (anchor.commit, options.base) if anchor else (options.base, options.head)
    if base and options.base_python != options.head_python:
        what = "two commits and two interpreters: nobody could tell which of them changed something"
        fix = "Compare the interpreters without BASE first, then the code: give both the same interpreter."
        raise UsageError(what, fix)
    return ArmOptions(
        directory=config.directory,
        base=base or "",
        head=head or "",
        base_name=f"the anchor{f' {anchor.name}' if anchor.name else ''}" if anchor else "",
        base_python=options.base_python or "",
        head_python=options.head_python or "",
    )


def compare_arms(options: Namespace, request: Project, policy: Policy, arms: ArmOptions) -> Checked:
    """Measure both arms in pairs, until all is settled."""
    previous = load_previous(options, request.config.out)
    resolve_arms(arms)
    opening = partial(open_arms_lane, options, arms)
    with open_measurer(options, request, opening, previous) as (measurer, begun):
        # What has no counterpart is measured on its own: what is new must run too. The pairs are still to
        # come then, so that what a kill leaves on disk is no finished run.
        alone = replace(measurer, save=lambda run: measurer.save(replace(run, finished=False)))
        run = replace(alone.add_trials(begun, want_whole(_list_unpaired(begun)), 1), finished=False)
        checked = check_pairs(measurer, run, policy, run.toolchain_s + 60 * options.minutes)
        if left := _list_left_alone(checked.run):
            run = replace(alone.add_trials(checked.run, left, 1), finished=checked.run.finished)
            checked = Checked(run=run, verdict=decide_side_by_side(run, policy))
        measurer.save(checked.run)
    if short := list_unfinished(checked.run, policy):
        notes = (Fact(code=Code.TIME_UP, cases=short), *checked.verdict.notes)
        return replace(checked, verdict=replace(checked.verdict, notes=notes))
    return checked


@contextmanager
def open_arms_lane(
    options: Namespace, arms: ArmOptions, request: Project, terms: LaneTerms
) -> Iterator[Lane]:
    """Open a lane with both arms."""
    with open_arms(arms) as sources:
        begin_sources(sources, request, terms.observe)
        if arms.head:
            cases = load_head_cases(request.config, request.cases, Path(sources.head.arm.directory))
            request = replace(request, cases=cases)
        how = {"checkouts": find_checkouts(sources), "traces": options.trace}
        with open_lane(request, terms, sources, **how) as lane:
            yield lane


def _list_left_alone(run: Run) -> Mapping[str, Collection[Metric]]:
    """The cases whose pairs ended as the base failed: whether head runs is unknown."""
    failed = {one.case_id for one in run.failures if one.arm == BASE_ARM}
    ran = {one.case_id for one in run.trials if one.arm != BASE_ARM}
    ran |= {one.case_id for one in run.failures if one.arm != BASE_ARM}
    return want_whole(failed - ran)


def _list_unpaired(run: Run) -> set[str]:
    return {case.id for case in run.cases} - list_alike(run)
