"""The action's modes and inputs as a table, and parsing them.

GitHub hands a composite action only strings, and does not enforce ``required``. ``action.yml`` describes the
same inputs; docs/github-reference.md is generated from both. A command gets each of its inputs as the option
of that name.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any

from gate.devices import DEVICE_FORMS, DEVICE_PATTERN
from gate.errors import UsageError
from gate.github.job import BRANCH_PATTERN
from gate.installation import name_page
from gate.records.bounds import SHA

_MAX_CHARS = 32_768  # of any input: a selection of 500 cases
# Text that goes into a command's argument: no control characters, so no second line, and no option's begin.
_LINE = r"(?!-)[^\x00-\x1f\x7f]*"
# What selections are made of; none starts an option.
_SELECTION = r"[A-Za-z0-9_!*?\[][A-Za-z0-9_.,:/!*?\[\]-]*"
_COMMIT = (SHA, "a commit's 40 or 64 hexadecimal digits")
_WORKFLOW = r"\.github/workflows/[A-Za-z0-9_.-]{1,200}\.ya?ml"
_AUTHORIZED = "Pass on the outputs of the job that ran the mode authorize-command."
_STACKS = "Make an environment of each stack, and name their interpreters."


class ActionMode(StrEnum):
    CHECK = "check"
    MEASURE = "measure"
    JUDGE = "judge"
    UPGRADE = "upgrade"
    ANCHOR = "anchor"
    REFRESH = "refresh"
    PLAN = "plan"
    PUBLISH = "publish"
    PUBLISH_UPGRADE = "publish-upgrade"
    AUTHORIZE = "authorize-command"
    ACCEPT = "accept-regression"
    PROPOSE = "propose-baselines"


JUDGING = (ActionMode.CHECK, ActionMode.MEASURE, ActionMode.JUDGE)  # by the base's rules and acceptances
_CHECKING = (ActionMode.CHECK, ActionMode.MEASURE)
TRUSTED_MODES = frozenset(
    (
        ActionMode.PUBLISH, ActionMode.PUBLISH_UPGRADE,
        ActionMode.AUTHORIZE, ActionMode.ACCEPT, ActionMode.PROPOSE,
    )
)  # fmt: skip
# What a mode needs besides, and the fix.
_NEEDED = (
    (ActionMode.PROPOSE, ("head-sha", "head-ref"), _AUTHORIZED),
    (ActionMode.ACCEPT, ("head-sha",), _AUTHORIZED),
    (ActionMode.MEASURE, ("shard",), "Say which part of how many this job measures: `shard: 2/4`."),
    (ActionMode.UPGRADE, ("base-python", "head-python"), _STACKS),
)


def make_token_error(mode: str) -> UsageError:
    fix = "Give it to the job that publishes: the code under test must never share a job with a token."
    return UsageError(f"input token: the mode {mode} takes no token", fix)


@dataclass(frozen=True, slots=True)
class Input:
    """An empty value is allowed where ``default`` is empty and means "not given"."""

    name: str
    pattern: str
    expected: str  # the pattern, for a person
    _: KW_ONLY
    modes: tuple[ActionMode, ...] = ()  # whose command is given it, as the option of this name
    reads: tuple[ActionMode, ...] = ()  # in which the action itself reads it
    default: str = ""

    @property
    def variable(self) -> str:
        return "INPUT_" + self.name.upper().replace("-", "_")

    @property
    def users(self) -> tuple[ActionMode, ...]:
        return tuple(mode for mode in ActionMode if mode in {*self.modes, *self.reads})


def _make_choice(name: str, choices: tuple[str, ...], **more: Any) -> Input:  # noqa: ANN401 - fields of Input
    expected = ", ".join(choices[:-1]) + " or " + choices[-1]
    return Input(name, "|".join(choices), expected, **more)


_EVERY = tuple(ActionMode)
_MEASURING = (ActionMode.CHECK, ActionMode.MEASURE, ActionMode.REFRESH)
_PAIRING = (ActionMode.UPGRADE, ActionMode.ANCHOR)  # `ab`, which measures as many pairs as it needs
_PUBLISHING = (ActionMode.PUBLISH, ActionMode.PUBLISH_UPGRADE)
_PROPOSE = (ActionMode.PROPOSE,)
_UPGRADE = (ActionMode.UPGRADE,)
_CONFIGURED = tuple(mode for mode in ActionMode if mode is not ActionMode.AUTHORIZE)
_SELECTED = (*_MEASURING, *_PAIRING)
_HOLDING_TOKEN = tuple(mode for mode in ActionMode if mode in TRUSTED_MODES)

INPUTS = (
    _make_choice("mode", _EVERY, default=ActionMode.CHECK.value, reads=_EVERY),
    Input("python", _LINE, "an interpreter", default="python3", reads=_EVERY),
    Input("working-directory", _LINE, "a directory", default=".", reads=_EVERY),
    Input("config", _LINE, "a file", modes=_CONFIGURED),
    Input(
        "select",
        _SELECTION,
        "case ids, globs and tag:NAME, joined by commas",
        modes=_SELECTED,
        reads=(ActionMode.JUDGE,),
    ),
    Input("device", DEVICE_PATTERN, DEVICE_FORMS, modes=(*_MEASURING, *_PAIRING)),
    Input("baselines", _LINE, "a directory", modes=(*_PROPOSE, ActionMode.ANCHOR), reads=JUDGING),
    Input(
        "baseline-ref",
        f"base|head|{SHA}",
        "base, head or a commit's 40 or 64 hexadecimal digits",
        default="base",
        reads=JUDGING,
    ),
    _make_choice("confirm", ("true", "false"), default="true", reads=_CHECKING),
    Input("base-python", _LINE, "an interpreter", modes=_UPGRADE),
    Input("head-python", _LINE, "an interpreter", modes=_UPGRADE),
    Input("minutes", "[1-9][0-9]{0,3}", "a whole number from 1 to 9999", modes=_PAIRING),
    Input(
        "shard",
        "[1-9][0-9]{0,2}/[1-9][0-9]{0,2}",
        "which part of how many, as 2/4",
        modes=(ActionMode.MEASURE,),
    ),
    _make_choice(
        "fail-on",
        ("new", "inconclusive", "regression", "never"),
        modes=(ActionMode.CHECK, ActionMode.JUDGE, *_PAIRING),
    ),
    Input(
        "lock-timeout",
        r"[0-9]{1,6}(\.[0-9]{1,3})?",
        "a number of seconds",
        modes=(*_MEASURING, *_PAIRING),
    ),
    Input(
        "artifact-name",
        r"[A-Za-z0-9_.-]{1,100}",
        "an artifact's name of letters, digits, _, . and -",
        default="compile-gate",
        modes=(*_PUBLISHING, ActionMode.ACCEPT, ActionMode.PROPOSE),
    ),
    Input("run-id", "[1-9][0-9]{0,18}", "a run's number", modes=_PUBLISHING),
    Input(
        "workflow",
        _WORKFLOW,
        "a workflow's file: .github/workflows/NAME.yml",
        default=".github/workflows/gate.yml",
        modes=(ActionMode.PUBLISH, ActionMode.ACCEPT),
    ),
    _make_choice(
        "conclusion",
        ("success", "failure", "cancelled", "skipped"),
        modes=(ActionMode.PUBLISH_UPGRADE, ActionMode.PROPOSE),
    ),
    _make_choice("comment", ("always", "on-change", "on-failure", "never"), modes=_PUBLISHING),
    Input(
        "comment-key",
        r"[A-Za-z0-9_.-]{1,40}",
        "a key of at most 40 letters, digits, _, . and -",
        default="default",
        modes=(*_PUBLISHING, ActionMode.ACCEPT),
        reads=JUDGING,
    ),
    _make_choice(
        "command",
        ("refresh-baselines", "accept-regression"),
        default="refresh-baselines",
        modes=(ActionMode.AUTHORIZE,),
    ),
    Input("head-sha", *_COMMIT, modes=(ActionMode.ACCEPT, ActionMode.PROPOSE)),
    Input("head-ref", BRANCH_PATTERN, "a branch's name", modes=_PROPOSE),
    Input("pr-number", "[1-9][0-9]{0,9}", "a pull request's number", modes=_PROPOSE),
    Input("reason", _LINE, "one line of text", modes=_PROPOSE),
    Input("token", r"[\x21-\x7e]*", "a token", reads=_HOLDING_TOKEN),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionStep:
    """``environ`` has all that the runner gave the step; the process has less."""

    # Both hold the token.
    inputs: Mapping[str, str] = field(repr=False)
    environ: Mapping[str, str] = field(repr=False)
    event: Mapping[str, object]


def parse_inputs(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Parse the inputs; ``""`` where one was not given.

    Raises:
        UsageError: Names the input. The value of ``token`` is never shown.
    """
    inputs = {item.name: _parse_value(item, environ.get(item.variable, item.default)) for item in INPUTS}
    if inputs["mode"] not in TRUSTED_MODES and inputs["token"]:
        raise make_token_error(inputs["mode"])
    if inputs["mode"] in TRUSTED_MODES and not inputs["token"]:
        fix = f"Add `token: ${{{{ github.token }}}}`; its permissions: {name_page('github')}."
        raise UsageError(f"input token: the mode {inputs['mode']} needs a token", fix)
    for mode, names, fix in _NEEDED:
        if inputs["mode"] == mode and not all(inputs[name] for name in names):
            what = f"input {names[0]}: the mode {mode} needs it"
            if names[1:]:
                what = f"inputs {' and '.join(names)}: the mode {mode} needs both"
            raise UsageError(what, fix)
    return inputs


def _parse_value(item: Input, text: str) -> str:
    value = text.strip() or item.default
    if not value:
        return ""
    if len(value) > _MAX_CHARS or not re.fullmatch(item.pattern, value):
        text = "".join(char if char.isprintable() else "?" for char in value[:60])
        shown = "that value" if item.name == "token" else repr(text)
        raise UsageError(
            f"input {item.name}: {shown} is not {item.expected}", f"Fix `{item.name}:` in the workflow."
        )
    return value
