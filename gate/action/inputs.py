"""Reads the action's inputs: environment -> validated record.

GitHub hands a composite action nothing but strings, does not enforce ``required`` and knows no types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.action.input_table import INPUTS, TRUSTED_MODES, ActionMode, Input, refuse_token
from gate.errors import UsageError

# Of any input: a shard's selection names its cases one by one, and this is more than 500 of them.
_MAX_CHARS = 32_768


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionInputs:
    """The action's inputs, checked, under the names that action.yml has; ``""`` where one was not given."""

    mode: ActionMode
    values: Mapping[str, str] = field(repr=False)  # among them the token

    def __getitem__(self, name: str) -> str:
        return self.values[name]


def parse_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """Read and check the inputs that ``action.yml`` put into the environment.

    Raises:
        UsageError: Names the input. The value of ``token`` is never shown.
    """
    values = {item.name: _parse_value(item, environ.get(item.variable, item.default)) for item in INPUTS}
    inputs = ActionInputs(mode=ActionMode(values["mode"]), values=values)
    _check_token(inputs)
    for mode, names, fix in _NEEDED:
        if inputs.mode is mode and not all(inputs[name] for name in names):
            what = f"input {names[0]}: the mode {mode} needs it"
            if names[1:]:
                what = f"inputs {' and '.join(names)}: the mode {mode} needs both"
            raise UsageError(what, fix)
    return inputs


_NEEDED = (
    (
        ActionMode.PROPOSE,
        ("head-sha", "head-ref"),
        "Pass on the outputs of the job that ran the mode authorize-command.",
    ),
    (
        ActionMode.ACCEPT,
        ("head-sha",),
        "Pass on the output of the job that ran the mode authorize-command.",
    ),
    (
        ActionMode.UPGRADE,
        ("base-python", "head-python"),
        "Make an environment of each stack, and name their interpreters.",
    ),
)


def _check_token(inputs: ActionInputs) -> None:
    """Check that there is a token just where one is needed."""
    if inputs.mode not in TRUSTED_MODES and inputs["token"]:
        raise refuse_token(inputs.mode)
    if inputs.mode in TRUSTED_MODES and not inputs["token"]:
        fix = "Add `token: ${{ github.token }}`; docs/github.md lists the permissions it needs."
        raise UsageError(f"input token: the mode {inputs.mode} needs a token", fix)


def _parse_value(item: Input, text: str) -> str:
    value = text.strip()
    if not value and (not item.default or item.name == "status"):
        return ""
    if len(value) > _MAX_CHARS or not re.fullmatch(item.pattern, value):
        shown = "that value" if item.name == "token" else _show(value)
        raise UsageError(
            f"input {item.name}: {shown} is not {item.expected}", f"Fix `{item.name}:` in the workflow."
        )
    return value


def _show(value: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in value[:60])
    return f"{shown!r}"
