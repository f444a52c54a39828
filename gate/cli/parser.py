"""The parser of the command line, made from the table of commands, and what a shell completes.

Imports nothing heavy: a shell asks this program at each press of Tab.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from gate.cli.commands import COMMANDS, GROUPS
from gate.cli.options import LOCK, Command
from gate.errors import ExitCode, GateError
from gate.files.invalid import find_nearest, quote_value, suggest_nearest
from gate.metrics import SPECS
from gate.report.clean import clean_message
from gate.version import __version__

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # argparse has no public name for what add_subparsers returns


_STOPPED = "stopped by Ctrl-C or SIGTERM"
# What each exit code means, whatever the command.
EXIT_CODES: Mapping[ExitCode, tuple[str, str]] = {
    ExitCode.PASS: ("PASS", "measured and compared, nothing regressed"),
    ExitCode.BUG: ("-", "a bug in compile-gate"),
    ExitCode.USAGE: ("-", "usage or configuration"),
    ExitCode.NOTHING_COMPARED: (
        "NOTHING_COMPARED",
        "nothing was judged: no baseline applies, or everything is quarantined",
    ),
    ExitCode.MACHINE: ("-", "the machine: no device, no compiler, held lock, full disk"),
    ExitCode.REGRESSION: ("REGRESSION", "at least one regression"),
    ExitCode.INCONCLUSIVE: ("INCONCLUSIVE", "something looks worse, or is too noisy to tell"),
    ExitCode.INCOMPLETE: ("INCOMPLETE", "a planned case crashed, hung or is missing, or the run was stopped"),
    ExitCode.INTERRUPTED: ("-", f"{_STOPPED}; what was measured is kept"),
}


# Any command can end with these.
COMMON_CODES = (ExitCode.BUG, ExitCode.USAGE, ExitCode.INTERRUPTED)


_PLAIN_WORDS = {
    "invalid int value:": "expected a whole number, got",
    "invalid float value:": "expected a number, got",
    "ignored explicit argument": "takes no value, got",
}
_PLAIN = re.compile("|".join(_PLAIN_WORDS))
_NEGATIVE = re.compile(r"-\.?[0-9]")  # begins a value such as -5%, and no option of ours
_VOLUME = (("-q", "--quiet"), ("-v", "--verbose"))
_DESCRIPTION = "A regression gate for torch.compile: speed, compile time, memory and drift."


class UsageParser(argparse.ArgumentParser):
    """Its errors are two lines. Options are not abbreviated: a new one would break callers."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type] # passed through
        self._negative_number_matcher = _NEGATIVE

    def error(self, message: str, fix: str = "") -> NoReturn:
        """Exits with 2."""
        problem = _PLAIN.sub(lambda match: _PLAIN_WORDS[match[0]], message.removeprefix("argument "))
        if problem.endswith("expected one argument"):
            fix = f"Give it a value; one that begins with a dash as {problem.partition(':')[0]}=VALUE."
        fix = fix or f"See `{self.prog} --help` for the options."
        self.exit(ExitCode.USAGE, f"{clean_message(f'{self.prog}: {problem}')}\n{fix}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse's
        """The parser of a command calls this for its own arguments, and so knows whose they are."""
        given = sys.argv[1:] if args is None else list(args)
        self._refuse_unknown(given)
        options, rest = super().parse_known_args(given, namespace)
        if rest:
            unknown = next((text for text in rest if text != "--"), rest[0])
            self.error(f"{unknown!r} is one argument too many")
        return options, rest

    def knows(self, name: str) -> bool:
        return name in self._option_string_actions

    def _refuse_unknown(self, given: Sequence[str]) -> None:
        """Before its value is reported as missing."""
        first = given[:1] if self._subparsers else ()
        short = (text for text in first if re.fullmatch("-[A-Za-z]", text))
        for name in (*_list_options(first or given), *short):
            if not self.knows(name):
                meant = self._suggest_option(name.removeprefix("--"))
                self.error(f"there is no option {name}", f"{meant}See `{self.prog} --help` for the options.")

    def _suggest_option(self, name: str) -> str:
        """A sentence; empty where nothing is like it."""
        positionals = [str(action.metavar) for action in self._get_positional_actions()]
        if name.upper() in positionals:
            return f"{name.upper()} is given by itself, without an option before it. "
        names = (option.removeprefix("--") for option in self._option_string_actions if option[:2] == "--")
        nearest = find_nearest(name, names)
        return f"Did you mean --{nearest}? " if nearest else ""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:  # noqa: ANN401 - as argparse's
        """A blank value is what ``--base "$BASE"`` gives where the variable is not set."""
        if action.nargs != argparse.PARSER and any(not text.strip() for text in arg_strings):
            name = "/".join(action.option_strings) or str(action.metavar)
            leave = "" if action.required else ", or leave it out"
            self.error(f"{name}: must not be empty (is a variable unset?)", f"Give {name} a value{leave}.")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            fix = suggest_nearest(str(value).lower(), choices)
            name = "/".join(action.option_strings) or str(action.metavar)
            self.error(f"{name}: expected one of {', '.join(choices)}, got {quote_value(value)}", fix)


def _list_options(given: Sequence[str]) -> Iterator[str]:
    """All that begin as a long option and are no sentence."""
    for text in itertools.takewhile(lambda text: text != "--", given):
        name = text.partition("=")[0]
        if name.startswith("--") and " " not in name:
            yield name


def place_arguments(given: Sequence[str]) -> list[str]:
    """``help check`` becomes ``check --help``."""
    if given[:1] == ["help"]:
        return [*given[1:], "--help"]
    leading = list(itertools.takewhile(lambda text: any(text in names for names in _VOLUME), given))
    rest = list(given[len(leading) :])
    if not rest:
        return []
    if rest[0].startswith("-"):
        return list(given)
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *leading, *rest[end:]]


def make_parser() -> argparse.ArgumentParser:
    parser = UsageParser(
        prog="compile-gate",
        usage="%(prog)s [-h] [-V] [-q | -v] COMMAND ...\n       %(prog)s help COMMAND",
        description=f"{_DESCRIPTION}\n\n{_render_groups()}",
        epilog=f"exit codes:\n{render_exit_codes()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(show_help=parser.print_help)
    commands = parser.add_subparsers(
        dest="command", prog=parser.prog, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for command in COMMANDS:
        _add_command(commands, command)
    return parser


def _render_groups() -> str:
    width = max(len(command.name) for command in COMMANDS)
    return "\n\n".join(
        "\n".join([f"{title}:", *(f"  {command.name:<{width}}  {command.summary}" for command in commands)])
        for title, commands in GROUPS.items()
    )


def _add_command(commands: _SubParsersAction[UsageParser], command: Command) -> None:
    child = commands.add_parser(
        command.name.split()[-1],
        help=command.summary,
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=_render_epilog(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if command.actions:
        child.set_defaults(show_help=child.print_help)
        actions = child.add_subparsers(dest="action", metavar="ACTION")
        for action in command.actions:
            _add_command(actions, action)
        return
    for add in command.arguments:
        add(child)
    for names in _VOLUME:  # taken by each command, and shown where it prints less or more
        if not child.knows(names[0]):
            child.add_argument(*names, action="store_true", help=argparse.SUPPRESS)
    child.set_defaults(run=command.run)


def render_exit_codes() -> str:
    width = max(len(name) for name, _ in EXIT_CODES.values())
    return "".join(
        f"  {code:<3} {name:<{width}}   {meaning}\n" for code, (name, meaning) in EXIT_CODES.items()
    )


def list_commands(commands: Iterable[Command] = COMMANDS) -> tuple[Command, ...]:
    return tuple(action for command in commands for action in command.actions or (command,))


def _render_epilog(command: Command) -> str:
    example = f"example:\n  {command.example}\n"
    if command.actions:
        return example
    codes = sorted({*command.codes, *COMMON_CODES})
    meanings = {code: _describe_code(code) for code in codes}
    if LOCK not in command.arguments:  # it measures nothing
        meanings[ExitCode.INTERRUPTED] = _STOPPED
    lines = [f"  0   {command.success}", *(f"  {code:<3} {meaning}" for code, meaning in meanings.items())]
    return f"{example}\nexit codes:\n" + "".join(f"{line}\n" for line in lines)


def _describe_code(code: ExitCode) -> str:
    name, meaning = EXIT_CODES[code]
    return meaning if name == "-" else f"{name}: {meaning}"


def run_completion(options: Namespace) -> ExitCode:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - only this command needs it

    shell = "bash" if options.shell == "zsh" else options.shell  # one text is for both
    print(shellcode(["compile-gate"], shell=shell))
    return ExitCode.PASS


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Ends the process."""
    import argcomplete  # noqa: PLC0415 - only at a press of Tab

    for action in _list_actions(parser):
        if completer := _COMPLETERS.get(action.dest):
            action.completer = completer  # type: ignore[attr-defined] # as argcomplete looks for it
    argcomplete.autocomplete(parser)


def _list_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for child in action.choices.values():
                yield from _list_actions(child)


def complete_cases(prefix: str, **_: object) -> list[str]:
    from gate.project.config import load_config  # noqa: PLC0415 - only at a press of Tab
    from gate.project.registry import load_cases  # noqa: PLC0415 - the same

    try:
        cases = load_cases(load_config(None))
    except GateError:
        return []
    before, comma, last = prefix.rpartition(",")
    names = {case.id for case in cases} | {f"tag:{tag}" for case in cases for tag in case.tags}
    return [f"{before}{comma}{name}" for name in sorted(names) if name.startswith(last)]


def complete_metrics(prefix: str, **_: object) -> list[str]:
    return [str(metric) for metric in SPECS if metric.startswith(prefix)]


_COMPLETERS: Mapping[str, Callable[..., list[str]]] = {
    "select": complete_cases,
    "case": complete_cases,
    "metric": complete_metrics,
}
