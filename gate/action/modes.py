"""What each mode does: start the command, then tell the runner what came of it."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import chdir
from pathlib import Path

from gate.action.base import Rules, find_base_sha, find_head_sha, prepare_rules
from gate.action.commands import (
    make_authorize_arguments,
    make_check_arguments,
    make_measure_arguments,
    make_propose_arguments,
    make_publish_arguments,
)
from gate.action.inputs import MEASURING, ActionInputs, ActionMode, parse_inputs
from gate.action.results import describe_run, describe_verdict, list_annotations
from gate.codec import load_run, load_verdict
from gate.config import load_config
from gate.errors import ExitCode, FileError, GateError, UsageError
from gate.github.context import find_value, load_event
from gate.github.job import append_summary, render_annotation, write_outputs

# What a step talks to its runner with, and what its job could be asked for: none of it reaches code
# under test. A name of these files in the environment would let that code set outputs, paths and
# variables of later steps.
_HIDDEN_PREFIXES = ("INPUT_", "ACTIONS_")
_HIDDEN = frozenset(
    (
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"),
        "GITHUB_STEP_SUMMARY",
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One run of the action."""

    inputs: ActionInputs
    environ: Mapping[str, str]
    event: Mapping[str, object]


def run_action(environ: Mapping[str, str]) -> int:
    """Do what the inputs ask for and return the exit code; trouble is an annotation of two sentences."""
    try:
        inputs = parse_inputs(environ)
        _enter(inputs.working_directory)
        code = _MODES[inputs.mode](Step(inputs=inputs, environ=environ, event=load_event(environ)))
    except GateError as error:
        code = int(error.exit_code)
        print(render_annotation("error", f"{error.what}. {error.mend}"), flush=True)
    write_outputs(environ, {"exit-code": code})
    return code


def _enter(directory: str) -> None:
    try:
        chdir(directory)
    except OSError as error:
        what = f"input working-directory: {directory!r} cannot be entered: {error.strerror}"
        raise UsageError(what, "Check the path, and that actions/checkout runs before this step.") from None


def make_child_environment(environ: Mapping[str, str], inputs: ActionInputs) -> dict[str, str]:
    """Make the environment of the command: without any way to the runner where code under test runs."""
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    if inputs.mode in MEASURING:
        return {
            name: value
            for name, value in kept.items()
            if name not in _HIDDEN and not name.startswith(_HIDDEN_PREFIXES)
        }
    return kept | {"GITHUB_TOKEN": inputs.token}


def _run_measured(step: Step, arguments: tuple[str, ...]) -> int:
    """Run a command that measures; nothing that it prints can be taken for a command to the runner."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        return _run_command(step, arguments)
    finally:
        print(f"::{token}::", flush=True)


def _run_command(step: Step, arguments: tuple[str, ...]) -> int:
    """Run ``compile-gate`` with the arguments and return its exit code."""
    environment = make_child_environment(step.environ, step.inputs)
    # -P: see start.py; a repository may hold a directory `gate` of its own.
    return subprocess.call([sys.executable, "-P", "-m", "gate", *arguments], env=environment)


def _check(step: Step) -> int:
    rules = _prepare_rules(step)
    try:
        out = _load_out(rules.config)
        paths = {name: out / name for name in ("verdict.json", "report.md", "run.json")}
        for path in paths.values():
            path.unlink(missing_ok=True)  # an earlier run's must not be taken for this one's
        code = _run_measured(step, make_check_arguments(step.inputs, rules))
    finally:
        if rules.temporary is not None:
            rules.temporary.unlink(missing_ok=True)
    _tell_changed(step, rules)
    if not paths["verdict.json"].exists():
        if code not in {ExitCode.USAGE, ExitCode.MACHINE, ExitCode.INTERRUPTED, ExitCode.BUG}:
            raise FileError(str(paths["verdict.json"]), "", "was not written", "See the log above.")
        print(render_annotation("error", f"compile-gate check ended with exit code {code}; see the log."))
        return code
    verdict = load_verdict(paths["verdict.json"])
    head_sha = find_head_sha(step.event) or verdict.provenance.commit
    outputs = describe_verdict(verdict) | {"baseline-sha": rules.sha, "head-sha": head_sha}
    outputs |= {"result-path": str(paths["verdict.json"]), "report-path": str(paths["report.md"])}
    write_outputs(step.environ, outputs)
    append_summary(step.environ, paths["report.md"].read_text(encoding="utf-8"))
    run = load_run(paths["run.json"]) if paths["run.json"].exists() else None
    for annotation in list_annotations(verdict, run, Path.cwd(), code):
        print(annotation)
    return code


def _prepare_rules(step: Step) -> Rules:
    ref = step.inputs.baseline_ref
    sha = {"base": find_base_sha(step.event), "head": ""}.get(ref, ref)
    root = Path(step.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    return prepare_rules(
        step.inputs.config, step.inputs.baselines, sha, root / f"compile-gate-base-{secrets.token_hex(4)}"
    )


def _load_out(config: str) -> Path:
    return load_config(Path(config) if config else None).out.absolute()


def _tell_changed(step: Step, rules: Rules) -> None:
    """Say that the change touches what it is judged by; it was judged by the base's all the same."""
    if not rules.changed:
        return
    names = ", ".join(rules.changed[:5]) + (
        f" and {len(rules.changed) - 5} more" if rules.changed[5:] else ""
    )
    if rules.sha:
        text = (
            f"This change touches what it is judged by ({names}); it was judged by commit {rules.sha[:12]}'s."
        )
    else:
        text = f"The base commit has no configuration yet: this change is judged by its own ({names})."
    print(render_annotation("warning", text))
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    append_summary(step.environ, f"> {safe}\n")


def _refresh(step: Step) -> int:
    config = load_config(Path(step.inputs.config) if step.inputs.config else None)
    path = config.out.absolute() / "run.json"
    path.unlink(missing_ok=True)
    code = _run_measured(step, make_measure_arguments(step.inputs, config.refresh_trials))
    if path.exists():
        write_outputs(step.environ, describe_run(load_run(path)) | {"result-path": str(path)})
    return code


def _publish(step: Step) -> int:
    found = step.inputs.run_id or str(find_value(step.event, "workflow_run.id") or "")
    if not found:
        mend = "Start this workflow by workflow_run, or set `run-id:`."
        raise UsageError("input run-id: this event tells of no run to publish", mend)
    return _run_command(step, make_publish_arguments(step.inputs, found))


def _authorize(step: Step) -> int:
    return _run_command(step, make_authorize_arguments())


def _propose(step: Step) -> int:
    return _run_command(step, make_propose_arguments(step.inputs))


_MODES: Mapping[ActionMode, Callable[[Step], int]] = {
    ActionMode.CHECK: _check,
    ActionMode.REFRESH: _refresh,
    ActionMode.PUBLISH: _publish,
    ActionMode.AUTHORIZE: _authorize,
    ActionMode.PROPOSE: _propose,
}
