"""Sentences of a verdict's records, as in reports, and facts with given words."""

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.verdict import Verdict
from gate.report.words.comparisons import describe_comparison
from gate.report.words.facts import describe_cause, describe_measuring, write_note, write_notes
from gate.report.words.headline import write_opening
from gate.report.words.steps import write_steps

__all__ = [
    "describe_causes",
    "describe_comparison",
    "describe_measuring",
    "describe_steps",
    "make_facts",
    "make_raised",
    "make_warnings",
    "write_note",
    "write_notes",
    "write_opening",
]


def make_facts(code: Code, *texts: str) -> tuple[Fact, ...]:
    """Facts of one code whose every name is one of these texts."""
    names = ("author", "commit", "crowd", "expires", "location", "message", "reason")
    return tuple(
        Fact(
            code=code,
            numbers=dict.fromkeys(sorted(code.numbers), 1.0),
            cases=(text,),
            metrics=(Metric.COMPILED_LATENCY,),
            names=name_words(**dict.fromkeys(names, text)),
        )
        for text in texts
    )


def describe_causes(verdict: Verdict, *codes: Code) -> list[str]:
    """Describe the causes of these codes, or all."""
    return [describe_cause(cause.fact) for cause in verdict.causes if not codes or cause.fact.code in codes]


def make_raised(message: str) -> Fact:
    """The fact of an exception with this message."""
    return Fact(code=Code.RAISED, names=name_words(message=message))


def make_warnings(*texts: str) -> tuple[Fact, ...]:
    """Warnings of a trial with these reasons."""
    return tuple(
        Fact(code=Code.UNMEASURED, metrics=(Metric.FLOPS,), names=name_words(why=text)) for text in texts
    )


def describe_steps(verdict: Verdict) -> tuple[str, ...]:
    """The steps with their commands."""
    return tuple(f"{step.text} {step.command}".strip() for step in write_steps(verdict))
