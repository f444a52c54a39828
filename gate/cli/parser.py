"""The parser of the command line, made from the table of commands; imports nothing heavy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gate import __version__
from gate.cli.commands import COMMANDS, COMMON_CODES, EXIT_CODES, Command
from gate.errors import ExitCode

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # argparse has no public name for what add_subparsers returns


class UsageParser(argparse.ArgumentParser):
    """An argparse parser whose errors are two lines like every other error of the tool.

    Options are not abbreviated: a new one would break whoever relies on that.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type] # passed through

    def error(self, message: str) -> None:  # type: ignore[override] # exits, as the base class does
        """Print what is wrong and where help is, then exit 2."""
        self.exit(ExitCode.USAGE, f"{self.prog}: {message}\nSee `{self.prog} --help` for the options.\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = UsageParser(
        prog="compile-gate",
        description="A regression gate for torch.compile: speed, compile time, memory and drift.",
        epilog=f"exit codes:\n{render_exit_codes()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=UsageParser
    )
    for command in COMMANDS:
        _add_command(commands, command)
    return parser


def _add_command(commands: _SubParsersAction[UsageParser], command: Command) -> None:
    child = commands.add_parser(
        command.name.split()[-1],
        help=command.summary,
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=_render_epilog(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if command.actions:
        actions = child.add_subparsers(dest="action", required=True, metavar="ACTION")
        for action in command.actions:
            _add_command(actions, action)
    elif command.add_arguments:
        command.add_arguments(child)
        child.set_defaults(run=command.run)


def render_exit_codes() -> str:
    """Render the table of exit codes."""
    width = max(len(name) for name, _ in EXIT_CODES.values())
    return "".join(
        f"  {code:<3} {name:<{width}}   {meaning}\n" for code, (name, meaning) in EXIT_CODES.items()
    )


def list_commands() -> tuple[Command, ...]:
    """List what can be run: a parent's actions in its place."""
    return tuple(one for command in COMMANDS for one in command.actions or (command,))


def _render_epilog(command: Command) -> str:
    example = f"example:\n  {command.example}\n"
    if command.actions:
        return example
    lines = [f"  0   {command.success}"]
    lines += [f"  {code:<3} {_describe_code(code)}" for code in command.codes]
    common = ", ".join(f"{int(code)} {EXIT_CODES[code][1].partition(';')[0]}" for code in COMMON_CODES)
    return f"{example}\nexit codes:\n" + "\n".join(lines) + f"\n  as always: {common}\n"


def _describe_code(code: ExitCode) -> str:
    name, meaning = EXIT_CODES[code]
    return meaning if name == "-" else f"{name}: {meaning}"
