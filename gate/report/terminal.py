"""What a stream can show, columns of text, and writing without ever failing on a character."""

from __future__ import annotations

import codecs
import os
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TextIO

from gate.units import MICRO

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100  # columns where no terminal says otherwise: what CI logs show without a scroll bar
MAX_WIDTH = 160  # beyond it the eye loses the line
PLAINLY = "compile-gate"  # error handler of streams whose encoding lacks a character


def find_style(stream: TextIO) -> tuple[int, bool]:
    """Find the width of a stream, and whether it shows colour.

    NO_COLOR, FORCE_COLOR, TERM and COLUMNS have their usual say.
    """
    console = make_console(stream)
    return min(console.width, MAX_WIDTH), console.color_system is not None and not console.no_color


def make_console(stream: TextIO) -> Console:
    """Make a rich console that reads no markup.

    Where the stream is no terminal it has as many columns as COLUMNS says, or 100.
    """
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that only printing needs

    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = WIDTH
    return console


def count_columns(text: str) -> int:
    """Count the columns that a text takes: a Chinese or Japanese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only printing needs rich

    return cell_len(text)


def lay_out(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return a line for each row, with its cells in columns; those of the numbers ``right`` end alike."""
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
    """Write ``text``; a character that the stream's encoding lacks is written by :data:`PLAINLY`."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, PLAINLY).decode(encoding))
    stream.flush()


def _write_plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write \N{MICRO SIGN} as u, as in ``us``, and all else as an escape; a byte of a name as that byte's."""
    if isinstance(error, UnicodeEncodeError):
        char = error.object[error.start]
        if char == MICRO:
            return "u", error.start + 1
        if "\udc80" <= char <= "\udcff":
            return f"\\x{ord(char) & 0xFF:02x}", error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(PLAINLY, _write_plainly)
