"""What a verdict's records say, in the words that a report has for them."""

from __future__ import annotations

from gate.records import Code, Fact, Verdict, name_words
from gate.report.words.comparisons import describe_comparison as tell_row
from gate.report.words.headline import write_headline as tell_headline
from gate.report.words.measuring import describe_measuring
from gate.report.words.notes import write_note as tell_note
from gate.report.words.notes import write_notes as tell_notes
from gate.report.words.steps import write_steps

__all__ = [
    "describe_measuring",
    "say",
    "tell_headline",
    "tell_note",
    "tell_notes",
    "tell_row",
    "tell_steps",
    "warn",
]


def say(*texts: str) -> tuple[Fact, ...]:
    """Facts that are nothing but these words."""
    return tuple(Fact(code=Code.TEXT, names=name_words(text=text)) for text in texts)


def warn(*texts: str) -> tuple[Fact, ...]:
    """Warnings of a trial that differ in these words."""
    return tuple(Fact(code=Code.WORK_UNCOUNTED, names=name_words(why=text)) for text in texts)


def tell_steps(verdict: Verdict) -> tuple[str, ...]:
    """The steps with their commands."""
    return tuple(f"{step.text} {step.command}".strip() for step in write_steps(verdict))
