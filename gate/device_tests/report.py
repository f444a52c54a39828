"""What the tests of a device report: a line of text for each result. Torch-free."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gate.files.disk import write_atomic

_LABEL_CHARS = 8  # of the longest status, and a space


class ResultStatus(StrEnum):
    """Whether what was assumed holds; the first word of a line."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    INFO = "INFO"  # a value for a person to look at: there is no range for it, or not on this device
    SKIPPED = "SKIPPED"  # there was no time


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceReport:
    """Writes the results of one test to ``path``, each at once: a crash loses none of those before it."""

    path: Path
    name: str
    assumed: str  # the first line of the test's docstring
    meant_for: str = ""  # what ranges are for, where this device is another: then values are INFO

    def check_range(self, value: float, low: float, high: float, unit: str = "", part: str = "") -> None:
        """Compare a number with a range, both ends included."""
        where = f" on {self.meant_for}" if self.meant_for else ""
        expected = f" (expected {low:g} to {high:g}{where})"
        self.check(low <= value <= high, f"{value:.4g} {unit}".strip() + expected, part)

    def check(self, holds: bool, found: object, part: str = "") -> None:
        """Report whether something is so, and what was seen."""
        if self.meant_for:
            self.note(found, part)
        elif holds:
            self.add(ResultStatus.PASSED, found, part)
        else:
            self.add(ResultStatus.FAILED, f"{found}; assumed: {self.assumed}", part)

    def note(self, found: object, part: str = "") -> None:
        """Report what was seen, for a person to judge."""
        self.add(ResultStatus.INFO, found, part)

    def add(self, status: ResultStatus, found: object, part: str = "") -> None:
        """Write down a result; ``part`` is the part of the test that it is about."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{render_line(status, f'{self.name}, {part}' if part else self.name, found)}\n")

    def keep(self, file: str, content: object) -> None:
        """Keep what was seen for the bundle: text as it is, else as JSON."""
        text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
        write_atomic(self.path.parent / file, text)


def render_line(status: ResultStatus, name: str, found: object) -> str:
    """Render a result."""
    return f"{status:<{_LABEL_CHARS}} {name}: {' '.join(str(found).split())}"


def read_lines(path: Path) -> list[str]:
    """Read the results of a test; none if it did not get so far."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def has_status(lines: Iterable[str], status: ResultStatus) -> bool:
    """Whether a result has this status."""
    return any(line.startswith(status) for line in lines)


def count_results(lines: Sequence[str]) -> str:
    """Count the statuses in a line."""
    return ", ".join(f"{sum(line.startswith(status) for line in lines)} {status}" for status in ResultStatus)
