"""Text from elsewhere (messages, log tails, case ids) made safe to print in any format; columns; streams.

An exception can hold terminal escapes, and bidirectional controls make a line read backwards.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TextIO

from gate.units import MICRO

if TYPE_CHECKING:
    from rich.console import Console

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
_UNIT = re.compile(rf"(?<=\d) (?=(?:%|[{MICRO}m]?s|[KMG]iB|UTC|\d\d:\d\d UTC)(?!\w))")
MAX_SENTENCE = 400  # characters: a sentence, not a traceback
ABSENT = "-"  # in a cell without a value
WIDTH = 100  # columns without a terminal: what CI logs show without a scroll bar
MAX_WIDTH = 160  # beyond it the eye loses the line
PLAINLY = "compile-gate"  # error handler of streams whose encoding lacks a character


def clean_message(text: str) -> str:
    r"""An error as one printable line; a long one is cut in its middle.

    A byte of a file's name that is not UTF-8 is shown as ``\xff``.
    """
    shown = _FOREIGN_BYTE.sub(
        lambda match: f"\\x{match[0].encode('ascii', 'backslashreplace')[-2:].decode()}", text
    )
    line = " ".join(_remove_unprintable(shown).splitlines())
    line = re.sub(rf"\S{{{_MAX_WORD + 1},}}", lambda match: _shorten(match[0], _MAX_WORD), line)
    return _shorten(line, _MAX_MESSAGE)


def _shorten(text: str, limit: int) -> str:
    end = limit // 4
    return text if len(text) <= limit else f"{text[: limit - end - 3]}...{text[-end:]}"


def clean_line(text: str, limit: int = 0) -> str:
    """One printable line of at most ``limit`` characters (0: any length)."""
    line = " ".join(_remove_unprintable(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 3].rstrip() + "..."


def bind_units(text: str) -> str:
    """Let no line end between a number and its unit, or within a time."""
    return _UNIT.sub("\u00a0", text)


def clean_lines(text: str, last: int = 0) -> tuple[str, ...]:
    """The ``last`` non-empty lines (0: all)."""
    lines = _remove_unprintable(text.replace("\r\n", "\n")).expandtabs(4).split("\n")
    return tuple(line.rstrip() for line in lines if line.strip())[-last:]


def _remove_unprintable(text: str) -> str:
    return _UNPRINTABLE.sub("", _ANSI.sub("", text))


def read_style(stream: TextIO) -> tuple[int, bool]:
    """The width of a stream, and whether it shows colour; NO_COLOR, FORCE_COLOR, TERM and COLUMNS count."""
    console = make_console(stream)
    return min(console.width, MAX_WIDTH), console.color_system is not None and not console.no_color


def make_console(stream: TextIO) -> Console:
    """It reads no markup, and without a terminal has as many columns as COLUMNS, or 100."""
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that only printing needs

    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = WIDTH
    return console


def count_columns(text: str) -> int:
    """A Chinese or Japanese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only printing needs rich

    return cell_len(text)


def align_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """The columns with the numbers ``right`` are set to the right."""
    widths = [max(map(count_columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            _pad(cell, width, is_right=number in right)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _pad(cell: str, width: int, *, is_right: bool) -> str:
    space = " " * (width - count_columns(cell))
    return f"{space}{cell}" if is_right else f"{cell}{space}"


def write_text(stream: TextIO, text: str) -> None:
    """A character that the stream's encoding lacks is written by :data:`PLAINLY`."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, PLAINLY).decode(encoding))
    stream.flush()


def _write_plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """\N{MICRO SIGN} becomes u, as in ``us``, and all else an escape; a byte of a name that byte's."""
    if isinstance(error, UnicodeEncodeError):
        char = error.object[error.start]
        if char == MICRO:
            return "u", error.start + 1
        if "\udc80" <= char <= "\udcff":
            return f"\\x{ord(char) & 0xFF:02x}", error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(PLAINLY, _write_plainly)
