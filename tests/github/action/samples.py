"""A job to run the action in: a git repository, a stand-in for measuring, an event."""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from action.composite import Job

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / "action.yml"
# What an environment that owns torch need not have, or must not have here.
_LEFT_OUT = re.compile(
    r"(torch|functorch|triton|transformers|diffusers|_*compile_gate|__editable__).*|.*\.pth"
)
_KEPT = ("PATH", "HOME", "LANG")


def make_bare_python(place: Path) -> Path:
    """Make an interpreter that has everything the gate needs, and neither torch nor the gate."""
    packages = place / "packages"
    packages.mkdir()
    for entry in Path(pytest.__file__).parent.parent.iterdir():
        if not _LEFT_OUT.fullmatch(entry.name):
            (packages / entry.name).symlink_to(entry)
    venv.EnvBuilder(with_pip=False, symlinks=True).create(place / "venv")
    (own,) = (place / "venv" / "lib").glob("python*/site-packages")
    (own / "packages.pth").write_text(f"{packages}\n")
    return place / "venv" / "bin" / "python"


def make_job(place: Path, event: dict[str, Any] | None = None, workspace_name: str = "work space") -> Job:
    """Make a job with an empty workspace, as a fresh runner has it; ``place`` may hold spaces."""
    workspace, temporary = place / workspace_name, place / "temp"
    workspace.mkdir(parents=True)
    temporary.mkdir()
    event_file = place / "event.json"
    event_file.write_text(json.dumps(event or {}))
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(event_file),
        "GITHUB_REPOSITORY": "octo-org/models",
        "GITHUB_RUN_ID": "77",
        "GITHUB_SERVER_URL": "https://github.com",
        # What a job might hold by mistake, or a runner puts there for its own actions.
        "ACTIONS_RUNTIME_TOKEN": "a-runtime-token",
        "GH_TOKEN": "a-gh-token",
    }
    return Job(workspace=workspace, temporary=temporary, environ=environ)


def commit(directory: Path, message: str) -> str:
    """Commit everything and return the SHA."""
    if not (directory / ".git").exists():
        git(directory, "init", "--quiet", "--initial-branch", "main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(directory, "rev-parse", "HEAD")


def git(directory: Path, *arguments: str) -> str:
    """Run git as somebody and return what it said."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
