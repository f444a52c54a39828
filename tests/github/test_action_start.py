"""Where the gate's own packages come from: the environment's first, else the locked list, never into it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from gate.action import start
from gate.action.start import (
    REQUIREMENTS,
    StartError,
    install_packages,
    list_missing_requirements,
    parse_version,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def have(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the interpreter has: everything in the lock, at its version; a test takes away or ages."""
    found = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE))

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "version", version)
    return found


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run; ``pip --version`` fails when a test says so by its name."""
    seen: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(start.subprocess, "run", run)
    return seen


def test_the_minimum_versions_are_those_of_the_project() -> None:
    """pyproject.toml and the start, which cannot read it, say the same; the lock holds all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = dict(requirement.split(">=") for requirement in project["dependencies"])
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE))

    assert wanted == start.MINIMUM_VERSIONS
    assert all(parse_version(locked[name]) >= parse_version(least) for name, least in wanted.items())


def test_everything_in_the_lock_has_hashes() -> None:
    """Pip installs nothing else of it."""
    blocks = re.findall(r"^[a-z0-9-]+==.*\n(?:[ \t]+.*\n)*", REQUIREMENTS.read_text(), re.MULTILINE)

    assert len(blocks) > len(start.MINIMUM_VERSIONS)
    assert all("--hash=sha256:" in block for block in blocks)


@pytest.mark.usefixtures("have")
def test_an_environment_that_has_everything_needs_no_network(
    commands: list[list[str]], tmp_path: Path
) -> None:
    """Pip is not even asked."""
    install_packages(tmp_path / "packages")

    assert commands == []


def test_only_what_is_missing_is_installed_and_beside_the_environment(
    have: dict[str, str], commands: list[list[str]], tmp_path: Path
) -> None:
    """By hash, without dependencies, as wheels, into the directory: the environment's own stay."""
    del have["rich"], have["mdurl"]
    have["requests"] = "2.31.0"  # older than the lock's, and new enough

    install_packages(tmp_path / "packages")

    probe, install = commands
    assert probe == [sys.executable, "-m", "pip", "--version"]
    assert install[:3] == [sys.executable, "-m", "pip"]
    options = install[install.index("install") :]
    part = tmp_path / "packages.part"
    assert options == [
        *("install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--target", str(part), "--requirement", str(part / "requirements.txt")),
    ]
    wanted = (tmp_path / "packages" / "requirements.txt").read_text()
    assert re.findall(r"^([a-z0-9-]+)==", wanted, re.MULTILINE) == ["mdurl", "rich"]


def test_a_package_that_is_too_old_is_named(have: dict[str, str]) -> None:
    """It is not shadowed by a newer one: what is measured may need the old one."""
    have["pytest"] = "7.4.4"

    with pytest.raises(StartError) as caught:
        list_missing_requirements()

    assert caught.value.what.endswith("has pytest 7.4.4, and the gate needs 8.0")
    assert caught.value.exit_code == 2


def test_an_interpreter_without_pip_gets_one_elsewhere(
    have: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A throw-away environment beside the packages; its pip installs for the same Python."""
    del have["rich"]
    seen: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 1 if command[-1] == "--version" else 0)

    monkeypatch.setattr(start.subprocess, "run", run)

    install_packages(tmp_path / "packages")

    assert seen[1] == [sys.executable, "-m", "venv", str(tmp_path / "packages.pip")]
    assert seen[2][0] == str(tmp_path / "packages.pip" / "bin" / "python")


def test_a_failed_installation_is_not_taken_for_one(
    have: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit code 4, and the next try starts afresh."""
    del have["rich"]
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(start, "find_pip", lambda _: ["pip"])
    monkeypatch.setattr(start.subprocess, "run", lambda *_, **__: failed)

    with pytest.raises(StartError, match="pip could not install") as caught:
        install_packages(tmp_path / "packages")

    assert caught.value.exit_code == 4
    assert not (tmp_path / "packages").exists()


@pytest.mark.parametrize(
    ("text", "expected"), [("2.31.0", (2, 31, 0)), ("9.0.0rc1", (9, 0, 0)), ("6.0.post1", (6, 0)), ("x", ())]
)
def test_versions_are_compared_by_their_numbers(text: str, expected: tuple[int, ...]) -> None:
    """Whatever follows the numbers does not count."""
    assert parse_version(text) == expected
