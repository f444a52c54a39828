"""``check`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gate.check.procedure import CheckTerms, check_against_base, check_against_baselines
from gate.cli.lanes import begin_sources, measure_request, open_lane, open_measured, read_base_changes
from gate.cli.output import (
    append_run,
    code_verdict,
    list_reports,
    print_traces,
    read_other_days,
    remove_files,
    report_verdict,
    save_reports,
    show_page,
)
from gate.cli.setup import (
    RUN_FILE,
    Project,
    load_project,
    name_judge,
    note_origin,
    note_rules,
    note_stop,
    open_rules,
)
from gate.decide.conclude.exit_codes import FailOn
from gate.decide.explain.notes import note_idle, note_shard
from gate.devices import is_target
from gate.errors import ExitCode, GateError, NothingComparedError
from gate.lab.arms.arms import ArmOptions, make_checkouts, open_arms, resolve_arms
from gate.lab.trials.runs import Lane, LaneTerms
from gate.project.config import Config
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact, make_text, name_words
from gate.report.words.facts import describe_failure, write_note
from gate.revisions import NothingDiffersError
from gate.store.baselines import load_baselines
from gate.store.history import HistoryKind
from gate.store.policy import load_policy
from gate.store.rules import BaseRules
from gate.units import format_noun

_LACK = "the directory {} has no baseline of these cases"


def run_check(options: Namespace) -> ExitCode:
    with open_rules(options) as rules:
        return _check(options, rules)


def _check(options: Namespace, rules: BaseRules | None) -> ExitCode:
    request = load_project(options, rules)
    config, gate = request.config, name_judge(options, request.config)
    policy = load_policy(config, options.accepted, gate=gate)
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
    alone = explain_no_base(options, asked)
    stored = {baseline.case_id for baseline in terms.baselines}
    judges_alone = bool(config.limits) or any(case.id in stored for case in request.cases)
    if not judges_alone:
        _refuse_in_vain(options, config, alone)
    arms = None if alone or options.no_base else asked
    notes = [alone] if alone else []  # with what opening adds; lanes of other processes log theirs
    opening = partial(open_check, options, notes, judges_alone=judges_alone)
    with open_measured(options, replace(request, arms=arms), config.trials, opening) as (measurer, run):
        bounded = replace(measurer, budget_s=config.budget_s)
        if run.base is None:
            terms = replace(terms, policy=replace(policy, days=read_other_days(config, run)))
            checked = check_against_baselines(bounded, run, terms)
        else:
            checked = check_against_base(bounded, run, terms)
        measurer.save(checked.run)
        base, opened = checked.run.base, (*note_shard(checked.run), *notes)
        idle = note_idle(policy, request.registry, terms.baselines)
        verdict = note_stop(note_origin(checked.verdict, config, options), options)
        verdict = replace(verdict, notes=(*opened, *verdict.notes, *idle))
        verdict = note_rules(verdict, config, base.provenance.commit if base else "")
        append_run(config, checked.run, HistoryKind.CHECK)
        # Before lanes are closed: some are still at pairs that nobody needs any more.
        save_reports(verdict, config.out, code_verdict(verdict, config, policy))
    code = report_verdict(verdict, config, options, None, policy)
    show_page(config.out, options)
    print_traces(checked.run, config.out)
    return code


def _refuse_in_vain(options: Namespace, config: Config, alone: Fact | None) -> None:
    """No earlier verdict stays: it would be taken for this one.

    Raises:
        NothingComparedError: It may fail the check, and neither an option nor a history asks for figures.
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
    """``notes`` have the reason where there is no base."""
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
        checkouts = make_checkouts(sources)
        changes = read_base_changes(checkouts, sources.base.commit, config)
        compared = replace(checkouts, changed=changes.python) if checkouts and changes else None
        how = {
            "checkouts": compared,
            "keeps_caches": True,
            "traces": options.trace,
            "tries_base": begun.has_lent,
        }
        with open_lane(request, terms, sources, config.trials, **how) as lane:
            base = lane.run.base and replace(lane.run.base, other_changes=changes.other if changes else None)
            yield replace(lane, run=replace(lane.run, base=base))


def explain_no_base(options: Namespace, asked: ArmOptions) -> Fact | None:
    """Why there is no base, though it was not refused; else ``None``.

    Pairs of a commit with itself would acquit it whatever the stored baselines show.

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


def run_measure(options: Namespace) -> ExitCode:
    """The exit code still shows a case that failed."""
    request = load_project(options)
    config = request.config
    run = measure_request(options, request, config.trials)
    measured = len({trial.case_id for trial in run.trials} - {failure.case_id for failure in run.failures})
    cases = format_noun(len(run.cases), "case")
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
