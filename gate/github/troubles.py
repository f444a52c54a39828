"""What goes wrong with GitHub while something is told: written down, part by part, and never raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gate.github.errors import GitHubError

T = TypeVar("T")


class Troubles:
    """Collects what goes wrong, part by part."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, what: str, error: GitHubError) -> None:
        """Write down what was not done, and why."""
        self.lines.append(f"{what}: {error.what}. {error.fix}")

    def attempt(self, what: str, do: Callable[[], T]) -> T | None:
        """Do one part and return what came of it; GitHub's trouble is written down, and gives None."""
        try:
            return do()
        except GitHubError as error:
            self.add(what, error)
            return None
