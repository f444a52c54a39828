"""One run of the action, and how it starts a command: what measures gets no way to the runner."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from gate.action.child import Ended, run_child
from gate.action.input_table import TRUSTED_MODES
from gate.action.inputs import ActionInputs
from gate.action.isolation import drop_hidden, make_command


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionStep:
    """One run of the action. ``environ`` has all that the runner gave it, the process has not."""

    inputs: ActionInputs
    environ: Mapping[str, str]
    event: Mapping[str, object]


def make_child_environment(environ: Mapping[str, str], inputs: ActionInputs) -> dict[str, str]:
    """Make the environment of the command: without any way to the runner, but for what holds a token."""
    if inputs.mode not in TRUSTED_MODES:
        return drop_hidden(environ)
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return kept | {"GITHUB_TOKEN": inputs["token"]}


def run_command(step: ActionStep, arguments: tuple[str, ...]) -> Ended:
    """Run ``compile-gate`` with the arguments."""
    return run_child(make_command("gate", *arguments), make_child_environment(step.environ, step.inputs))


def run_measured(step: ActionStep, arguments: tuple[str, ...]) -> Ended:
    """Run a command that measures; nothing that it prints can be taken for a command to the runner."""
    with stop_commands():
        return run_command(step, arguments)


def read_command(step: ActionStep, arguments: tuple[str, ...]) -> tuple[Ended, str]:
    """Run a command that measures nothing, and return how it ended and what it printed."""
    environment = make_child_environment(step.environ, step.inputs)
    with stop_commands():
        ended = run_child(make_command("gate", *arguments), environment, keep_output=True)
    return ended, ended.output.decode(errors="replace")


@contextmanager
def stop_commands() -> Iterator[None]:
    """Let the runner take nothing that is printed meanwhile for a command to it."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)
