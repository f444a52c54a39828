"""What of a verdict a job with a token accepts: nothing that could be a sentence."""

import re

import pytest

from gate.records.codes import Code
from gate.records.facts import CAUSE_CODES, Fact, name_words
from gate.records.shown import PLACE, VERSION, Wordless

LINE = "nets/model.py:12"
CAUSE = Wordless(codes=CAUSE_CODES)


@pytest.mark.parametrize(
    ("fact", "holds"),
    [
        (Fact(code=Code.GRAPH_BREAK), True),
        (Fact(code=Code.GRAPH_BREAK, names=name_words(location=LINE)), True),
        (Fact(code=Code.FIRST_BAD, numbers={"steps": 3.0}, names=name_words(commit="a" * 40)), True),
        (Fact(code=Code.GRAPH_BREAK, names={"location": (LINE, LINE)}), False),
        (Fact(code=Code.GRAPH_BREAK, names={"location": ()}), False),
        (Fact(code=Code.GRAPH_BREAK, names=name_words(location="run me")), False),
        (Fact(code=Code.GRAPH_BREAK, names=name_words(location=f"{LINE} run me")), False),
        (Fact(code=Code.GRAPH_BREAK, names=name_words(reason=LINE)), False),
        (Fact(code=Code.GRAPH_BREAK, names=name_words(location=LINE, reason=LINE)), False),
        (Fact(code=Code.GRAPH_BREAK, cases=("bert/x",)), False),
        (Fact(code=Code.FIRST_BAD), False),
        (Fact(code=Code.NO_PAIR), False),
    ],
)
def test_a_fact_without_words_holds_only_checked_names(fact: Fact, *, holds: bool) -> None:
    """One word of each name, of its pattern; no case, for its row has it; a code and numbers that fit."""
    assert CAUSE.holds(fact) is holds


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (
            PLACE,
            ["a.py:1", "a/" * 9 + "a.py:123456", f"{'a' * 60}/{'b' * 60}.py:1"],
            ["a/" * 10 + "a.py:1", "a.py:1234567", "a.py:", f"{'a' * 61}.py:1", "../a.py:1", "a b.py:1"],
        ),
        (
            VERSION,
            ["", "2.13.0", "2.13.0rc1", "2.13.0.dev20260101+cu128", "1.2.3.4", "2.9.1.post1+rocm6.3.1"],
            ["2", "1.2.3.4.5", "2.13.0+mine", "2.13.0 now", "123456.0"],
        ),
    ],
    ids=["place", "version"],
)
def test_what_is_no_line_or_version_is_refused(pattern: str, texts: list[str], others: list[str]) -> None:
    """Neither is long enough, or free enough, for words of whoever measured."""
    assert [text for text in (*texts, *others) if re.fullmatch(pattern, text)] == texts
