"""``check`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from dataclasses import dataclass, replace

from gate.baseline import load_baselines
from gate.cli.origin import note_idle, note_origin, note_reference
from gate.cli.output import code_verdict, print_verdict, save_reports
from gate.cli.place import note_config, place_lab
from gate.cli.read import read_previous
from gate.cli.setup import RUN_FILE, Request, load_request
from gate.cli.side_by_side import Limit, add_base, note_sources, settle_pairs
from gate.codec import save_run
from gate.config import Config
from gate.decide import (
    conclude_verdict,
    confirm_screening,
    decide_verdict,
    list_suspects,
    list_undecided,
    screen_run,
)
from gate.errors import ExitCode
from gate.lab.arms import ArmOptions, ArmSources, open_arms
from gate.lab.events import Noted, Observer
from gate.lab.runner import Budget, Lab, extend_run, make_run, open_lab, run_plan
from gate.lab.side_by_side import Duel, open_duel
from gate.metrics import SPECS, Family
from gate.policies import load_policy
from gate.records import Baseline, Comparison, Outcome, Policy, Run, Status, Verdict
from gate.report.progress import show_progress

EXACT_TRIALS = 2  # a counter that moves twice did not move by accident


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What a run is judged by."""

    config: Config
    baselines: tuple[Baseline, ...]
    policy: Policy


def run_check(options: Namespace) -> ExitCode:
    """Measure the selection, judge it against the stored baselines, confirm what is suspicious, report."""
    request = load_request(options)
    config = request.config
    previous = read_previous(options, [config.out]).get(config.out)
    policy = load_policy(config, options.approvals)
    terms = Terms(config=config, baselines=load_baselines(config.baselines), policy=policy)
    with ExitStack() as stack:
        observe = stack.enter_context(show_progress(quiet=options.quiet))
        sources = open_base(options, config, stack, observe)
        lab = stack.enter_context(open_lab(*place_lab(config), observe, request.cases))
        note_config(config, options, observe)
        run = make_run(lab, request.cases, config.select, config.trials)
        if sources is None:
            verdict = _settle(lab, _measure(lab, run, config, previous), terms)
        else:
            duel = open_duel(lab, sources.base.arm)
            run = add_base(duel, run, sources, config)
            verdict = _confirm(duel, _measure(lab, run, config, previous), terms)
    verdict = note_origin(note_idle(verdict, policy, request.registry), config, options)
    verdict = note_reference(verdict, config)
    code = code_verdict(verdict, options, terms.policy)
    save_reports(verdict, config.out, code)
    print_verdict(verdict, code, options)
    return code


def open_base(options: Namespace, config: Config, stack: ExitStack, observe: Observer) -> ArmSources | None:
    """Check the base out, before minutes are spent on measuring.

    ``None`` where none is asked for, or where the base is the very commit that is measured: pairs would
    acquit whatever the stored baselines convict it of.
    """
    if not options.base:
        return None
    arms = ArmOptions(directory=config.directory, base=options.base, from_merge_base=True)
    sources = stack.enter_context(open_arms(arms))
    note_sources(sources, observe)
    if sources.are_equal:
        observe(Noted(sentence=f"nothing differs from {options.base}: the stored baselines decide alone"))
        return None
    return sources


def _confirm(duel: Duel, run: Run, terms: Terms) -> Verdict:
    """Let pairs with the base decide on what the screen suspects."""
    config, policy = terms.config, terms.policy
    run = _repeat_exact(duel.lab, run, terms)
    screening = screen_run(run, terms.baselines, policy)
    if suspects := list_suspects(screening):
        limit = Limit(wall_s=run.wall_s + config.pair_budget_s, out=config.out)
        run = settle_pairs(duel, run, policy, limit, suspects)
        # Screened again, since a case that failed in a pair has failed.
        screening = screen_run(run, terms.baselines, policy)
    return conclude_verdict(run, confirm_screening(screening, run, policy), policy)


def _repeat_exact(lab: Lab, run: Run, terms: Terms) -> Run:
    """Give the cases whose counters, memory or drift moved a second trial: they need no pairs."""
    config, path = terms.config, terms.config.out / RUN_FILE
    rows = screen_run(run, terms.baselines, terms.policy).comparisons
    moved = {row.case_id for row in rows if _is_exact_suspicion(row)}
    budget = Budget(max_trials=max(config.trials, EXACT_TRIALS), wall_s=config.budget_s)
    return extend_run(lab, run, moved, budget, lambda current: save_run(current, path)) if moved else run


def _is_exact_suspicion(row: Comparison) -> bool:
    noisy = SPECS[row.metric].family is Family.NOISY
    return row.decides and not noisy and row.status in {Status.REGRESSED, Status.INCONCLUSIVE}


def _settle(lab: Lab, run: Run, terms: Terms) -> Verdict:
    """Judge, and give the cases that more trials could settle one more at a time within the budget."""
    config, path = terms.config, terms.config.out / RUN_FILE
    # The error budget is for the whole verdict, however often these data are looked at.
    policy = replace(terms.policy, looks=config.max_trials - config.trials + 1)
    verdict = decide_verdict(run, terms.baselines, policy)
    for trials in range(config.trials + 1, config.max_trials + 1):
        undecided = list_undecided(verdict)
        if not undecided or verdict.outcome is Outcome.NOTHING_COMPARED:
            break
        budget = Budget(max_trials=trials, wall_s=config.budget_s)
        extended = extend_run(lab, run, undecided, budget, lambda current: save_run(current, path))
        if len(extended.trials) + len(extended.failures) == len(run.trials) + len(run.failures):
            break
        run = extended
        verdict = decide_verdict(run, terms.baselines, policy)
    return verdict


def run_measure(options: Namespace) -> ExitCode:
    """Measure the selection and judge nothing; a case that failed is still told by the exit code."""
    request = load_request(options)
    config = request.config
    run = measure_request(options, request, config.trials)
    measured = len({trial.case_id for trial in run.trials} - {failure.case_id for failure in run.failures})
    print(f"Measured {measured} of {len(run.cases)} cases in {run.wall_s:.0f} s; nothing was judged.")
    print(
        f"Wrote {config.out / RUN_FILE}; judge it with: compile-gate compare BASELINE {config.out / RUN_FILE}"
    )
    for failure in run.failures:
        print(f"FAILED {failure.case_id} ({failure.kind} at {failure.stage}): {failure.message}")
        print(f"    log: {failure.log}")
    return ExitCode.INCOMPLETE if measured < len(run.cases) else ExitCode.PASS


def measure_request(options: Namespace, request: Request, trials: int) -> Run:
    """Open the lab and measure ``trials`` trials of each selected case; used by ``baseline refresh``."""
    config = request.config
    previous = read_previous(options, [config.out]).get(config.out)
    with (
        show_progress(quiet=options.quiet) as observe,
        open_lab(*place_lab(config), observe, request.cases) as lab,
    ):
        note_config(config, options, observe)
        run = make_run(lab, request.cases, config.select, trials)
        return _measure(lab, run, config, previous)


def _measure(lab: Lab, run: Run, config: Config, previous: Run | None) -> Run:
    path = config.out / RUN_FILE
    return run_plan(lab, run, lambda current: save_run(current, path), previous)
