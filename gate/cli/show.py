"""Commands that only show something: ``models``, ``plan``, ``doctor``, ``schema``, ``config``."""

import json
import os
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from gate.cli.setup import Project, describe_source, load_configured, load_project
from gate.errors import ExitCode, GateError, UsageError
from gate.files.codec import RUN, encode
from gate.files.schema import read_schema
from gate.project.capability import Card, list_absent, list_unavailable
from gate.project.config import LIMIT_KEYS, Config, fit_limits
from gate.project.config_text import render_config
from gate.project.plan import drop_unchanged_code, render_github_matrix
from gate.project.registry import load_cases
from gate.project.selection import choose_cases, select_cases
from gate.records.cases import Case
from gate.records.run import CaseFailure, Run
from gate.report.tables import render_attempt, render_doctor, render_models, render_plan, render_tally
from gate.report.words.facts import describe_unavailable

_FITTED = "what expected_s of the selected cases asks for"


def run_models(options: Namespace) -> ExitCode:
    """Or tries them, with ``--try``."""
    if options.tried:
        return _try_cases(options)
    cases = load_cases(load_configured(options))
    if options.select:
        cases = select_cases(cases, options.select)
    print(render_models(cases, options.format))
    return ExitCode.PASS


def _try_cases(options: Namespace) -> ExitCode:
    """Nothing is timed, so this takes no lock of the device."""
    from gate.cli.lanes import place_lab  # noqa: PLC0415 - psutil
    from gate.lab.trials.availability import try_in_worker  # noqa: PLC0415 - psutil
    from gate.lab.trials.opening import open_bench  # noqa: PLC0415 - psutil

    request = load_project(options)
    as_json = options.format == "json"
    failures: dict[str, CaseFailure | None] = {}
    with open_bench(*place_lab(request.config)) as bench:
        for case in request.cases:
            failures[case.id] = try_in_worker(bench, case)
            if not as_json:
                print(render_attempt(case.id, failures[case.id]), end="", flush=True)
    failed = [failure for failure in failures.values() if failure is not None]
    if as_json:
        rows = [
            {"case": case_id, "ok": failure is None, "failure": encode(failure) if failure else None}
            for case_id, failure in failures.items()
        ]
        print(json.dumps(rows, indent=2))
    else:
        print(render_tally(len(failures), len(failed)))
    return ExitCode.INCOMPLETE if failed else ExitCode.PASS


def run_plan(options: Namespace) -> ExitCode:
    request = load_project(options)
    cases = _drop_unchanged_code(request, options.after) if options.after else request.cases
    if note := _explain_unavailable(request):
        print(f"note: {note}", file=sys.stderr)
    if options.format == "github-matrix":
        print(render_github_matrix(cases, request.config.trials, options.shards))
    else:
        print(render_plan(cases, request.config.trials, options.shards, options.format))
    return ExitCode.PASS


def _drop_unchanged_code(request: Project, path: str) -> tuple[Case, ...]:
    run = RUN.load(Path(path))
    _check_same_checkout(run, request.config.directory, path)
    left = drop_unchanged_code(request.cases, run)
    dropped = len(request.cases) - len(left)
    note = f"left out: {dropped} of {len(request.cases)} cases, whose code for {run.environment.device_model}"
    print(f"note: {note} is that of {run.base.label if run.base else 'the base'}", file=sys.stderr)
    if not left:
        print("note: nothing is left for a GPU to measure", file=sys.stderr)
    return left


def _check_same_checkout(run: Run, directory: Path, path: str) -> None:
    """A GPU would measure the same files as the target's run.

    Raises:
        UsageError: It is of another commit, or something was edited since.
    """
    from gate.lab.arms.changes import hash_changes  # noqa: PLC0415 - the lab is slow to import
    from gate.lab.arms.checkouts import run_git  # noqa: PLC0415 - the lab is slow to import

    commits, edits = (run.provenance.commit, run_git(directory, "rev-parse", "HEAD")), hash_changes(directory)
    if commits[0] == commits[1] and edits == run.changes:
        return
    named = [commit[:10] or "no commit" for commit in commits]
    origin = f"{named[0]}, and this is {named[1]}" if commits[0] != commits[1] else "other files than these"
    what = f"--after: {path} is of {origin}, so it does not say whose code is the same"
    raise UsageError(what, "Measure it here: compile-gate ab BASE --target cuda:sm_90.")


def _explain_unavailable(request: Project) -> str:
    from gate.lab.host.gpu import look_up_gpu  # noqa: PLC0415 - the lab is slow to import

    gpu = look_up_gpu(request.config.device, os.environ)
    card = gpu.card if gpu else Card()
    return describe_unavailable(list_unavailable(request.cases, card, list_absent(request.cases)))


def run_doctor(options: Namespace) -> ExitCode:
    """A failed check is exit 4."""
    from gate.cli.lanes import place_lab  # noqa: PLC0415 - psutil
    from gate.lab.doctor import examine_machine, is_fit  # noqa: PLC0415 - psutil
    from gate.lab.probe import probe_machine  # noqa: PLC0415 - psutil

    request = load_project(options)
    state = probe_machine(*place_lab(request.config))
    checks = examine_machine(replace(state, unavailable=_explain_unavailable(request)))
    print(render_doctor(checks, options.format))
    return ExitCode.PASS if is_fit(checks) else ExitCode.MACHINE


def run_schema(options: Namespace) -> ExitCode:
    print(read_schema(options.name), end="")
    return ExitCode.PASS


def run_config(options: Namespace) -> ExitCode:
    config = load_configured(options)
    print(f"# {describe_source(config)}\n{render_config(_fit_to_cases(config))}", end="")
    return ExitCode.PASS


def _fit_to_cases(config: Config) -> Config:
    """Without cases a configuration can be printed all the same."""
    try:
        fitted = fit_limits(config, choose_cases(config, load_cases(config)).cases)
    except GateError as error:
        print(f"note: limits are those of no case: {error.what}", file=sys.stderr)
        return config
    raised = [key for key in LIMIT_KEYS if getattr(fitted, key) != getattr(config, key)]
    return replace(fitted, origins={**fitted.origins, **dict.fromkeys(raised, _FITTED)})
