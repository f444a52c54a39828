"""The guide's snippets are the example project's files, which work."""

import re
from pathlib import Path

import pytest

from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.project.selection import select_cases

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "custom-model"
GUIDE = ROOT / "docs" / "adding-a-model.md"
SNIPPETS = re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)


def drop_blank_lines(text: str) -> str:
    """Drop blank lines, which a snippet may leave out."""
    return "\n".join(line for line in text.splitlines() if line.strip())


def test_guide_shows_each_kind_of_file() -> None:
    """The guide quotes a factory, the configuration and a test."""
    assert {name for name, _ in SNIPPETS} == {"mixer/bench.py", "gate.yml", "tests/perf/test_smoothing.py"}


@pytest.mark.parametrize(("name", "snippet"), SNIPPETS)
def test_snippet_is_in_the_example(name: str, snippet: str) -> None:
    """What the guide quotes is in the file that it names, word for word."""
    assert drop_blank_lines(snippet) in drop_blank_lines((EXAMPLE / name).read_text())


def test_example_lists_its_own_cases_only() -> None:
    """The example measures its model and its test, and none of the reference models."""
    cases = load_cases(load_config(EXAMPLE / "gate.yml"))
    smoke = [case.id for case in select_cases(cases, "tag:smoke")]
    assert smoke == ["mixer/inference-float32-smoke-default", "smoothing/test"]
    assert {case.model for case in cases} == {"mixer", "smoothing"}
