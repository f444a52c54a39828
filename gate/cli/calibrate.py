"""``calibrate``: measure unchanged code often, and learn from it what the gate can and cannot see here."""

import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from gate.calibrate.calibrate import calibrate_gate, list_unknown
from gate.check.measurer import Measurer
from gate.check.pair_schedule import count_pairs
from gate.cli.check import open_measured, refuse_disturbed
from gate.cli.measuring_commands import CALIBRATION_PAIRS
from gate.cli.setup import Project, load_project
from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.side_by_side import Suspect
from gate.errors import ExitCode, UsageError
from gate.files.codec import CALIBRATION, RUN
from gate.metrics import NOISY_DECIDING
from gate.project.config import Config, apply_options
from gate.project.plan import pool_runs
from gate.records import BaseArm, Run
from gate.records.studies import Effort
from gate.report.studies import render_calibration
from gate.store.policy import load_policy

CALIBRATION_FILE = "calibration.json"


def run_calibrate(options: Namespace) -> ExitCode:
    """Measure the selection again and again, or take recorded runs, and report what they say.

    Raises:
        UsageError: Recorded runs, and an option that asks for measuring.
    """
    _refuse_measuring_recorded(options)
    # --trials says how often to measure here; what a check spends is the configuration's.
    request = load_project(Namespace(**{**vars(options), "trials": None}))
    config = request.config
    apply_options(config, trials=options.trials)  # refuses what is no number of trials
    recorded = [RUN.load(Path(name)) for name in options.run_files or ()]
    run = pool_runs(recorded, options.run_files) if recorded else _measure(options, request)
    refuse_disturbed(run, MIN_BASELINE_TRIALS, anyway=options.anyway, is_measured=not recorded)
    # What is accepted or in quarantine fails no check, and would hide how often it would.
    policy = replace(load_policy(config), acceptances=(), quarantine=())
    calibration = calibrate_gate(run, policy, _make_effort(config, options.requests))
    path = config.out / CALIBRATION_FILE
    CALIBRATION.save(calibration, path)
    print(f"{render_calibration(calibration)}\nWrote {path}.")
    return ExitCode.INCOMPLETE if run.failures or list_unknown(run) else ExitCode.PASS


def _refuse_measuring_recorded(options: Namespace) -> None:
    asked = {"--trials": options.trials, "--pairs": options.pairs, "--resume": options.resume or None}
    named = [option for option, value in asked.items() if value is not None]
    if options.run_files and named:
        raise UsageError(
            f"--run measures nothing, and {named[0]} says what to measure",
            f"Leave {named[0]} out, or leave --run out.",
        )


def _make_effort(config: Config, requests: int) -> Effort:
    return Effort(
        baseline_trials=config.refresh_trials,
        trials=config.trials,
        max_trials=config.max_trials,
        requests=requests,
        budget_s=config.budget_s,
        pair_budget_s=config.pair_budget_s,
    )


def _measure(options: Namespace, request: Project) -> Run:
    """Measure trials on their own, as many as a baseline and a candidate take, then pairs with itself."""
    trials = options.trials or request.config.refresh_trials + request.config.max_trials
    pairs = CALIBRATION_PAIRS if options.pairs is None else options.pairs
    with open_measured(options, request, trials) as (measurer, run):
        return _measure_pairs(measurer, run, pairs)


def _measure_pairs(measurer: Measurer, run: Run, pairs: int) -> Run:
    if not pairs:
        return run
    base = BaseArm(
        label="the same tree",
        environment=run.environment,
        provenance=run.provenance,
        cases=run.cases,
        changes=run.changes,
    )
    needs = [
        Suspect(case_id=case.id, metrics=NOISY_DECIDING, more=pairs - count_pairs(run, case.id))
        for case in run.cases
    ]
    run = replace(measurer.add_pairs(replace(run, base=base), needs, math.inf), finished=True)
    measurer.save(run)
    return run
