"""``check`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from gate.check import CheckTerms, check_alone, check_beside
from gate.cli.history import append_run
from gate.cli.origin import (
    find_commit,
    find_gate,
    note_idle,
    note_origin,
    note_rules,
    tell_other_commits,
)
from gate.cli.output import code_verdict, make_saver, print_verdict, read_previous, save_reports, tell_traces
from gate.cli.place import add_base, begin_sources, note_config, place_lab
from gate.cli.setup import RUN_FILE, Project, load_project
from gate.decide.explain.side_advice import note_shard
from gate.errors import ExitCode, GateError
from gate.lab.arms.arms import ArmOptions, ArmSources, find_checkouts, open_arms, resolve_arms
from gate.lab.arms.worktree import read_changes
from gate.lab.trials.opening import open_lab
from gate.lab.trials.runner import LabTrials, make_run, measure_plan
from gate.lab.trials.side_by_side import LabPairs, open_side_by_side
from gate.project.config import Config
from gate.records import Code, Fact, Run, name_words
from gate.records.events import Noted, Observer
from gate.records.history import HistoryKind
from gate.records.protocol import Checkouts
from gate.records.targets import is_target
from gate.report.progress import show_progress
from gate.report.words.failures import describe_failure
from gate.report.words.notes import write_note
from gate.revisions import NothingDiffersError
from gate.store.baselines import load_baselines
from gate.store.policy import load_policy
from gate.units import count_noun


def run_check(options: Namespace) -> ExitCode:
    """Measure the selection, judge it against the stored baselines, confirm what is suspicious, report."""
    request = load_project(options)
    config = request.config
    previous = read_previous(options, [config.out]).get(config.out)
    policy = load_policy(config, options.accepted, gate=find_gate(options, config))
    tell_other_commits(options.accepted, find_commit(config.directory, "HEAD"), config.directory)
    terms = CheckTerms(
        baselines=load_baselines(config.baselines),
        policy=policy,
        trials=config.trials,
        max_trials=config.max_trials,
        pair_budget_s=config.pair_budget_s,
        thorough=options.thorough,
    )
    save = make_saver(config.out)
    with ExitStack() as stack:
        observe = stack.enter_context(show_progress(quiet=options.quiet))
        base = open_base_sources(options, request, stack, observe)
        sources = base if isinstance(base, ArmSources) else None
        without_base = (base,) if isinstance(base, Fact) else ()
        for fact in without_base:
            observe(Noted(fact=fact))
        arm, settings = place_lab(config)
        compared = _compare_checkouts(sources, config)
        settings = replace(
            settings,
            keeps_caches=sources is not None,
            traces=options.trace,
            checkouts=compared.checkouts,
        )
        lab = stack.enter_context(open_lab(arm, settings, observe, request.cases))
        note_config(config, options, observe)
        run = make_run(lab, request.cases, config.select, config.trials)
        run = replace(run, shard=request.shard)
        if sources is None:
            alone = LabTrials(lab=lab, save=save, budget_s=config.budget_s)
            checked = check_alone(alone, measure_plan(lab, run, save, previous), terms)
        else:
            side_by_side = open_side_by_side(lab, sources.base.arm)
            run = add_base(side_by_side, run, sources, config)
            run = replace(run, base=run.base and replace(run.base, other_changes=compared.other_changes))
            beside = LabPairs(lab=lab, save=save, budget_s=config.budget_s, side_by_side=side_by_side)
            checked = check_beside(beside, measure_plan(lab, run, save, previous), terms)
        save(checked.run)
    verdict = note_idle(checked.verdict, policy, request.registry, terms.baselines)
    verdict = note_origin(verdict, config, options)
    verdict = replace(verdict, notes=(*note_shard(checked.run), *without_base, *verdict.notes))
    verdict = note_rules(verdict, config, sources.base.commit if sources else "")
    code = code_verdict(verdict, config, terms.policy)
    save_reports(verdict, config.out, code)
    append_run(options, config, checked.run, HistoryKind.CHECK, verdict.outcome)
    print_verdict(verdict, code, config, options)
    tell_traces(checked.run, config.out)
    return code


def open_base_sources(
    options: Namespace, request: Project, stack: ExitStack, observe: Observer
) -> ArmSources | Fact | None:
    """Check the base out, before minutes are spent on measuring; unnamed, where HEAD left the main branch.

    ``None`` where nobody wants one. A fact says why there is none: it is not known, or it is the very commit
    that is measured, so that pairs would acquit whatever the stored baselines convict it of.
    """
    if options.no_base:
        return None
    arms = ArmOptions(directory=request.config.directory, base=options.base or "", from_merge_base=True)
    if not options.base:
        try:
            resolve_arms(arms)
        except NothingDiffersError:
            return Fact(code=Code.NOTHING_DIFFERS, names=name_words(base="the main branch"))
        except GateError as error:
            return Fact(code=Code.NO_BASE, names=name_words(reason=error.what, fix=error.fix))
    sources = stack.enter_context(open_arms(arms))
    if sources.are_equal:
        return Fact(code=Code.NOTHING_DIFFERS, names=name_words(base=sources.base.label))
    begin_sources(sources, request, observe)
    return sources


@dataclass(frozen=True, kw_only=True, slots=True)
class _Compared:
    """What tells which cases run the same program as the base; nothing where nobody knows."""

    checkouts: Checkouts | None = None
    other_changes: tuple[str, ...] | None = None


def _compare_checkouts(sources: ArmSources | None, config: Config) -> _Compared:
    checkouts = find_checkouts(sources) if sources else None
    if sources is None or checkouts is None:
        return _Compared()
    own = (config.out, config.baselines)
    # Where results lie around the project itself, not all that lies there is the gate's.
    apart = [place for place in own if not config.directory.resolve().is_relative_to(place.resolve())]
    changes = read_changes(Path(checkouts.head), sources.base.commit, apart)
    if changes is None:
        return _Compared()
    return _Compared(checkouts=replace(checkouts, changed=changes.python), other_changes=changes.other)


def run_measure(options: Namespace) -> ExitCode:
    """Measure the selection and judge nothing; a case that failed is still told by the exit code."""
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
    tell_traces(run, config.out)
    for failure in run.failures:
        print(f"FAILED {failure.case_id} ({failure.kind} at {failure.stage}): {describe_failure(failure)}")
        print(f"    log: {failure.log}")
    return ExitCode.INCOMPLETE if measured < len(run.cases) else ExitCode.PASS


def measure_request(options: Namespace, request: Project, trials: int) -> Run:
    """Open the lab and measure ``trials`` trials of each selected case; used by ``baseline refresh``."""
    config = request.config
    previous = read_previous(options, [config.out]).get(config.out)
    arm, settings = place_lab(config)
    settings = replace(settings, traces=getattr(options, "trace", False))  # a refresh has no such option
    with (
        show_progress(quiet=options.quiet) as observe,
        open_lab(arm, settings, observe, request.cases) as lab,
    ):
        note_config(config, options, observe)
        run = make_run(lab, request.cases, config.select, trials)
        return measure_plan(lab, replace(run, shard=request.shard), make_saver(config.out), previous)
