"""``calibrate``: measure unchanged code often, and learn from it what the gate can and cannot see here."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import replace
from functools import partial

from gate.calibrate.calibrate import calibrate_gate, list_unknown
from gate.calibration import Effort
from gate.check import Need, count_pairs
from gate.cli.place import note_config, place_lab
from gate.cli.read import read_previous, read_run
from gate.cli.setup import RUN_FILE, Request, load_request
from gate.codec import save_calibration, save_run
from gate.config import Config, apply_options
from gate.errors import ExitCode
from gate.lab.pairs import BASE
from gate.lab.runner import Lab, Save, make_run, open_lab, run_plan
from gate.lab.side_by_side import LabPairs, describe_base, open_duel
from gate.metrics import SPECS, Family, Role
from gate.plan import pool_runs
from gate.policies import load_policy
from gate.records import Run
from gate.report.calibration import render_calibration
from gate.report.progress import show_progress

CALIBRATION_FILE = "calibration.json"
_PAIRED = frozenset(
    metric for metric, spec in SPECS.items() if spec.family is Family.NOISY and spec.role is Role.DECIDES
)


def run_calibrate(options: Namespace) -> ExitCode:
    """Measure the selection again and again, or take recorded runs, and report what they say."""
    # --trials says how often to measure here; what a check spends is the configuration's.
    request = load_request(Namespace(**{**vars(options), "trials": None}))
    config = request.config
    apply_options(config, trials=options.trials)  # refuses what is no number of trials
    recorded = [read_run(name) for name in options.run_files or ()]
    run = pool_runs(recorded, options.run_files) if recorded else _measure(options, request)
    calibration = calibrate_gate(run, load_policy(config), _make_effort(config, options.requests))
    path = config.out / CALIBRATION_FILE
    save_calibration(calibration, path)
    print(render_calibration(calibration))
    print(f"Wrote {path}.")
    return ExitCode.INCOMPLETE if run.failures or list_unknown(run) else ExitCode.PASS


def _make_effort(config: Config, requests: int) -> Effort:
    return Effort(
        baseline_trials=config.refresh_trials,
        trials=config.trials,
        max_trials=config.max_trials,
        requests=requests,
        budget_s=config.budget_s,
        pair_budget_s=config.pair_budget_s,
    )


def _measure(options: Namespace, request: Request) -> Run:
    """Measure trials on their own, as many as a baseline and a candidate take, then pairs with itself."""
    config = request.config
    trials = options.trials or config.refresh_trials + config.max_trials
    save = partial(save_run, path=config.out / RUN_FILE)
    previous = read_previous(options, [config.out]).get(config.out)
    with (
        show_progress(quiet=options.quiet) as observe,
        open_lab(*place_lab(config), observe, request.cases) as lab,
    ):
        note_config(config, options, observe)
        planned = make_run(lab, request.cases, config.select, trials)
        run = run_plan(lab, planned, save, previous)
        return _measure_pairs(lab, run, options.pairs, save)


def _measure_pairs(lab: Lab, run: Run, pairs: int, save: Save) -> Run:
    if not pairs:
        return run
    duel = open_duel(lab, replace(lab.bench.arm, name=BASE))
    base = describe_base(duel, "the same tree", run.provenance, run.cases)
    needs = [
        Need(case_id=case.id, metrics=_PAIRED, more=pairs - count_pairs(run, case.id)) for case in run.cases
    ]
    measurer = LabPairs(lab=lab, save=save, duel=duel)
    run = replace(measurer.add_pairs(replace(run, base=base), needs, math.inf), finished=True)
    save(run)
    return run
