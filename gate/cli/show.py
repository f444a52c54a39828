"""Commands that only show something: ``models``, ``plan``, ``doctor``, ``schema``, ``config``."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import replace

from gate.capability import describe_unavailable, list_unavailable
from gate.cli.setup import Request, describe_source, load_configured, load_request
from gate.config import render_config
from gate.errors import ExitCode
from gate.plan import make_plan, render_github_matrix
from gate.registry import load_cases, select_cases


def run_models(options: Namespace) -> ExitCode:
    """List the registry's cases: all of them, or a selection. Or try them."""
    if options.tried:
        from gate.cli.tries import run_tries  # noqa: PLC0415 - psutil

        return run_tries(options)
    from gate.report.tables import render_models  # noqa: PLC0415 - rich is slow to import

    cases = load_cases(load_configured(options))
    if options.select:
        cases = select_cases(cases, options.select)
    print(render_models(cases, options.format))
    return ExitCode.PASS


def run_plan(options: Namespace) -> ExitCode:
    """Show what ``check`` would run, and how it divides over machines."""
    from gate.report.tables import render_plan  # noqa: PLC0415 - rich is slow to import

    request = load_request(options)
    plan = make_plan(request.cases, request.config.trials)
    if told := _explain_unavailable(request):
        print(f"note: {told}", file=sys.stderr)
    if options.format == "github-matrix":
        print(render_github_matrix(plan, options.shards))
    else:
        print(render_plan(plan, options.shards, options.format))
    return ExitCode.PASS


def _explain_unavailable(request: Request) -> str:
    """Say which of the selected cases this machine's GPU cannot run; empty for a CPU, or where none tells."""
    if request.config.device == "cpu":
        return ""
    from gate.lab.gpu import find_gpu, load_gpus  # noqa: PLC0415 - only a GPU needs it

    gpu = find_gpu(load_gpus(), request.config.device, os.environ)
    return describe_unavailable(list_unavailable(request.cases, gpu.capability if gpu else ""))


def run_doctor(options: Namespace) -> ExitCode:
    """Say whether this machine is fit to judge; a failed check is exit 4."""
    from gate.cli.place import place_lab  # noqa: PLC0415 - psutil
    from gate.lab.doctor import examine_machine, is_fit  # noqa: PLC0415 - psutil
    from gate.lab.probe import probe_machine  # noqa: PLC0415 - psutil
    from gate.report.tables import render_doctor  # noqa: PLC0415 - rich is slow to import

    request = load_request(options)
    state = probe_machine(*place_lab(request.config))
    checks = examine_machine(replace(state, unavailable=_explain_unavailable(request)))
    print(render_doctor(checks, options.format))
    return ExitCode.PASS if is_fit(checks) else ExitCode.MACHINE


def run_schema(options: Namespace) -> ExitCode:
    """Print a JSON Schema."""
    from gate.schema import render_schema  # noqa: PLC0415 - only this command needs it

    print(render_schema(options.name), end="")
    return ExitCode.PASS


def run_config(options: Namespace) -> ExitCode:
    """Print the configuration in force as a valid gate.yml with the origin of each value."""
    config = load_configured(options)
    print(f"# {describe_source(config)}\n{render_config(config)}", end="")
    return ExitCode.PASS
