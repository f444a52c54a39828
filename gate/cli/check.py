"""``check``, ``ab`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from gate.check.defaults import probe_defaults
from gate.check.procedure import (
    Checked,
    CheckTerms,
    PairLimit,
    check_against_base,
    check_against_baselines,
    check_pairs,
    list_unfinished,
)
from gate.check.schedule import want_whole
from gate.cli.lanes import (
    begin_sources,
    load_previous,
    measure_request,
    open_lane,
    open_measured,
    open_measurer,
    read_base_changes,
)
from gate.cli.measuring_commands import AB_MINUTES
from gate.cli.output import (
    append_run,
    code_verdict,
    list_reports,
    print_traces,
    read_other_days,
    record_creep,
    remove_files,
    report_verdict,
    save_reports,
    show_page,
)
from gate.cli.setup import (
    RUN_FILE,
    Project,
    find_gate,
    load_project,
    note_idle,
    note_origin,
    note_rules,
    note_stop,
    open_rules,
)
from gate.decide.conclude.outcome import FailOn
from gate.decide.evidence.pairs import list_alike
from gate.decide.explain.notes import note_shard
from gate.decide.side_by_side import decide_side_by_side
from gate.devices import is_target
from gate.errors import ExitCode, FileError, GateError, NothingComparedError, UsageError
from gate.lab.arms.arms import ArmOptions, find_checkouts, open_arms, resolve_arms
from gate.lab.trials.runs import Lane, LaneTerms
from gate.project.arm_cases import load_head_cases
from gate.project.config import Config
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact, make_text, name_words
from gate.records.run import BASE_ARM, Run
from gate.report.words.facts import describe_failure, write_note
from gate.revisions import NothingDiffersError, advise_missing, find_ref, find_top
from gate.store.baselines import load_baselines
from gate.store.history import HistoryKind
from gate.store.policy import ANCHOR_FILE, AnchorFile, describe_anchor, load_anchor, load_policy
from gate.store.rules import BaseRules
from gate.units import count_noun


def run_check(options: Namespace) -> ExitCode:
    """Measure the selection, judge it against the stored baselines, confirm what is suspicious, report."""
    with open_rules(options) as rules:
        return _check(options, rules)


def _check(options: Namespace, rules: BaseRules | None) -> ExitCode:
    request = load_project(options, rules)
    config = request.config
    policy = load_policy(config, options.accepted, gate=find_gate(options, config))
    terms = CheckTerms(
        baselines=load_baselines(config.baselines),
        policy=policy,
        trials=config.trials,
        max_trials=config.max_trials,
        pair_budget_s=config.pair_budget_s,
        fits_two="pair_budget_s" not in config.origins,
        thorough=options.thorough,
        fail_fast=options.fail_fast,
    )
    asked = ArmOptions(
        directory=config.directory,
        base=options.base or "",
        from_merge_base=True,
        base_tree=rules.tree if rules and not options.lanes else None,  # lanes may be on other hosts
    )
    alone = find_why_alone(options, asked)
    stored = {one.case_id for one in terms.baselines}
    judges_alone = bool(config.limits) or any(case.id in stored for case in request.cases)
    if not judges_alone:
        _refuse_in_vain(options, config, alone)
    arms = None if alone or options.no_base else asked
    notes = [alone] if alone else []  # with what opening adds; lanes of other processes say it in their logs
    opening = partial(open_check, options, notes, judges_alone=judges_alone)
    with open_measured(options, replace(request, arms=arms), config.trials, opening) as (measurer, run):
        bounded = replace(measurer, budget_s=config.budget_s)
        if run.base is None:
            terms = replace(terms, policy=replace(policy, days=read_other_days(config, run)))
            checked = check_against_baselines(bounded, run, terms)
        else:
            checked = check_against_base(bounded, run, terms)
        measurer.save(checked.run)
        verdict = note_idle(checked.verdict, policy, request.registry, terms.baselines)
        verdict = note_stop(note_origin(verdict, config, options), options)
        verdict = replace(verdict, notes=(*note_shard(checked.run), *notes, *verdict.notes))
        verdict = note_rules(verdict, config, checked.run.base.provenance.commit if checked.run.base else "")
        append_run(config, checked.run, HistoryKind.CHECK)
        # Before lanes are closed: some are still at pairs that nobody needs any more.
        save_reports(verdict, config.out, code_verdict(verdict, config, policy))
    code = report_verdict(verdict, config, options, None, policy)
    show_page(config.out, options)
    print_traces(checked.run, config.out)
    return code


_LACK = "the directory {} has no baseline of these cases"


def _refuse_in_vain(options: Namespace, config: Config, alone: Fact | None) -> None:
    """Refuse to spend minutes on an unchanged main branch that nothing can be compared with.

    No earlier verdict stays: it would be taken for this one.

    Raises:
        NothingComparedError: So it is, that may fail, and neither an option nor a history asks for figures
            alone.
    """
    if alone is None or alone.code is not Code.NOTHING_DIFFERS or options.base:
        return
    if config.fail_on is FailOn.NEVER or config.history:
        return
    remove_files(*list_reports(config.out))
    why = f"nothing differs from {alone.name('base')}, and {_LACK.format(config.baselines)}"
    fix = "Make a change, add --base HEAD~1, or record baselines: `compile-gate baseline refresh`."
    what = f"there is nothing to compare with: {why}"
    raise NothingComparedError(what, f"{fix} --no-base measures all the same.")


def _note_unjudged(options: Namespace, config: Config, observe: Observer) -> None:
    """Say before minutes are spent that there is nothing to compare with."""
    what = f"nothing will be judged: {_LACK.format(config.baselines)}"
    compare = "compare with the commit before, add --base HEAD~1"
    if options.no_base:
        compare = "compare with a base, leave out --no-base"
    fix = f"To {compare}; to record baselines, `compile-gate baseline refresh`"
    observe(Noted(fact=make_text(f"{what}. {fix}")))


@contextmanager
def open_check(
    options: Namespace, notes: list[Fact], request: Project, terms: LaneTerms, *, judges_alone: bool
) -> Iterator[Lane]:
    """Open a lane with the base beside the working tree, or alone, where ``notes`` say why.

    ``judges_alone`` says that something can be judged without it: by an absolute limit, or by a baseline.
    """
    config = request.config
    if request.arms is None:
        for alone in notes:
            terms.observe(Noted(fact=alone))
        if not judges_alone:
            _note_unjudged(options, config, terms.observe)
        with open_lane(request, terms, trials=config.trials, traces=options.trace) as lane:
            yield lane
        return
    with open_arms(request.arms) as sources:
        begun = begin_sources(sources, request, terms.observe)
        notes += begun.notes
        checkouts = find_checkouts(sources)
        changes = read_base_changes(checkouts, sources.base.commit, config)
        told = replace(checkouts, changed=changes.python) if checkouts and changes else None
        how = {"checkouts": told, "keeps_caches": True, "traces": options.trace, "tries_base": begun.has_lent}
        with open_lane(request, terms, sources, config.trials, **how) as lane:
            base = lane.run.base and replace(lane.run.base, other_changes=changes.other if changes else None)
            yield replace(lane, run=replace(lane.run, base=base))


def find_why_alone(options: Namespace, asked: ArmOptions) -> Fact | None:
    """Find why there is no base, though none was refused; ``None`` where there is one, or none is wanted.

    It is not known; or it is the very commit that is measured, so that pairs would acquit whatever the stored
    baselines convict it of.

    Raises:
        UsageError, MachineError: One is named that cannot be found.
    """
    if options.no_base:
        return None
    try:
        resolve_arms(asked)
    except NothingDiffersError as error:
        return Fact(code=Code.NOTHING_DIFFERS, names=name_words(base=error.main))
    except GateError as error:
        if options.base:
            raise
        return Fact(code=Code.NO_BASE, names=name_words(reason=error.what, fix=error.fix))
    return None


def run_ab(options: Namespace) -> ExitCode:
    """Measure two arms in pairs and judge head against base; nothing stored is needed."""
    request = load_project(options)
    policy = load_policy(request.config)
    anchor = find_anchor(options, request.config)
    if options.history and anchor is None:
        what = "--history: only comparisons with the release anchor are stored"
        raise UsageError(what, "Leave it out, or compare with the anchor: --anchor.")
    arms = make_arms(options, request.config, anchor)
    with compare_arms(options, request, policy, arms) as checked:
        verdict = note_idle(checked.verdict, policy, request.registry)
        verdict = note_stop(note_origin(verdict, request.config, options), options)
        if anchor is not None:
            # Said first: a change may be that of many commits.
            note = Fact(code=Code.ANCHOR, names=name_words(anchor=describe_anchor(anchor)))
            verdict = replace(verdict, notes=(note, *verdict.notes))
            record_creep(request.config, verdict)
        save_reports(verdict, request.config.out, code_verdict(verdict, request.config))  # as a check does
    code = report_verdict(verdict, request.config, options, None)
    show_page(request.config.out, options)
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


@contextmanager
def compare_arms(options: Namespace, request: Project, policy: Policy, arms: ArmOptions) -> Iterator[Checked]:
    """Measure both arms in pairs, until all is settled; what measures is still open."""
    previous = load_previous(options, request.config.out)
    resolve_arms(arms)
    opening = partial(open_arms_lane, options, arms)
    with open_measurer(options, replace(request, arms=arms), opening, previous) as (measurer, begun):
        # What has no counterpart is measured on its own: what is new must run too. The pairs are still to
        # come then, so that what a kill leaves on disk is no finished run.
        unpaired = {case.id for case in begun.cases} - list_alike(begun)
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
            notes = (Fact(code=Code.TIME_UP, cases=short), *checked.verdict.notes)
            checked = replace(checked, verdict=replace(checked.verdict, notes=notes))
        yield checked


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


def run_measure(options: Namespace) -> ExitCode:
    """Measure the selection and judge nothing; the exit code still shows a case that failed."""
    request = load_project(options)
    config = request.config
    run = measure_request(options, request, config.trials)
    measured = len({trial.case_id for trial in run.trials} - {failure.case_id for failure in run.failures})
    cases = count_noun(len(run.cases), "case")
    print(f"Measured {measured} of {cases} in {run.wall_s:.0f} s; nothing was judged.")
    print(
        f"Wrote {config.out / RUN_FILE}; judge it with: compile-gate compare BASELINE {config.out / RUN_FILE}"
    )
    if is_target(config.device):
        print(write_note(Fact(code=Code.NO_DEVICE)))
    print_traces(run, config.out)
    for failure in run.failures:
        print(f"FAILED {failure.case_id} ({failure.kind} at {failure.stage}): {describe_failure(failure)}")
        print(f"    log: {failure.log}")
    return ExitCode.INCOMPLETE if measured < len(run.cases) else ExitCode.PASS
