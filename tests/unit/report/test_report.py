"""The table of formats."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import gate
from gate.cli.parser import list_commands
from gate.errors import UsageError
from gate.files.codec import VERDICT
from gate.records.codes import Code
from gate.records.verdict import Verdict
from gate.report import FORMATS, render
from tests.words import make_facts

ROOT = Path(__file__).resolve().parents[3]
FILES = tuple(spec.file for spec in FORMATS.values() if spec.file)


def test_every_format_renders_every_situation(situation: tuple[str, Verdict]) -> None:
    """Each format renders each situation and ends in one line feed."""
    for name in FORMATS:
        report = render(situation[1], name)

        assert report.endswith("\n")
        assert not report.endswith("\n\n")


def test_rendering_is_pure(verdicts: Mapping[str, Verdict]) -> None:
    for name in FORMATS:
        assert render(verdicts["regression"], name) == render(verdicts["regression"], name)


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_that_went_wrong_looks_green(situation: tuple[str, Verdict], name: str) -> None:
    """Every format has the outcome and each failed case."""
    _, verdict = situation
    report = render(verdict, name)

    assert verdict.outcome.value in report
    assert [failure.case_id for failure in verdict.failures if failure.case_id not in report] == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_failure_without_a_comparison_is_shown(verdicts: Mapping[str, Verdict], name: str) -> None:
    """A failed trial of a judged case is shown."""
    died = verdicts["incomplete"].failures[:1]

    assert "SIGSEGV" in render(replace(verdicts["regression"], failures=died), name)


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_passes_a_control_character_on(verdicts: Mapping[str, Verdict], name: str) -> None:
    """No format has terminal escapes or bidirectional controls."""
    first, *others = verdicts["regression"].comparisons
    text = "\x1b[31mred\u202edlo"
    hostile = replace(
        verdicts["regression"],
        headline=make_facts(Code.REGRESSED_CASE, text),
        notes=make_facts(Code.RULES_OF, text),
        next_steps=make_facts(Code.SETTLE_QUIETLY, text),
        comparisons=(replace(first, case_id=text, remarks=make_facts(Code.ACCEPTED_BY, text)), *others),
    )

    report = render(hostile, name)

    assert "red" in report
    assert [mark for mark in "\x1b\u202e" if mark in report] == []


@pytest.mark.parametrize("page", ["README.md", "docs/dev/architecture.md"])
def test_pages_name_every_file_that_is_left(page: str) -> None:
    """The documents name each report file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [file for file in FILES if file not in text] == []


def test_help_names_every_file_that_is_left() -> None:
    """The help of `compare --out` names each report file."""
    (compare,) = (command for command in list_commands() if command.name == "compare")
    arguments = str(compare.arguments)
    assert [file for file in FILES if file not in arguments] == []


def test_the_library_names_every_format() -> None:
    """The docstring of `gate.render` names each format."""
    assert [name for name in FORMATS if f"``{name}``" not in str(gate.render.__doc__)] == []


def test_json_is_the_verdict(situation: tuple[str, Verdict]) -> None:
    """The JSON report is read back as the same verdict."""
    _, verdict = situation

    assert verdict == VERDICT.decode(render(verdict, "json").encode(), "report")


def test_an_unknown_format_is_refused(verdicts: Mapping[str, Verdict]) -> None:
    """The error names the format and all formats."""
    with pytest.raises(UsageError) as caught:
        render(verdicts["pass"], "pdf")

    assert str(caught.value) == "no report format 'pdf'\nChoose one of text, markdown, html, json, junit."


def test_importing_is_light() -> None:
    """`import gate.report` loads neither rich nor torch nor the lab."""
    code = "import gate.report, sys; print([n for n in ('rich', 'torch', 'gate.lab') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
