"""What each mode does: start the command, then tell the runner what came of it."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gate.action.commands import (
    make_accept_arguments,
    make_authorize_arguments,
    make_propose_arguments,
    make_publish_arguments,
    make_publish_upgrade_arguments,
)
from gate.action.input_table import ActionMode
from gate.action.inputs import ActionInputs, parse_inputs
from gate.action.notices import tell_failure
from gate.action.runs import start_measure, start_plan, start_refresh
from gate.action.step import ActionStep, run_command, stop_commands
from gate.action.verdicts import run_judge, run_upgrade, start_anchor, start_check
from gate.errors import ExitCode, GateError, UsageError
from gate.git import GIT_SETTINGS, trust_checkout
from gate.github.context import load_payload
from gate.github.job import render_annotation, write_outputs
from gate.github.payload import find_value


def run_action(environ: Mapping[str, str]) -> int:
    """Do what the inputs ask for and return the exit code; trouble is an annotation of two sentences."""
    try:
        code = _run_mode(environ)
    except GateError as error:
        code = int(error.exit_code)
        for one in (error, *error.others):
            print(render_annotation("error", f"{one.what}. {one.fix}"), flush=True)
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the one place where a bug of the action becomes exit code 1
        code = int(ExitCode.BUG)
        _tell_bug(error)
    write_outputs(environ, {"exit-code": code})
    return code


def _run_mode(environ: Mapping[str, str]) -> int:
    inputs = parse_inputs(environ)
    _enter(inputs["working-directory"])
    with _trust_workspace(environ) as trusting:
        return _MODES[inputs.mode](ActionStep(inputs=inputs, environ=trusting, event=load_payload(environ)))


@contextmanager
def _trust_workspace(environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Let git trust the checkout for as long as the step runs: in a container it is another user's."""
    before = os.environ.get(GIT_SETTINGS)
    with tempfile.TemporaryDirectory(prefix="compile-gate-", dir=environ.get("RUNNER_TEMP") or None) as place:
        trusting = trust_checkout(environ, Path.cwd(), Path(place) / "gitconfig")
        os.environ |= {name: value for name, value in trusting.items() if name == GIT_SETTINGS}
        try:
            yield trusting
        finally:
            os.environ.pop(GIT_SETTINGS, None)
            os.environ |= {GIT_SETTINGS: before} if before else {}


def _tell_bug(error: Exception) -> None:
    """Show the traceback, in which a file of the change may be quoted, and say what it was in one line."""
    with stop_commands():
        traceback.print_exception(error, file=sys.stdout)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    fix = "This is a bug in compile-gate: please report it with the traceback in the log."
    print(render_annotation("error", f"{what}. {fix}"), flush=True)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        what = f"input working-directory: {directory!r} cannot be entered: {error.strerror}"
        raise UsageError(what, "Check the path, and that actions/checkout runs before this step.") from None


def _publish(step: ActionStep) -> int:
    found = step.inputs["run-id"] or str(find_value(step.event, "workflow_run.id") or "")
    if not found:
        fix = "Start this workflow by workflow_run, or set `run-id:`."
        raise UsageError("input run-id: this event tells of no run to publish", fix)
    return tell_failure(run_command(step, make_publish_arguments(step.inputs, found)))


def _publish_upgrade(step: ActionStep) -> int:
    found = step.inputs["run-id"] or step.environ.get("GITHUB_RUN_ID", "")
    if not found:
        raise UsageError("input run-id: there is no run to publish", "Run this in a job, or set `run-id:`.")
    return tell_failure(run_command(step, make_publish_upgrade_arguments(step.inputs, found)))


def _pass_on(make_arguments: Callable[[ActionInputs], tuple[str, ...]]) -> Callable[[ActionStep], int]:
    """Make a mode that runs one command and tells why it failed."""
    return lambda step: tell_failure(run_command(step, make_arguments(step.inputs)))


_MODES: Mapping[ActionMode, Callable[[ActionStep], int]] = {
    ActionMode.CHECK: start_check,
    ActionMode.PLAN: start_plan,
    ActionMode.MEASURE: start_measure,
    ActionMode.JUDGE: run_judge,
    ActionMode.UPGRADE: run_upgrade,
    ActionMode.ANCHOR: start_anchor,
    ActionMode.REFRESH: start_refresh,
    ActionMode.PUBLISH: _publish,
    ActionMode.PUBLISH_UPGRADE: _publish_upgrade,
    ActionMode.AUTHORIZE: _pass_on(make_authorize_arguments),
    ActionMode.ACCEPT: _pass_on(make_accept_arguments),
    ActionMode.PROPOSE: _pass_on(make_propose_arguments),
}
