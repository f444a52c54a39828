"""``check`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from gate.baseline import load_baselines
from gate.cli.output import print_verdict, save_reports
from gate.cli.setup import Request, load_policy, load_request
from gate.codec import load_run, save_run
from gate.config import Config
from gate.decide import FailOn, compute_exit_code, decide_verdict, list_undecided
from gate.errors import ExitCode
from gate.lab.arms import make_working_tree_arm
from gate.lab.runner import Budget, Lab, extend_run, make_run, open_lab, run_plan
from gate.lab.toolchain_place import find_toolchain_place
from gate.lab.trials import LabSettings
from gate.records import Arm, Baseline, Outcome, Policy, Run, Verdict
from gate.report.progress import show_progress

RUN_FILE = "run.json"


def run_check(options: Namespace) -> ExitCode:
    """Measure the selection, judge it against the stored baselines, report."""
    request = load_request(options)
    config = request.config
    baselines = load_baselines(config.baselines)
    # The error budget is for the whole verdict, however often these data are looked at.
    policy = replace(load_policy(config), looks=config.max_trials - config.trials + 1)
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(config), observe) as lab:
        run = _measure(lab, request, config.trials, resume=options.resume)
        verdict = _settle(lab, run, baselines, policy, config)
    save_reports(verdict, config.out)
    code = compute_exit_code(verdict.outcome, FailOn(options.fail_on))
    print_verdict(verdict, code, options)
    return code


def run_measure(options: Namespace) -> ExitCode:
    """Measure the selection and judge nothing; a case that failed is still told by the exit code."""
    request = load_request(options)
    config = request.config
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(config), observe) as lab:
        run = _measure(lab, request, config.trials, resume=options.resume)
    measured = len({trial.case_id for trial in run.trials} - {failure.case_id for failure in run.failures})
    print(f"Measured {measured} of {len(run.cases)} cases in {run.wall_s:.0f} s; nothing was judged.")
    print(
        f"Wrote {config.out / RUN_FILE}; judge it with: compile-gate compare BASELINE {config.out / RUN_FILE}"
    )
    for failure in run.failures:
        print(f"FAILED {failure.case_id} ({failure.kind} at {failure.stage}): {failure.message}")
    return ExitCode.INCOMPLETE if measured < len(run.cases) else ExitCode.PASS


def measure_request(options: Namespace, request: Request, trials: int) -> Run:
    """Open the lab and measure ``trials`` trials of each selected case; used by ``baseline refresh``."""
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(request.config), observe) as lab:
        return _measure(lab, request, trials, resume=options.resume)


def place_lab(config: Config) -> tuple[Arm, LabSettings]:
    """Make what the lab is opened with: the working tree as the arm, and how to measure it."""
    settings = LabSettings(
        out=config.out,
        device=config.device,
        threads=config.threads,
        sampling=config.sampling,
        trial_timeout_s=config.trial_timeout_s,
        lock_timeout_s=config.lock_timeout_s,
        toolchain_cache=find_toolchain_place(os.environ, config.device).directory,
    )
    return make_working_tree_arm(config.directory), settings


def _measure(lab: Lab, request: Request, trials: int, *, resume: bool) -> Run:
    path = request.config.out / RUN_FILE
    previous = load_run(path) if resume else None
    run = make_run(lab, request.cases, request.config.select, trials)
    return run_plan(lab, run, lambda current: save_run(current, path), previous)


def _settle(lab: Lab, run: Run, baselines: tuple[Baseline, ...], policy: Policy, config: Config) -> Verdict:
    """Judge, and give the cases that more trials could settle one more at a time within the budget."""
    path: Path = config.out / RUN_FILE
    verdict = decide_verdict(run, baselines, policy)
    for trials in range(config.trials + 1, config.max_trials + 1):
        undecided = list_undecided(verdict)
        if not undecided or verdict.outcome is Outcome.NOTHING_COMPARED:
            break
        budget = Budget(max_trials=trials, wall_s=config.budget_s)
        extended = extend_run(lab, run, undecided, budget, lambda current: save_run(current, path))
        if len(extended.trials) + len(extended.failures) == len(run.trials) + len(run.failures):
            break
        run = extended
        verdict = decide_verdict(run, baselines, policy)
    return verdict
