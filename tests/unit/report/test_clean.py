"""Text from elsewhere is made printable."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gate.report.clean import clean_line, clean_lines


def test_escapes_and_controls_are_removed() -> None:
    """Colours, cursor movements, titles and bidirectional overrides are removed."""
    text = "\x1b[31mred\x1b[0m\x1b]0;title\x07 a\u202eb\x00\ud800\x9bc"

    assert clean_line(text) == "red abc"


def test_a_line_is_one_line() -> None:
    """Line breaks of any kind become spaces."""
    assert clean_line(" a\r\nb\n\tc ") == "a b c"


def test_a_limit_is_kept_and_shown() -> None:
    """A cut line ends in dots and is within its limit."""
    assert clean_line("abcdefghij", 7) == "abcd..."


def test_the_last_lines_are_kept() -> None:
    """Of a log the last lines are kept, without empty ones."""
    assert clean_lines("a\n\nb\n\n\tc\n", 2) == ("b", "    c")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_unprintable_is_left(text: str) -> None:
    """Any text is left without controls, surrogates and bidirectional controls."""
    bad = {"Cc", "Cs", "Zl", "Zp"}

    assert not [
        character
        for character in clean_line(text)
        if unicodedata.category(character) in bad or character in "\u202e\u2066"
    ]
