"""``ab``: two commits, directories or interpreters, in pairs; nothing stored is needed."""

from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from gate.check.defaults import probe_defaults
from gate.check.procedure import Checked, PairLimit, check_pairs, list_unfinished
from gate.check.schedule import want_whole
from gate.cli.commands import AB_MINUTES
from gate.cli.lanes import begin_sources, load_previous, open_lane, open_measurer
from gate.cli.output import code_verdict, print_traces, record_creep, report_verdict, save_reports, show_page
from gate.cli.setup import Project, load_project, note_origin, note_stop
from gate.decide.explain.inquiry import insert_cause
from gate.decide.explain.notes import note_idle
from gate.decide.side_by_side import decide_side_by_side
from gate.errors import ExitCode, FileError, UsageError
from gate.lab.arms.arms import ArmOptions, make_checkouts, open_arms, resolve_arms
from gate.lab.trials.runs import Lane, LaneTerms
from gate.project.arm_cases import load_head_cases
from gate.project.config import Config
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import BASE_ARM, Run
from gate.records.verdict import Cause, Outcome, Verdict
from gate.revisions import advise_missing, find_ref, get_top
from gate.store.anchor import ANCHOR_FILE, RECORD_ANCHOR, AnchorFile, describe_anchor, load_anchor
from gate.store.policy import load_policy

# Finds the commit that made worse what a verdict shows.
FindFirstBad = Callable[[Project, Policy, Verdict, Namespace], Cause | None]


def run_ab(options: Namespace, find_first_bad: FindFirstBad) -> ExitCode:
    request = load_project(options)
    policy = load_policy(request.config)
    anchor = load_asked_anchor(options, request.config)
    if options.history and anchor is None:
        what = "--history: only comparisons with the release anchor are stored"
        raise UsageError(what, "Leave it out, or compare with the anchor: --anchor.")
    arms = make_arms(options, request.config, anchor)
    with compare_arms(options, request, policy, arms) as checked:
        verdict = note_stop(note_origin(checked.verdict, request.config, options), options)
        verdict = replace(verdict, notes=(*verdict.notes, *note_idle(policy, request.registry)))
        if anchor is not None:
            # The first note: a change may be that of many commits.
            note = Fact(code=Code.ANCHOR, names=name_words(anchor=describe_anchor(anchor)))
            verdict = replace(verdict, notes=(note, *verdict.notes))
            record_creep(request.config, verdict)
        save_reports(verdict, request.config.out, code_verdict(verdict, request.config))  # as a check does
    is_worse = bool(verdict.failures) or verdict.outcome is Outcome.REGRESSION
    is_searched = options.anchor and is_worse and not options.fail_fast
    if is_searched and (cause := find_first_bad(request, policy, verdict, options)):
        verdict = replace(verdict, causes=insert_cause(verdict.causes, cause))
        save_reports(verdict, request.config.out, code_verdict(verdict, request.config))
    code = report_verdict(verdict, request.config, options, None)
    show_page(request.config.out, options)
    print_traces(checked.run, request.config.out)
    return code


def load_asked_anchor(options: Namespace, config: Config) -> AnchorFile | None:
    """The anchor for ``--anchor``; ``None`` without the option.

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
        raise UsageError(what, f"Record one and commit it: {RECORD_ANCHOR}")
    get_top(config.directory)
    if find_ref(config.directory, anchor.commit) is None:
        fix = advise_missing(config.directory, f"Fetch it, or record another: {RECORD_ANCHOR}")
        raise FileError(str(path), "commit", f"{anchor.commit} is not in this repository", fix)
    return anchor


def make_arms(options: Namespace, config: Config, anchor: AnchorFile | None = None) -> ArmOptions:
    """An ``anchor`` is the base, and the first name is head's then.

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


@contextmanager
def compare_arms(options: Namespace, request: Project, policy: Policy, arms: ArmOptions) -> Iterator[Checked]:
    """What measures is still open, so that reports are written before lanes close."""
    previous = load_previous(options, request.config.out)
    resolve_arms(arms)
    opening = partial(open_arms_lane, options, arms)
    with open_measurer(options, replace(request, arms=arms), opening, previous) as (measurer, begun):
        # What has no counterpart is measured on its own: what is new must run too. The pairs are still to
        # come then, so that what a kill leaves on disk is no finished run.
        unpaired = {case.id for case in begun.cases} - begun.pairable
        alone = replace(measurer, save=lambda run: measurer.save(replace(run, finished=False)))
        run = replace(alone.add_trials(begun, want_whole(unpaired), 1), finished=False)
        end_s, is_default = run.toolchain_s + 60 * options.minutes, options.minutes == AB_MINUTES
        limit = PairLimit(end_s=end_s, fits_two=is_default, fail_fast=options.fail_fast)
        checked = check_pairs(measurer, run, policy, limit)
        if left := _list_left_alone(checked.run):
            run = replace(alone.add_trials(checked.run, left, 1), finished=checked.run.finished)
            checked = Checked(run=run, verdict=decide_side_by_side(run, policy))
        measurer.save(checked.run)
        run_s = 0.0 if options.fail_fast else 60 * options.minutes
        probed = probe_defaults(measurer, checked.run, checked.verdict, run_s)
        if probed != checked.run:
            checked = Checked(run=probed, verdict=decide_side_by_side(probed, policy))
            measurer.save(probed)
        if short := list_unfinished(checked.run, policy):
            up = Fact(code=Code.TIME_UP, cases=short, numbers={"minutes": options.minutes})
            notes = (up, *checked.verdict.notes)
            checked = replace(checked, verdict=replace(checked.verdict, notes=notes))
        yield checked


@contextmanager
def open_arms_lane(
    options: Namespace, arms: ArmOptions, request: Project, terms: LaneTerms
) -> Iterator[Lane]:
    with open_arms(arms) as sources:
        begin_sources(sources, request, terms.observe)
        if arms.head:
            cases = load_head_cases(request.config, request.cases, Path(sources.head.arm.directory))
            request = replace(request, cases=cases)
        how = {"checkouts": make_checkouts(sources), "traces": options.trace}
        with open_lane(request, terms, sources, **how) as lane:
            yield lane


def _list_left_alone(run: Run) -> Mapping[str, Collection[Metric]]:
    """Their pairs ended as the base failed: whether head runs is unknown."""
    failed = {failure.case_id for failure in run.failures if failure.arm == BASE_ARM}
    ran = {trial.case_id for trial in run.trials if trial.arm != BASE_ARM}
    ran |= {failure.case_id for failure in run.failures if failure.arm != BASE_ARM}
    return want_whole(failed - ran)
