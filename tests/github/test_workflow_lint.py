"""The workflow linters that need Node: never skipped silently, pinned, each exception with a reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "lint_workflows.py"
SOURCE = ROOT / "tools" / "workflow_lint"


def run_tool(tmp_path: Path, programs: dict[str, str], **environ: str) -> tuple[int, str]:
    """Run the tool where only these programs are installed; return its exit code and what it printed."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, script in programs.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    command = [sys.executable, str(TOOL), str(tmp_path / "env"), "gate.yml"]
    done = subprocess.run(
        command, env={"PATH": str(directory), **environ}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("programs", "because"),
    [
        ({}, "node is not installed"),
        ({"node": "echo v22.1.0"}, "npm is not installed"),
        ({"node": "echo v18.20.1", "npm": ""}, "node is v18.20.1, and 20 or later is needed"),
        ({"node": "", "npm": ""}, "node is of an unknown version, and 20 or later is needed"),
    ],
)
def test_without_node_a_message_says_that_nothing_was_checked(
    tmp_path: Path, programs: dict[str, str], because: str
) -> None:
    """It lists what was skipped, and the exit code is 0."""
    code, printed = run_tool(tmp_path, programs)

    assert code == 0
    assert printed == (
        "SKIPPED: actionlint and GitHub's language service did not look at the workflows,"
        f" because {because}.\n"
    )


@pytest.mark.parametrize("programs", [{}, {"node": "echo v22.1.0", "npm": "exit 1"}])
@pytest.mark.parametrize(("environ", "expected"), [({}, 0), ({"REQUIRE_WORKFLOW_LINT": "1"}, 1)])
def test_being_skipped_fails_only_where_it_is_required(
    tmp_path: Path, programs: dict[str, str], environ: dict[str, str], expected: int
) -> None:
    """Without Node or its registry a message appears; where the check is required, it fails."""
    code, printed = run_tool(tmp_path, programs, **environ)

    assert code == expected
    assert printed.startswith("SKIPPED: ")


def test_faults_fail_and_an_installation_is_made_once(tmp_path: Path) -> None:
    """The exit code is the linter's; a second run installs nothing."""
    programs = {
        "node": '[ "$1" = --version ] && echo v22.1.0 || { echo "$*"; exit 1; }',
        "npm": 'echo "npm $1"',
    }
    first = run_tool(tmp_path, programs)
    (tmp_path / "bin").rename(tmp_path / "before")
    second = run_tool(tmp_path, programs)

    assert (first[0], second[0]) == (1, 1)
    assert first[1].splitlines()[:2] == ["npm ci", "npm run"]
    assert "npm" not in second[1]
    assert second[1].endswith(f"{SOURCE / 'allowed.json'} gate.yml\n")


def test_the_versions_are_locked_and_name_no_registry() -> None:
    """Every package has its hash, none an address: any registry can serve it."""
    wanted = json.loads((SOURCE / "package.json").read_text())["dependencies"]
    lock = json.loads((SOURCE / "package-lock.json").read_text())["packages"]

    assert all(version[0].isdigit() for version in wanted.values())
    packages = {name: package for name, package in lock.items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())


def test_every_exception_has_a_reason_and_a_file() -> None:
    """Exceptions are listed file by file."""
    for entry in json.loads((SOURCE / "allowed.json").read_text()):
        assert set(entry) == {"linter", "message", "files", "reason"}
        assert len(entry["reason"]) > 40
        assert entry["files"]
        assert all((ROOT / name).is_file() for name in entry["files"])
