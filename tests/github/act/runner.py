"""Runs a workflow under act, on this host, and reads the result from act's log."""

import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from fake.server import TOKEN
from workflow_files import WORKFLOWS

from act.hub import LABELS, TOOL, Hub, adapt
from tests.git import run_git

HERE = Path(__file__).parent
_USES = re.compile(r"uses: ((?:actions|pypa)/([\w-]+)@[0-9a-f]{40})")
BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()  # as git is handed it
_LEVELS = ("error", "warning", "notice")


@dataclass(frozen=True, kw_only=True)
class Start:
    """What starts a run of a workflow."""

    event: str
    payload: Mapping[str, Any]
    workflow: str  # path in the repository
    sha: str  # the commit that has it
    repository: str = "octo-org/models"
    ref: str = "refs/heads/main"
    environ: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    id: int = field(default_factory=itertools.count(1001).__next__)


@dataclass(frozen=True, kw_only=True)
class ActRun:
    code: int
    log: list[dict[str, Any]]
    artifacts: Mapping[str, Path]

    @cached_property
    def text(self) -> str:
        return "\n".join(str(line.get("msg", "")).rstrip("\n") for line in self.log)

    @cached_property
    def jobs(self) -> dict[str, str]:
        """The result of each job that was not skipped, by its name."""
        return {str(line["job"]).strip(): str(line["jobResult"]) for line in self.log if "jobResult" in line}

    @cached_property
    def annotations(self) -> list[str]:
        lines = [str(line["msg"]) for line in self.log if line.get("command") in _LEVELS]
        return [line[line.index("::") :].strip() for line in lines]

    @cached_property
    def summary(self) -> str:
        """The summary of the run; act logs that of a composite action twice."""
        written = (str(line.get("content", "")) for line in self.log if line.get("command") == "summary")
        return "".join(dict.fromkeys(written))

    def outputs(self, step: str) -> dict[str, str]:
        lines = [line for line in self.log if line.get("step") == step]
        return {str(line["name"]): str(line["arg"]) for line in lines if line.get("command") == "set-output"}


class Runner:
    """act, with the actions that it takes from disk and a self-hosted machine's interpreter."""

    def __init__(self, hub: Hub, directory: Path) -> None:
        self.hub, self.directory = hub, directory
        self.act = Path(sysconfig.get_path("scripts")) / "act"
        assert self.act.exists(), "act is not installed: make install-test"
        texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
        pins = dict(pin for text in texts for pin in _USES.findall(text))
        stand_ins = {path.name: path for path in (HERE / "actions").iterdir()}
        local = [f"{pin}={stand_ins.get(name, stand_ins['other'])}" for pin, name in pins.items()]
        local.append(f"{TOOL}@{hub.commit}={hub.called}")
        labels = ["ubuntu-24.04", *LABELS.split(", ")]
        self.options = [
            *("--no-skip-checkout", "--action-offline-mode", "--no-cache-server", "--json", "--reuse"),
            "--insecure-secrets",  # a token in the log is not hidden, so that it is seen
            *("--container-daemon-socket", "-", "--actor", "octocat", "--secret", "GITHUB_TOKEN"),
            *(word for label in labels for word in ("--platform", f"{label}=-self-hosted")),
            *(word for action in local for word in ("--local-repository", action)),
        ]
        self.programs = make_programs(directory / "programs")

    def run(self, start: Start) -> ActRun:
        directory = Path(
            mkdtemp(prefix="run-", dir=self.directory)
        )  # without a space: act would not quote it
        (directory / "work").mkdir()
        run_git(directory / "work", "init", "--quiet")  # act looks for one; jobs make their own clones
        git = ("--git-dir", str(self.hub.directory / start.repository))
        text = run_git(directory, *git, "show", f"{start.sha}:{start.workflow}")
        (directory / "workflow.yml").write_text(adapt(text, self.hub.commit))
        (directory / "event.json").write_text(json.dumps(start.payload))
        command = [str(self.act), start.event, *self.options, *_name_files(directory), *_give(start)]
        environ = {
            "HOME": str(self.directory),
            "PATH": f"{self.programs / 'bin'}:{os.environ['PATH']}",
            "BASH_ENV": str(self.programs / "bin" / "late_end"),
            "LANG": "C.UTF-8",
            "GITHUB_TOKEN": TOKEN,
            "COMPILE_GATE_LOCKS": str(directory),
            "ACT_ARTIFACTS": str(self.directory / "artifacts"),
            "no_proxy": "*",
        }
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        log, artifacts = [_parse(line) for line in lines], self.list_artifacts(start.id)
        run = ActRun(code=done.returncode, log=log, artifacts=artifacts)
        assert not any(secret in run.text + run.summary + self.read_log("git") for secret in (TOKEN, BASIC))
        return run

    def read_log(self, program: str) -> str:
        """Read how a program of the machine has been called."""
        path = self.programs / "log" / program
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def list_artifacts(self, run_id: int) -> dict[str, Path]:
        """The files that a run has uploaded so far: name -> zip file."""
        return {path.stem: path for path in (self.directory / "artifacts" / str(run_id)).glob("*.zip")}


def _name_files(directory: Path) -> tuple[str, ...]:
    files = {"workflows": "workflow.yml", "directory": "work", "eventpath": "event.json"}
    files |= {"action-cache-path": "cache"}
    return tuple(word for name, file in files.items() for word in (f"--{name}", str(directory / file)))


def _give(start: Start) -> list[str]:
    """Give the run its variables and inputs."""
    environ = {
        "GITHUB_REPOSITORY": start.repository,
        "GITHUB_REPOSITORY_OWNER": start.repository.partition("/")[0],
        "GITHUB_REF": start.ref,
        "SHA_REF": start.sha,
        "GITHUB_RUN_ID": str(start.id),
        **start.environ,
    }
    given = [word for name, value in environ.items() for word in ("--env", f"{name}={value}")]
    return [
        *given,
        *(word for name, value in start.inputs.items() for word in ("--input", f"{name}={value}")),
    ]


def _parse(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"msg": line}


def make_programs(directory: Path) -> Path:
    """Make the programs of the runner's machine, and a directory for the log of their calls.

    ``python3`` sees the packages of this interpreter; ``programs/python3`` describes what it does itself.
    """
    for name in ("bin", "log"):
        (directory / name).mkdir(parents=True)
    prefix = Path(sys.prefix)
    if (prefix / "pyvenv.cfg").exists():
        (directory / "pyvenv.cfg").write_bytes((prefix / "pyvenv.cfg").read_bytes())
        (directory / "lib").symlink_to(prefix / "lib")
    actor = HERE.parents[1] / "unit" / "cli" / "acting_gate.py"
    values = {"REAL": sys.executable, "ACTOR": actor, "LOG": directory / "log", "GIT": shutil.which("git")}
    for path in (HERE / "programs").iterdir():
        text = path.read_text(encoding="utf-8")
        for name, value in values.items():
            text = re.sub(rf'"{name}\b', f'"{value}', text)
        (directory / "bin" / path.name).write_text(text)
        (directory / "bin" / path.name).chmod(0o755)
    os.link(directory / "bin" / "python3", directory / "bin" / "python")
    return directory
