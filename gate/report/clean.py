"""Text from elsewhere (messages, log tails, case ids) made safe to print in any format.

A model's exception can hold terminal escapes, and bidirectional controls can make a line read
backwards; neither belongs in a report, a terminal or an XML file.
"""

from __future__ import annotations

import re

# ANSI sequences whole, so that no "[31m" is left behind; then controls, bidirectional overrides,
# surrogates and the two non-characters that XML refuses. Newline and tab are white space.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)

# What Python puts for a byte of a name that is not UTF-8, as such or as repr() spells it.
_FOREIGN_BYTE = re.compile(r"[\udc80-\udcff]|\\udc[89a-f][0-9a-f]")
_MAX_MESSAGE = 2000  # characters of an error's line: a list of twenty cases, or of all commands
_MAX_WORD = 400  # of one value in it: a path, a selection; more is not read


def clean_message(text: str) -> str:
    r"""Return what an error says as one printable line; what is too long to be read is cut in its middle.

    A byte of a file's name that is not UTF-8 is shown as ``\xff``.
    """
    shown = _FOREIGN_BYTE.sub(_show_byte, text)
    line = " ".join(_remove_unprintable(shown).splitlines())
    line = re.sub(rf"\S{{{_MAX_WORD + 1},}}", lambda found: _shorten(found[0], _MAX_WORD), line)
    return _shorten(line, _MAX_MESSAGE)


def _show_byte(found: re.Match[str]) -> str:
    return f"\\x{found[0].encode('ascii', 'backslashreplace')[-2:].decode()}"


def _shorten(text: str, limit: int) -> str:
    end = limit // 4
    return text if len(text) <= limit else f"{text[: limit - end - 3]}...{text[-end:]}"


def clean_line(text: str, limit: int = 0) -> str:
    """Return ``text`` as one printable line, at most ``limit`` characters long (0: any length)."""
    line = " ".join(_remove_unprintable(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 3].rstrip() + "..."


def clean_lines(text: str, last: int = 0) -> tuple[str, ...]:
    """Return the ``last`` non-empty lines of ``text`` (0: all), printable, tabs expanded."""
    lines = _remove_unprintable(text.replace("\r\n", "\n")).expandtabs(4).split("\n")
    return tuple(line.rstrip() for line in lines if line.strip())[-last:]


def _remove_unprintable(text: str) -> str:
    return _UNPRINTABLE.sub("", _ANSI.sub("", text))
