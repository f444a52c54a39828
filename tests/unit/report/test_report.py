"""The table of formats."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from gate.errors import UsageError
from gate.files.codec import VERDICT, decode_file
from gate.records import Verdict
from gate.report import FORMATS, render


def test_every_format_renders_every_situation(situation: tuple[str, Verdict]) -> None:
    """No verdict is too odd for a format, and each report ends in one line feed."""
    for name in FORMATS:
        report = render(situation[1], name)

        assert report.endswith("\n")
        assert not report.endswith("\n\n")


def test_rendering_is_pure(verdicts: Mapping[str, Verdict]) -> None:
    """The same verdict gives the same text."""
    for name in FORMATS:
        assert render(verdicts["regression"], name) == render(verdicts["regression"], name)


def test_json_is_the_verdict(situation: tuple[str, Verdict]) -> None:
    """The JSON report reads back as the verdict it was made of."""
    _, verdict = situation

    assert verdict == decode_file(VERDICT, render(verdict, "json").encode(), "report")


def test_an_unknown_format_is_refused(verdicts: Mapping[str, Verdict]) -> None:
    """The error names the format and the ones there are."""
    with pytest.raises(UsageError) as caught:
        render(verdicts["pass"], "pdf")

    assert str(caught.value) == "no report format 'pdf'\nChoose one of text, markdown, html, json, junit."


def test_importing_is_light() -> None:
    """`import gate.report` loads neither rich nor torch nor the lab."""
    code = "import gate.report, sys; print([n for n in ('rich', 'torch', 'gate.lab') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
