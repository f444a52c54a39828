"""Recorded runs in every format give the stored texts.

To rewrite what is expected after a wanted change: ``GATE_WRITE_GOLDEN=1 pytest tests/recorded``; the
difference is printed, to be read.
"""

import difflib
import functools
import json
import lzma
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.cli.parser import make_parser
from gate.files.codec import SHOWN, VERDICT
from gate.publish.shown import make_shown
from gate.publish.submitted import MAX_MEMBER_BYTES
from gate.records.verdict import Verdict
from gate.report.case_blocks import render_command
from gate.report.words.steps import write_steps
from tests.recorded.everywhere import render_all
from tests.recorded.runs import DIRECTORY, judge
from tests.recorded.situations import list_situations

SAID = DIRECTORY / "said.json.xz"  # by situation and place
SITUATIONS = list_situations()
WRITES = os.environ.get("GATE_WRITE_GOLDEN") == "1"


def load_texts(path: Path) -> dict[str, Any]:
    texts: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return texts


@pytest.fixture(scope="module")
def recorded() -> Iterator[dict[str, dict[str, str]]]:
    """The stored texts by situation; rewritten after the last test with GATE_WRITE_GOLDEN."""
    texts = load_texts(SAID)
    yield texts
    if WRITES:
        kept = {name: texts[name] for name in SITUATIONS}
        SAID.write_bytes(lzma.compress(json.dumps(kept, indent=1).encode(), preset=9))


@functools.cache
def judge_once(name: str) -> Verdict:
    """The verdict of a situation, shared by all tests."""
    return judge(SITUATIONS[name])


def test_a_verdict_of_2700_recorded_cases_is_small_enough_to_be_published() -> None:
    """The largest size a case, times 2,700."""
    assert 2700 * max(measure_case(judge_once(name)) for name in SITUATIONS) <= MAX_MEMBER_BYTES


def measure_case(verdict: Verdict) -> float:
    """Bytes that are published of a verdict for each of its cases."""
    return len(SHOWN.encode(make_shown(verdict)).encode()) / max(len(verdict.cases), 1)


@pytest.mark.parametrize("name", SITUATIONS)
def test_recorded(name: str, recorded: dict[str, dict[str, str]]) -> None:
    """A recorded run has the stored texts in every place."""
    verdict = judge_once(name)

    texts = render_all(verdict, SITUATIONS[name])

    if WRITES:
        show_difference(name, recorded.get(name, {}), texts)
        recorded[name] = texts
    assert texts == recorded[name]
    again = VERDICT.decode(VERDICT.encode(verdict).encode(), "verdict.json")
    assert again == verdict


@pytest.mark.parametrize(
    "options",
    [{"--config": "ci/my gate.yml", "--baselines": "b", "--out": "$(o)"}, {"--reference-models": ""}],
)
def test_each_command_to_run_next_is_one_that_there_is(options: Mapping[str, str]) -> None:
    """Each suggested command is parsed, with the options of the verdict's own."""
    parser = make_parser()
    for name in SITUATIONS:
        verdict = replace(judge_once(name), options=options)
        for step in write_steps(verdict):
            assert not step.command or parser.parse_args(shlex.split(step.command)[1:])
        for case in verdict.cases:
            command = render_command(case.id, verdict.comparisons, verdict)
            assert parser.parse_args(shlex.split(command)[1:])


def show_difference(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    for document, text in after.items():
        lines = difflib.unified_diff(
            before.get(document, "").splitlines(),
            text.splitlines(),
            f"{name} {document}",
            "now",
            lineterm="",
            n=0,
        )
        sys.stdout.writelines(f"{line}\n" for line in lines)
