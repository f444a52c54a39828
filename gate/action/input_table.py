"""The action's modes and inputs as a table.

``action.yml``, this table and the table in docs/github.md name the same inputs; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.devices import DEVICE_FORMS, DEVICE_PATTERN


class ActionMode(StrEnum):
    """What the action does."""

    CHECK = "check"
    PLAN = "plan"
    MEASURE = "measure"
    JUDGE = "judge"
    UPGRADE = "upgrade"
    ANCHOR = "anchor"
    REFRESH = "refresh"
    PUBLISH = "publish"
    PUBLISH_UPGRADE = "publish-upgrade"
    AUTHORIZE = "authorize-command"
    ACCEPT = "accept-regression"
    PROPOSE = "propose-baselines"


BESIDE = frozenset((ActionMode.UPGRADE, ActionMode.ANCHOR))  # what is held against what lies side by side
MEASURING = BESIDE | frozenset((ActionMode.CHECK, ActionMode.MEASURE, ActionMode.REFRESH))
JUDGING = frozenset((ActionMode.CHECK, ActionMode.JUDGE))  # by rules that hold acceptances
TRUSTED_MODES = frozenset(
    (
        *(ActionMode.PUBLISH, ActionMode.PUBLISH_UPGRADE),
        *(ActionMode.AUTHORIZE, ActionMode.ACCEPT, ActionMode.PROPOSE),
    )
)
# Characters of text that goes into a command's argument: no control characters, so no second line.
_LINE = r"[^\x00-\x1f\x7f]*"
# What selections, branches and paths of a repository are made of; neither starts an option.
_SELECTION = r"[A-Za-z0-9_!*?\[][A-Za-z0-9_.,:/!*?\[\]-]*"
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


_FAIL_ON = ("new", "inconclusive", "regression", "never")
_COMMENT = ("always", "on-change", "on-failure", "never")
_CHECK = frozenset((ActionMode.CHECK,))
_PLAN = frozenset((ActionMode.PLAN,))
_JUDGE = frozenset((ActionMode.JUDGE,))
_UPGRADE = frozenset((ActionMode.UPGRADE,))
_PUBLISH = frozenset((ActionMode.PUBLISH,))
_PUBLISH_UPGRADE = frozenset((ActionMode.PUBLISH_UPGRADE,))
_AUTHORIZE = frozenset((ActionMode.AUTHORIZE,))
_ACCEPT = frozenset((ActionMode.ACCEPT,))
_PROPOSE = frozenset((ActionMode.PROPOSE,))
_READING = _PUBLISH | _PUBLISH_UPGRADE | _ACCEPT | _PROPOSE
_RULED = _CHECK | _PLAN | _JUDGE | frozenset((ActionMode.MEASURE,))  # by the base commit's rules
_CONCLUSIONS = ("success", "failure", "cancelled", "skipped")
_COMMANDS = ("refresh-baselines", "accept-regression")

INPUTS = (
    Input(name="mode", default="check", pattern="|".join(ActionMode), expected=_join(tuple(ActionMode))),
    Input(name="python", default="python3", pattern=rf"(?!-){_LINE}", expected="an interpreter"),
    Input(name="working-directory", default=".", pattern=_PATH, expected="a directory"),
    Input(
        name="config",
        default="",
        pattern=_PATH,
        expected="a file",
        modes=MEASURING | _PLAN | _JUDGE | _READING,
    ),
    Input(
        name="select",
        default="",
        pattern=_SELECTION,
        expected="case ids, globs and tag:NAME, joined by commas",
        modes=MEASURING | _PLAN | _JUDGE,
    ),
    Input(
        name="device",
        default="",
        pattern=DEVICE_PATTERN,
        expected=DEVICE_FORMS,
        modes=MEASURING,
    ),
    Input(
        name="trials",
        default="",
        pattern="[1-9][0-9]{0,3}",
        expected="a whole number from 1 to 9999",
        modes=MEASURING - BESIDE,
    ),
    Input(
        name="baselines",
        default="",
        pattern=_PATH,
        expected="a directory",
        modes=_CHECK | _JUDGE | _PROPOSE,
    ),
    Input(
        name="baseline-ref",
        default="base",
        pattern=f"base|head|{_SHA}",
        expected="base, head or a commit's 40 hexadecimal digits",
        modes=_RULED,
    ),
    Input(name="confirm", default="true", pattern="true|false", expected="true or false", modes=_CHECK),
    Input(name="base-python", default="", pattern=_PATH, expected="an interpreter", modes=_UPGRADE),
    Input(name="head-python", default="", pattern=_PATH, expected="an interpreter", modes=_UPGRADE),
    Input(
        name="minutes",
        default="",
        pattern="[1-9][0-9]{0,3}",
        expected="a whole number from 1 to 9999",
        modes=BESIDE,
    ),
    Input(
        name="shards",
        default="2",
        pattern="[1-9][0-9]{0,2}",
        expected="a whole number from 1 to 999",
        modes=_PLAN,
    ),
    Input(name="runs", default="shards", pattern=_PATH, expected="a directory", modes=_JUDGE),
    Input(
        name="fail-on",
        default="regression",
        pattern="|".join(_FAIL_ON),
        expected=_join(_FAIL_ON),
        modes=_CHECK | _JUDGE | BESIDE | _PUBLISH | _PUBLISH_UPGRADE,
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
        modes=_READING - _ACCEPT,
    ),
    Input(
        name="workflow",
        default=".github/workflows/gate.yml",
        pattern=r"\.github/workflows/[A-Za-z0-9_.-]{1,200}\.ya?ml",
        expected="a workflow's file: .github/workflows/NAME.yml",
        modes=_PUBLISH | _ACCEPT,
    ),
    Input(
        name="conclusion",
        default="",
        pattern="|".join(_CONCLUSIONS),
        expected=_join(_CONCLUSIONS),
        modes=_PUBLISH_UPGRADE,
    ),
    Input(
        name="comment",
        default="",  # the commands' own: a comment always, an issue where something changed
        pattern="|".join(_COMMENT),
        expected=_join(_COMMENT),
        modes=_PUBLISH | _PUBLISH_UPGRADE,
    ),
    Input(
        name="comment-key",
        default="default",
        pattern=r"[A-Za-z0-9_.-]{1,40}",
        expected="a key of at most 40 letters, digits, _, . and -",
        modes=_PUBLISH | _PUBLISH_UPGRADE,
    ),
    Input(
        name="comment-author",
        default="",
        pattern=r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,99})(?:\[bot\])?",
        expected="a login",
        modes=_PUBLISH | _PUBLISH_UPGRADE,
    ),
    Input(
        name="status",
        # Not the check's name: GitHub requires both of one name, and reporting would then decide.
        default="compile-gate/report",
        pattern=r"(?!-)[A-Za-z0-9_./ -]{0,100}",
        expected="a status context of at most 100 letters, digits, _, ., /, - and spaces",
        modes=_PUBLISH,
    ),
    Input(
        name="command",
        default="refresh-baselines",
        pattern="|".join(_COMMANDS),
        expected=_join(_COMMANDS),
        modes=_AUTHORIZE,
    ),
    Input(
        name="head-sha",
        default="",
        pattern=_SHA,
        expected="a commit's 40 hexadecimal digits",
        modes=_ACCEPT | _PROPOSE,
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
    Input(name="token", default="", pattern=r"[\x21-\x7e]*", expected="a token", modes=TRUSTED_MODES),
)
