"""Shell completion: the code for a shell, and what is completed besides commands and options.

argcomplete asks this program at each press of Tab: nothing here imports torch or measures.
A project whose gate.yml cannot be read completes nothing, in silence.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping

from gate.errors import ExitCode, GateError
from gate.metrics import SPECS


def run_completion(options: Namespace) -> ExitCode:
    """Print the code that makes a shell complete this command."""
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - only this command needs it

    shell = "bash" if options.shell == "zsh" else options.shell  # one text is for both
    print(shellcode(["compile-gate"], shell=shell))
    return ExitCode.PASS


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks what could stand at the cursor, and end the process."""
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
    """Complete the ids, models and tags of the cases of the project around the current directory."""
    from gate.project.config import load_config  # noqa: PLC0415 - only at a press of Tab
    from gate.project.registry import load_cases  # noqa: PLC0415 - the same

    try:
        cases = load_cases(load_config(None))
    except GateError:
        return []
    before, comma, last = prefix.rpartition(",")
    known = {case.id for case in cases} | {f"tag:{tag}" for case in cases for tag in case.tags}
    return [f"{before}{comma}{name}" for name in sorted(known) if name.startswith(last)]


def complete_metrics(prefix: str, **_: object) -> list[str]:
    """Complete the names of metrics."""
    return [str(metric) for metric in SPECS if metric.startswith(prefix)]


_COMPLETERS: Mapping[str, Callable[..., list[str]]] = {
    "select": complete_cases,
    "case": complete_cases,
    "metric": complete_metrics,
}
