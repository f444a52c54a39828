"""Limits on a value beside its type, told once: the decoder applies them and the JSON Schemas state them.

They are attached to a type: ``threads: Annotated[int, Range(minimum=1)]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A number within bounds; ``above`` excludes the bound itself."""

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None

    def describe(self) -> str:
        """Say what is expected."""
        bounds = (("of at least", self.minimum), ("above", self.above), ("of at most", self.maximum))
        return "a number " + " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        """Whether the number is within the bounds."""
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
        )

    def to_schema(self) -> dict[str, object]:
        """State it in JSON Schema."""
        names = {"minimum": self.minimum, "exclusiveMinimum": self.above, "maximum": self.maximum}
        return {name: bound for name, bound in names.items() if bound is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A text that a regular expression matches as a whole; ``what`` says it to a person."""

    regex: str
    what: str

    def describe(self) -> str:
        """Say what is expected."""
        return self.what

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        """Whether the whole text matches."""
        return re.fullmatch(self.regex, value) is not None

    def to_schema(self) -> dict[str, object]:
        """State it in JSON Schema, whose patterns are not anchored by themselves."""
        return {"pattern": f"^(?:{self.regex})$"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """A day of the calendar, as text."""

    def describe(self) -> str:
        """Say what is expected."""
        return "a day of the calendar: YYYY-MM-DD"

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        """Whether there is such a day."""
        try:
            return date.fromisoformat(value).isoformat() == str(value)
        except ValueError:
            return False

    def to_schema(self) -> dict[str, object]:
        """State it in JSON Schema, which leaves the calendar to validators that know ``format``."""
        return {"format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


@dataclass(frozen=True, kw_only=True, slots=True)
class NotEmpty:
    """A list with at least one item."""

    what: str

    def describe(self) -> str:
        """Say what is expected."""
        return self.what

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        """Whether there is an item."""
        return len(value) > 0

    def to_schema(self) -> dict[str, object]:
        """State it in JSON Schema."""
        return {"minItems": 1}


Limit = Range | Pattern | Day | NotEmpty
