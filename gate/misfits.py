"""Values that do not fit their type: each with its place, what is wrong and the fix."""

from __future__ import annotations

from dataclasses import dataclass, field

from gate.hostile import format_value

MAX_MISFITS = 20  # collected of one value: more fill a screen, and fixing these may fix the others


@dataclass(kw_only=True, slots=True)
class Misfit:
    """One value that does not fit; containers add where it was as it bubbles up."""

    problem: str
    fix: str
    says_little: bool = False  # the fix repeats the problem: an example of the key says more
    path: list[str] = field(default_factory=list)  # innermost first

    def render_path(self) -> str:
        """Render where it was, outermost first: ``.trials[3].index``."""
        return "".join(reversed(self.path))


class MisfitError(Exception):
    """Values that do not fit, in the order in which they were met."""

    def __init__(self, misfits: list[Misfit]) -> None:
        super().__init__(misfits[0].problem)
        self.misfits = misfits


def refuse(problem: str, fix: str) -> MisfitError:
    """Make the error of one value."""
    return MisfitError([Misfit(problem=problem, fix=fix)])


def expect(what: str, value: object) -> MisfitError:
    """Make the error of a value that is not ``what`` was expected."""
    problem = f"expected {what}, got {format_value(value)}"
    return MisfitError([Misfit(problem=problem, fix=f"Write {what} there.", says_little=True)])


class Collector:
    """Goes on after an item that does not fit, to the next one."""

    def __init__(self) -> None:
        self.misfits: list[Misfit] = []

    def add(self, error: MisfitError, step: str) -> None:
        """Note what was wrong with the item at ``step``; raises once there are enough."""
        for misfit in error.misfits:
            misfit.path.append(step)
        self.misfits += error.misfits
        if len(self.misfits) >= MAX_MISFITS:
            self.close()

    def close(self) -> None:
        """Raise what was collected, if anything was."""
        if self.misfits:
            raise MisfitError(self.misfits)
