"""Pages have short sentences in common words: at most 3 in 100 have more than 30 words."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 30
MOST_LONG = 0.03
# What the gate writes, raw results, and a table that a test plays.
OTHERS = ("tests/golden/*", "benchmarks/*", "tests/unit/cli/exit_codes.md")
PAGES = subprocess.run(
    ["git", "ls-files", "*.md", *(f":!{path}" for path in OTHERS)],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
_LEFT_OUT = re.compile(r"^( *)```.*?^\1```|<!--.*?-->|^#.*?$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n?\||<br>")
# Old or private words for what others call show, report, compare with, in pairs, new, no one.
AVOIDED = re.compile(
    r"\b(?:anew|besides?|convict\w*|(?:held|hold) against|in force|is none|nobody|of one's own|reckon\w*"
    r"|strangers?|tells|tidying|told|what of|whoever|word for it)\b",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z0-9*(\"])")


def list_sentences(text: str) -> Iterator[str]:
    """Sentences of a page's paragraphs, items and cells; code is one word, a link its text."""
    text = _LINK.sub(r"\1", _CODE.sub("CODE", _LEFT_OUT.sub("", text)))
    for block in _BREAK.split(text):
        yield from (sentence for sentence in _END.split(" ".join(block.split())) if len(sentence.split()) > 2)


def count_words(sentence: str) -> int:
    return len(re.findall(r"\S*\w\S*", sentence))


def test_sentences_are_found_and_counted() -> None:
    """Code blocks, headings and targets of links do not count."""
    page = "# A b c\n\nOne two `x y`. `x` is a [link](x y)!\n\n```sh\na b c d\n```\n- Eight nine ten\n"
    counts = [(sentence, count_words(sentence)) for sentence in list_sentences(page)]
    assert counts == [("One two CODE.", 3), ("CODE is a link!", 4), ("- Eight nine ten", 3)]


@pytest.mark.parametrize("name", PAGES)
def test_few_sentences_are_long(name: str) -> None:
    sentences = list(list_sentences((ROOT / name).read_text(encoding="utf-8")))
    long = [sentence for sentence in sentences if count_words(sentence) > MOST_WORDS]
    assert len(long) <= MOST_LONG * len(sentences), "\n".join(long)


def test_avoided_words_are_found_outside_code() -> None:
    page = "Nobody is told.\n\n```sh\ntold\n```\n`told` tell\n"
    assert AVOIDED.findall(_CODE.sub("", _LEFT_OUT.sub("", page))) == ["Nobody", "told"]


@pytest.mark.parametrize("name", PAGES)
def test_words_are_common(name: str) -> None:
    """No page has a word to avoid."""
    text = _CODE.sub("", _LEFT_OUT.sub("", (ROOT / name).read_text(encoding="utf-8")))
    assert AVOIDED.findall(text) == []
