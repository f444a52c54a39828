"""Parts of what GitHub tells, by their path: ``pull_request.head.sha``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gate.github.errors import UnreachableError


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
        UnreachableError: It is missing, empty, or does not match.
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


def describe_surprise(path: str) -> UnreachableError:
    """The error of an answer that is not what GitHub's description promises."""
    return UnreachableError(f"GitHub's answer has no usable {path!r}", "Try again later.")
