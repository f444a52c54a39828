"""Whole trials are those of the gate's own cases, in every project."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gate.cli.parser import make_parser
from gate.cli.setup import load_project
from gate.device_tests.test_whole import _SMALL, _run_gate


def test_a_project_that_leaves_the_reference_models_out_fails_no_device_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a project of `init` the command's configuration has the smallest case."""
    (tmp_path / "gate.yml").write_text("version: 1\nreference_models: false\nselect: tag:pr\n")
    monkeypatch.chdir(tmp_path)
    commands: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    seen = tmp_path / "first-contact" / "seen"
    assert _run_gate("cpu", seen / "small", 180, "measure", "--select", _SMALL) == 0
    assert commands == [
        (
            *(sys.executable, "-P", "-m", "gate", "measure", "--select", _SMALL),
            *("--config", str(seen / "gate.yml"), "--device", "cpu", "--quiet"),
            *("--out", str(seen / "small")),
        )
    ]
    project = load_project(make_parser().parse_args(commands[0][4:]))
    assert [case.id for case in project.cases] == [_SMALL]
