"""What each mode does: start the command, then tell the runner what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import chdir

from gate.action.commands import (
    make_accept_arguments,
    make_authorize_arguments,
    make_propose_arguments,
    make_publish_arguments,
    make_publish_upgrade_arguments,
)
from gate.action.input_table import ActionMode
from gate.action.inputs import parse_inputs
from gate.action.runs import run_measure, run_plan, run_refresh
from gate.action.step import Step, run_command
from gate.action.verdicts import run_check, run_judge, run_upgrade
from gate.errors import GateError, UsageError
from gate.github.context import find_value, load_event
from gate.github.job import render_annotation, write_outputs


def run_action(environ: Mapping[str, str]) -> int:
    """Do what the inputs ask for and return the exit code; trouble is an annotation of two sentences."""
    try:
        inputs = parse_inputs(environ)
        _enter(inputs.working_directory)
        code = _MODES[inputs.mode](Step(inputs=inputs, environ=environ, event=load_event(environ)))
    except GateError as error:
        code = int(error.exit_code)
        for one in (error, *error.others):
            print(render_annotation("error", f"{one.what}. {one.fix}"), flush=True)
    write_outputs(environ, {"exit-code": code})
    return code


def _enter(directory: str) -> None:
    try:
        chdir(directory)
    except OSError as error:
        what = f"input working-directory: {directory!r} cannot be entered: {error.strerror}"
        raise UsageError(what, "Check the path, and that actions/checkout runs before this step.") from None


def _publish(step: Step) -> int:
    found = step.inputs.run_id or str(find_value(step.event, "workflow_run.id") or "")
    if not found:
        fix = "Start this workflow by workflow_run, or set `run-id:`."
        raise UsageError("input run-id: this event tells of no run to publish", fix)
    return run_command(step, make_publish_arguments(step.inputs, found))


def _publish_upgrade(step: Step) -> int:
    found = step.inputs.run_id or step.environ.get("GITHUB_RUN_ID", "")
    if not found:
        raise UsageError("input run-id: there is no run to publish", "Run this in a job, or set `run-id:`.")
    return run_command(step, make_publish_upgrade_arguments(step.inputs, found))


def _authorize(step: Step) -> int:
    return run_command(step, make_authorize_arguments(step.inputs))


def _accept(step: Step) -> int:
    return run_command(step, make_accept_arguments(step.inputs))


def _propose(step: Step) -> int:
    return run_command(step, make_propose_arguments(step.inputs))


_MODES: Mapping[ActionMode, Callable[[Step], int]] = {
    ActionMode.CHECK: run_check,
    ActionMode.PLAN: run_plan,
    ActionMode.MEASURE: run_measure,
    ActionMode.JUDGE: run_judge,
    ActionMode.UPGRADE: run_upgrade,
    ActionMode.REFRESH: run_refresh,
    ActionMode.PUBLISH: _publish,
    ActionMode.PUBLISH_UPGRADE: _publish_upgrade,
    ActionMode.AUTHORIZE: _authorize,
    ActionMode.ACCEPT: _accept,
    ActionMode.PROPOSE: _propose,
}
