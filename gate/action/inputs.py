"""The action's inputs as a table, and their reading: environment -> validated record.

GitHub hands a composite action nothing but strings, does not enforce ``required`` and knows no types.
``action.yml``, this table and the table in docs/github.md name the same inputs; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gate.errors import UsageError


class ActionMode(StrEnum):
    """What the action does."""

    CHECK = "check"
    REFRESH = "refresh"
    PUBLISH = "publish"
    AUTHORIZE = "authorize-command"
    PROPOSE = "propose-baselines"


MEASURING = frozenset((ActionMode.CHECK, ActionMode.REFRESH))
TRUSTED = frozenset(ActionMode) - MEASURING
# Characters of text that goes into a command's argument: no control characters, so no second line.
_LINE = r"[^\x00-\x1f\x7f]*"
# What selections, branches and paths of a repository are made of; neither starts an option.
_SELECTION = r"[A-Za-z0-9_!*?\[][A-Za-z0-9_.,:/!*?\[\]-]{0,499}"
_PATH = rf"(?!-){_LINE}"
_BRANCH = r"(?!-)(?!.*(?:\.\.|//|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,244}"
_SHA = r"[0-9a-f]{40}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One input: its name in action.yml, what it may be, and which modes look at it.

    An empty value is allowed where ``default`` is empty and means "not given".
    """

    name: str
    default: str
    pattern: str
    expected: str  # says the pattern to a person
    modes: frozenset[ActionMode] = frozenset(ActionMode)

    @property
    def variable(self) -> str:
        """The environment variable that action.yml sets."""
        return "INPUT_" + self.name.upper().replace("-", "_")

    @property
    def field(self) -> str:
        """The field of :class:`ActionInputs`."""
        return self.name.replace("-", "_")


def _join(choices: tuple[str, ...]) -> str:
    return ", ".join(choices[:-1]) + " or " + choices[-1]


_FAIL_ON = ("inconclusive", "regression", "never")
_COMMENT = ("always", "on-change", "on-failure", "never")
_CHECK = frozenset((ActionMode.CHECK,))
_PUBLISH = frozenset((ActionMode.PUBLISH,))
_PROPOSE = frozenset((ActionMode.PROPOSE,))
_READING = frozenset((ActionMode.PUBLISH, ActionMode.PROPOSE))

INPUTS = (
    Input(name="mode", default="check", pattern="|".join(ActionMode), expected=_join(tuple(ActionMode))),
    Input(name="python", default="python3", pattern=rf"(?!-){_LINE}", expected="an interpreter"),
    Input(name="working-directory", default=".", pattern=_PATH, expected="a directory"),
    Input(
        name="config",
        default="",
        pattern=_PATH,
        expected="a file",
        modes=MEASURING | _READING,
    ),
    Input(
        name="select",
        default="",
        pattern=_SELECTION,
        expected="case ids, globs and tag:NAME, joined by commas",
        modes=MEASURING,
    ),
    Input(
        name="device",
        default="",
        pattern="cpu|cuda(:[0-9]{1,2})?",
        expected="cpu, cuda or cuda:N",
        modes=MEASURING,
    ),
    Input(
        name="trials",
        default="",
        pattern="[1-9][0-9]{0,3}",
        expected="a whole number from 1 to 9999",
        modes=MEASURING,
    ),
    Input(name="baselines", default="", pattern=_PATH, expected="a directory", modes=_CHECK | _PROPOSE),
    Input(
        name="baseline-ref",
        default="base",
        pattern=f"base|head|{_SHA}",
        expected="base, head or a commit's 40 hexadecimal digits",
        modes=_CHECK,
    ),
    Input(
        name="fail-on",
        default="regression",
        pattern="|".join(_FAIL_ON),
        expected=_join(_FAIL_ON),
        modes=_CHECK | _PUBLISH,
    ),
    Input(
        name="lock-timeout",
        default="",
        pattern=r"[0-9]{1,6}(\.[0-9]{1,3})?",
        expected="a number of seconds",
        modes=MEASURING,
    ),
    Input(
        name="artifact-name",
        default="compile-gate",
        pattern=r"[A-Za-z0-9_.-]{1,100}",
        expected="an artifact's name of letters, digits, _, . and -",
        modes=_READING,
    ),
    Input(
        name="run-id",
        default="",
        pattern="[1-9][0-9]{0,18}",
        expected="a run's number",
        modes=_READING,
    ),
    Input(
        name="comment",
        default="on-change",
        pattern="|".join(_COMMENT),
        expected=_join(_COMMENT),
        modes=_PUBLISH,
    ),
    Input(
        name="comment-key",
        default="default",
        pattern=r"[A-Za-z0-9_.-]{1,40}",
        expected="a key of at most 40 letters, digits, _, . and -",
        modes=_PUBLISH,
    ),
    Input(
        name="comment-author",
        default="",
        pattern=r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,99})(?:\[bot\])?",
        expected="a login",
        modes=_PUBLISH,
    ),
    Input(
        name="status",
        default="compile-gate",
        pattern=r"(?!-)[A-Za-z0-9_./ -]{0,100}",
        expected="a status context of at most 100 letters, digits, _, ., /, - and spaces",
        modes=_PUBLISH,
    ),
    Input(
        name="head-sha",
        default="",
        pattern=_SHA,
        expected="a commit's 40 hexadecimal digits",
        modes=_PROPOSE,
    ),
    Input(name="head-ref", default="", pattern=_BRANCH, expected="a branch's name", modes=_PROPOSE),
    Input(
        name="pr-number",
        default="",
        pattern="[1-9][0-9]{0,9}",
        expected="a pull request's number",
        modes=_PROPOSE,
    ),
    Input(name="reason", default="", pattern=rf"(?!-){_LINE}", expected="one line of text", modes=_PROPOSE),
    Input(name="token", default="", pattern=r"[\x21-\x7e]*", expected="a token", modes=TRUSTED),
)
_MAX_CHARS = 4096  # of any input: a path on Linux; nothing honest is longer


@dataclass(frozen=True, kw_only=True)
class ActionInputs:
    """The action's inputs, checked; ``""`` where an input was not given."""

    mode: ActionMode
    python: str
    working_directory: str
    config: str
    select: str
    device: str
    trials: str
    baselines: str
    baseline_ref: str
    fail_on: str
    lock_timeout: str
    artifact_name: str
    run_id: str
    comment: str
    comment_key: str
    comment_author: str
    status: str
    head_sha: str
    head_ref: str
    pr_number: str
    reason: str
    token: str

    def __repr__(self) -> str:
        return f"ActionInputs(mode={self.mode})"  # a dataclass would print the token


def parse_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """Read and check the inputs that ``action.yml`` put into the environment.

    Raises:
        UsageError: Names the input. The value of ``token`` is never shown.
    """
    values = {item.field: _parse_value(item, environ.get(item.variable, item.default)) for item in INPUTS}
    inputs = ActionInputs(**{**values, "mode": ActionMode(values["mode"])})  # type: ignore[arg-type] # all are str
    if inputs.mode in MEASURING and inputs.token:
        mend = "Give it to the job that publishes: the code under test must never share a job with a token."
        raise UsageError(f"input token: the mode {inputs.mode} takes no token", mend)
    if inputs.mode in TRUSTED and not inputs.token:
        mend = "Add `token: ${{ github.token }}`; docs/github.md lists the permissions it needs."
        raise UsageError(f"input token: the mode {inputs.mode} needs a token", mend)
    if inputs.mode is ActionMode.PROPOSE and not (inputs.head_sha and inputs.head_ref):
        mend = "Pass on the outputs of the job that ran the mode authorize-command."
        raise UsageError(f"inputs head-sha and head-ref: the mode {inputs.mode} needs both", mend)
    return inputs


def _parse_value(item: Input, text: str) -> str:
    value = text.strip()
    if not value and (not item.default or item.name == "status"):
        return ""
    if len(value) > _MAX_CHARS or not re.fullmatch(item.pattern, value):
        shown = "that value" if item.name == "token" else _show(value)
        raise UsageError(
            f"input {item.name}: {shown} is not {item.expected}", f"Mend `{item.name}:` in the workflow."
        )
    return value


def _show(value: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in value[:60])
    return f"{shown!r}"
