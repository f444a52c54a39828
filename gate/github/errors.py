"""What can go wrong with GitHub, none of which says anything about the measured code.

GitHubError              exit code 4, as every trouble with the surroundings: no usable answer after bounded
│                        repeats, one beyond its size, or a wait for longer than the budget has left
├── UncertainWriteError  a POST was sent and no answer came: it may have happened, so look first
├── DeniedError          401, or a 403 that is about rights
├── MissingError         404 or 410
└── RejectedError        any other 4xx, or a redirect that must not be followed

Parts of an answer are found by their path, such as ``pull_request.head.sha``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gate.errors import MachineError


class GitHubError(MachineError):
    """GitHub did not do what was asked."""


class UncertainWriteError(GitHubError):
    """A POST may or may not have taken effect; find out before sending it again."""


class DeniedError(GitHubError):
    """The token is wrong or lacks a right."""


class MissingError(GitHubError):
    """There is no such thing, or the token may not know of it."""


class RejectedError(GitHubError):
    """GitHub refuses the request as such."""


def find_value(payload: object, path: str) -> object:
    """Find a part in nested mappings; None where it is missing."""
    value = payload
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def find_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    """Find a text; empty where it is missing, is none, or does not match."""
    value = find_value(payload, path)
    return value if isinstance(value, str) and (pattern is None or pattern.fullmatch(value)) else ""


def need_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    """Find a text that GitHub's description promises.

    Raises:
        GitHubError: It is missing, empty, or does not match.
    """
    if text := find_text(payload, path, pattern):
        return text
    raise describe_surprise(path)


def need_number(payload: object, path: str) -> int:
    """Find a number above 0; raises as :func:`need_text`."""
    value = find_value(payload, path)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise describe_surprise(path)


def describe_surprise(path: str) -> GitHubError:
    """The error of an answer that is not what GitHub's description promises."""
    return GitHubError(f"GitHub's answer has no usable {path!r}", "Try again later.")
