"""One run of the action, and how it starts a command: what measures gets no way to the runner."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gate.action.input_table import TRUSTED
from gate.action.inputs import ActionInputs

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


def make_child_environment(environ: Mapping[str, str], inputs: ActionInputs) -> dict[str, str]:
    """Make the environment of the command: without any way to the runner, but for what holds a token."""
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    if inputs.mode in TRUSTED:
        return kept | {"GITHUB_TOKEN": inputs.token}
    return {
        name: value
        for name, value in kept.items()
        if name not in _HIDDEN and not name.startswith(_HIDDEN_PREFIXES)
    }


def run_command(step: Step, arguments: tuple[str, ...]) -> int:
    """Run ``compile-gate`` with the arguments and return its exit code."""
    environment = make_child_environment(step.environ, step.inputs)
    return subprocess.call(_make_command(arguments), env=environment)


def run_measured(step: Step, arguments: tuple[str, ...]) -> int:
    """Run a command that measures; nothing that it prints can be taken for a command to the runner."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        return run_command(step, arguments)
    finally:
        print(f"::{token}::", flush=True)


def read_command(step: Step, arguments: tuple[str, ...]) -> tuple[int, str]:
    """Run a command that measures nothing, and return its exit code and what it printed."""
    environment = make_child_environment(step.environ, step.inputs)
    command = _make_command(arguments)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def _make_command(arguments: tuple[str, ...]) -> list[str]:
    # -P: see start.py; a repository may hold a directory `gate` of its own.
    return [sys.executable, "-P", "-m", "gate", *arguments]
