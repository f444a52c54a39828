"""Which commands GitHub's runner finds in what a step prints, by the rules of its own source.

``src/Runner.Common/ActionCommand.cs`` and ``src/Runner.Worker/ActionCommandManager.cs`` of actions/runner:
``::name properties::data`` at the start of a line, else ``##[name properties]data`` anywhere in it, for
names that are registered, whatever their case. Its texts are compared by culture, which overlooks
characters that are not shown; here that is taken to be everything but printable ASCII and white space.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

STOP = "stop-commands"
REGISTERED = frozenset(
    (
        *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice"),
        *("remove-matcher", "save-state", "set-env", "set-output", "warning", STOP),
    )
)
_OVERLOOKED = re.compile(r"[^\x20-\x7e\s]")
_V2 = re.compile(r"\s*::([^ ]*?)( .*?)?::(.*)", re.DOTALL)
_V1 = re.compile(r"##\[([^ \]]*)( [^\]]*)?\](.*)", re.DOTALL)


@dataclass(frozen=True)
class Found:
    """One command that the runner executes."""

    name: str
    properties: str
    data: str


def list_commands(log: str) -> list[Found]:
    """The commands that the runner executes; between stop and resume it executes none."""
    return list(_read_commands(log))


def _read_commands(log: str) -> Iterator[Found]:
    token = ""
    for line in re.split(r"\r\n|\r|\n", log):
        command = _parse(line, {*REGISTERED, token} if token else REGISTERED)
        if command is None:
            continue
        if token:
            token = "" if command.name == token else token
            continue
        if command.name == STOP:
            token = command.data.lower()
        yield command


def _parse(line: str, names: frozenset[str] | set[str]) -> Found | None:
    text = _OVERLOOKED.sub("", line)
    for match in (_V2.match(text), _V1.search(text)):
        if match is not None and match[1].lower() in names:
            return Found(match[1].lower(), (match[2] or "").strip(), match[3])
    return None
