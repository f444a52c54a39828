"""A job to run the action in: a git repository, a stand-in for measuring, an event."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from importlib import metadata
from pathlib import Path

import pytest

from action.step import Workspace
from gate.files.codec import RUN
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.cases import Metric
from tests.git import run_git
from tests.make import make_run, make_trials

CONFIG = """\
version: 1
device: cpu
reference_models: false
models:
  - name: tiny
    factory: tiny:make
    cases:
      - {task: inference, dtype: float32, size: smoke, tags: [smoke]}
"""
# What an environment that owns torch need not have, or must not have here.
_LEFT_OUT = re.compile(
    r"(torch|functorch|triton|transformers|diffusers|_*compile_gate|__editable__).*|.*\.pth"
)
_KEPT = ("PATH", "HOME", "LANG")


def find_early_patch() -> str:
    """An interpreter of an early patch of 3.11, as distributions ship it; empty if there is none."""
    directories = [
        *os.environ["PATH"].split(os.pathsep),
        "/usr/bin",
        "/usr/local/bin",
        "/opt/python/cp311-cp311/bin",
    ]
    roots = (Path.home() / ".pyenv/versions", Path("/opt/hostedtoolcache/Python"))
    directories += [str(path) for root in roots for path in root.glob("3.11.*/**/bin")]
    # By `which`, as a directory of PATH may be one that this user may not enter.
    paths = filter(None, (shutil.which("python3.11", path=directory) for directory in directories))
    return next(filter(_is_early, paths), "")


def _is_early(python: str) -> bool:
    code = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 11, 4))"
    return subprocess.run([python, "-I", "-c", code], check=False, capture_output=True).returncode == 0


def make_bare_python(directory: Path, only: Collection[str] = (), python: str = sys.executable) -> Path:
    """Make an interpreter that has everything the gate needs, and neither torch nor the gate.

    With ``only`` it has these distributions and nothing else; ``python`` is what it is made of.
    """
    packages = directory / "packages"
    packages.mkdir(parents=True)
    kept = {path.parts[0] for name in only for path in metadata.files(name) or ()}
    for entry in Path(pytest.__file__).parent.parent.iterdir():
        if entry.name in kept if only else not _LEFT_OUT.fullmatch(entry.name):
            (packages / entry.name).symlink_to(entry)
    command = [python, "-I", "-m", "venv", "--without-pip", "--symlinks", str(directory / "venv")]
    subprocess.run(command, check=True, capture_output=True)
    (site,) = (directory / "venv" / "lib").glob("python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return directory / "venv" / "bin" / "python"


def make_job(directory: Path) -> Workspace:
    """Make a job with an empty workspace, as a fresh runner has it; the path may hold spaces."""
    workspace, temporary = directory / "work space", directory / "temp"
    workspace.mkdir(parents=True)
    temporary.mkdir()
    event_file = directory / "event.json"
    event_file.write_text("{}")
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
    return Workspace(workspace=workspace, temporary=temporary, environ=environ)


def leave_shard(workspace: Workspace) -> None:
    """Write the run of the one case of ``CONFIG`` where mode judge looks: that needs no torch."""
    config = workspace.temporary / "gate.yml"
    config.write_text(CONFIG)
    cases = load_cases(load_config(config))
    trials = make_trials(cases[0].id, [{Metric.COMPILED_LATENCY: 0.01}] * 3)
    (workspace.workspace / "shards").mkdir()
    RUN.save(make_run(*trials, cases=cases, trials_planned=3), workspace.workspace / "shards" / "run.json")


def commit(directory: Path, message: str) -> str:
    """Commit everything and return the SHA."""
    if not (directory / ".git").exists():
        run_git(directory, "init", "--quiet", "--initial-branch", "main")
    run_git(directory, "add", "--all")
    run_git(directory, "commit", "--quiet", "--allow-empty", "--message", message)
    return run_git(directory, "rev-parse", "HEAD")
