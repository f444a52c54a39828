"""What a stream can show."""

import io

import pytest

from gate.report.clean import MAX_WIDTH, WIDTH, align_columns, read_style, write_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_file_gets_a_fixed_width_and_no_colour() -> None:
    assert (WIDTH, False) == read_style(io.StringIO())


def test_columns_are_believed_for_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS sets a file's width if it is a number."""
    monkeypatch.setenv("COLUMNS", "140")
    assert read_style(io.StringIO())[0] == 140

    monkeypatch.setenv("COLUMNS", "wide")
    assert read_style(io.StringIO())[0] == WIDTH


def test_a_terminal_gets_its_width_and_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal's width is bounded."""
    monkeypatch.setenv("COLUMNS", "120")
    assert (120, True) == read_style(Terminal())

    monkeypatch.setenv("COLUMNS", "400")
    assert read_style(Terminal())[0] == MAX_WIDTH


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR applies to a terminal too."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert not read_style(Terminal())[1]


def test_what_cannot_be_encoded_is_escaped() -> None:
    """An arrow on an ASCII stream is an escape sequence."""
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    write_text(stream, "a \u2192 b\n")

    assert buffer.getvalue() == b"a \\u2192 b\n"


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", b"20 us"), ("latin-1", b"20 \xb5s")])
def test_microseconds_are_written_as_the_stream_can(encoding: str, expected: bytes) -> None:
    """Without a micro sign the unit is "us"."""
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding)
    write_text(stream, "20 \N{MICRO SIGN}s")

    assert buffer.getvalue() == expected


def test_columns_are_believed_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS sets a log's width."""
    monkeypatch.setenv("COLUMNS", "132")

    assert read_style(io.StringIO()) == (132, False)


def test_columns_align_where_a_character_takes_two() -> None:
    """A Chinese case id takes two columns a character."""
    assert align_columns([["\u6a21\u578b/x", "1.00 ms"], ["bert/x", "15.8 ms"]], {1}) == [
        "\u6a21\u578b/x  1.00 ms",
        "bert/x  15.8 ms",
    ]
