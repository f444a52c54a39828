"""A step as GitHub's runner starts it: real bash, real command files, inputs as action.yml hands them over.

Whole workflows run under act, in ``tests/github/act``. ``test_action_inputs.py`` has that action.yml sets a
variable for each input and passes each output on.
"""

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from gate.action.inputs import INPUTS

ROOT = Path(__file__).resolve().parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
# How GitHub's runner starts `shell: bash`; the user's own start-up files are not read.
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c")
_LIMIT_S = 120.0
_FILES = ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")


@dataclass(kw_only=True)
class Workspace:
    """The job around a step: a workspace, the runner's temporary directory, an environment."""

    workspace: Path
    temporary: Path
    environ: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class StepRun:
    """The result of a step; an output that it did not set is empty."""

    code: int
    log: str
    outputs: Mapping[str, str]
    summary: str


def run_action(workspace: Workspace, given: Mapping[str, str], root: Path = ROOT) -> StepRun:
    """Run the action that lies at ``root`` with the inputs ``given``, as ``with:`` would give them."""
    values = {**{item.name: item.default for item in INPUTS}, **given}
    variables = {item.variable: values.pop(item.name) for item in INPUTS}
    assert not values, "an unknown input"
    run = run_bash(
        workspace, ACTION["runs"]["steps"][0]["run"], {**variables, "GITHUB_ACTION_PATH": str(root)}
    )
    assert set(run.outputs) <= set(ACTION["outputs"])  # what is not passed on would be lost in silence
    return run


def run_bash(workspace: Workspace, script: str, more: Mapping[str, str]) -> StepRun:
    """Run the script of a step; ``more`` are variables of its own."""
    directory = workspace.temporary / "_runner_file_commands"
    directory.mkdir(exist_ok=True)
    files = {kind: directory / kind.lower() for kind in _FILES}
    for file in files.values():
        file.write_bytes(b"")
    environ = {
        **workspace.environ,
        **more,
        **{f"GITHUB_{kind}": str(path) for kind, path in files.items()},
        "GITHUB_WORKSPACE": str(workspace.workspace),
        "RUNNER_TEMP": str(workspace.temporary),
    }
    done = subprocess.run(
        [*BASH, script],
        cwd=workspace.workspace,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LIMIT_S,
        check=False,
    )
    return StepRun(
        code=done.returncode,
        log=done.stdout.decode(errors="replace"),
        outputs=defaultdict(str, parse_command_file(files["OUTPUT"].read_text(encoding="utf-8"))),
        summary=files["STEP_SUMMARY"].read_text(encoding="utf-8"),
    )


def parse_command_file(text: str) -> dict[str, str]:
    """Parse ``name=value`` lines and ``name<<end`` blocks as the runner does; anything else is an error."""
    values: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in filter(None, lines):
        name, separator, rest = line.partition("<<" if "<<" in line.partition("=")[0] else "=")
        assert separator, f"invalid command file line {line!r}"
        block = takewhile(rest.__ne__, lines) if separator == "<<" else [rest]
        values[name] = "\n".join(block)
    return values
