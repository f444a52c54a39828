"""Completion by Tab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gate.cli import main
from gate.cli.parser import complete_cases, complete_metrics
from tests.unit.cli.conftest import CASE_ID


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("compile-gate ini", {"init "}),
        ("compile-gate baseline an", {"anchor "}),
        ("compile-gate check --lock", {"--lock-timeout "}),
        ("compile-gate check --select act", {f"{CASE_ID} "}),
        ("compile-gate baseline accept x graph_", {"graph_breaks "}),
    ],
)
def test_tab_offers_what_fits(project: Path, tmp_path: Path, line: str, offered: set[str]) -> None:
    """Commands, options, cases of this project and metrics, as argcomplete asks for them."""
    answer = tmp_path / "told"
    asked = {
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
    }
    code = "import sys; from gate.cli import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=project, env={**os.environ, **asked}, timeout=60
    )
    assert set(answer.read_text(encoding="utf-8").split("\n")) == offered


def test_a_list_goes_on_and_a_broken_project_offers_nothing(project: Path) -> None:
    """After a comma comes the next case; a broken gate.yml prints no error."""
    assert complete_cases("bert,act") == [f"bert,{CASE_ID}"]
    assert complete_cases("tag:s") == ["tag:smoke"]
    assert complete_metrics("warm_") == ["warm_speedup", "warm_compile_time"]
    (project / "gate.yml").write_text("version: [", encoding="utf-8")
    assert complete_cases("") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_a_shell_names_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each shell's code completes compile-gate."""
    assert main(["completion", shell]) == 0
    assert "compile-gate" in capsys.readouterr().out


def test_bash_completes_the_command_once_it_has_evaluated_the_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As `eval "$(compile-gate completion bash)"` does in a user's settings."""
    assert main(["completion", "bash"]) == 0
    script = f"{capsys.readouterr().out}\ncomplete -p compile-gate"
    evaluated = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert evaluated.stdout.strip().endswith(" compile-gate")
