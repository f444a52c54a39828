"""One row of the table of commands, and how it lists its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING

from gate.errors import ExitCode

if TYPE_CHECKING:
    from argparse import _ActionsContainer  # argparse has no public name for what takes arguments

Argument = Callable[["_ActionsContainer"], object]  # adds itself to a parser


def argument(*names: str, **settings: object) -> Argument:
    """Make an argument of what argparse's ``add_argument`` takes."""
    return methodcaller("add_argument", *names, **settings)


def either(*choices: Argument) -> Argument:
    """Make arguments of which one can be given at the most."""

    def add(parser: _ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for choice in choices:
            choice(group)

    return add


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command: how it is called, what it says of itself and the function that does it.

    ``success`` is what exit 0 means, ``codes`` are the others that it can end with besides
    :data:`gate.cli.exit_codes.COMMON_CODES`. A command with ``actions`` is their parent only.
    """

    name: str  # with the parent's before it: "baseline show"
    summary: str
    example: str
    success: str = ""
    codes: tuple[ExitCode, ...] = ()
    run: str = ""  # "module:function", imported when the command is chosen
    arguments: tuple[Argument, ...] = ()
    actions: tuple[Command, ...] = ()
    holds_token: bool = False  # what it prints is made harmless: see gate.github.log
