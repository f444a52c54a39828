"""Executes a composite action, or a job's steps: expressions, conditions, bash, command files, outputs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from action.expressions import fill, is_due

# How GitHub's runner starts `shell: bash`; the user's own start-up files are not read.
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
_FILES = ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")
_HEREDOC = re.compile(
    r"^(?P<name>[^\n=]+?)<<(?P<end>[^\n]+)\n(?P<value>.*?)\n?^(?P=end)$\n?", re.MULTILINE | re.DOTALL
)

Stub = Callable[[str, Mapping[str, str]], Mapping[str, str]]


@dataclass(kw_only=True)
class Job:
    """The job around the action: a workspace, the runner's temporary directory, an environment."""

    workspace: Path
    temporary: Path
    environ: dict[str, str]
    github: dict[str, Any] = field(default_factory=dict)
    uses: Stub | None = None  # (reference, with) -> outputs
    limit_s: float = 120.0  # of one step


@dataclass(kw_only=True)
class StepRun:
    """One step that ran, or was skipped."""

    name: str
    outcome: str  # success, failure or skipped
    code: int = 0
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass(kw_only=True)
class ActionRun:
    """What came of an action."""

    steps: list[StepRun]
    outputs: dict[str, str]
    warnings: list[str]

    @property
    def succeeded(self) -> bool:
        return all(step.outcome != "failure" for step in self.steps)

    @property
    def log(self) -> str:
        return "".join(step.log for step in self.steps)

    @property
    def summary(self) -> str:
        return "".join(step.summary for step in self.steps)


@cache
def parse_action(text: str) -> dict[str, Any]:
    """Parse an action.yml, for reading only: most tests run the same one."""
    return dict(yaml.safe_load(text))


def run_composite(action_file: Path, job: Job, given: Mapping[str, str]) -> ActionRun:
    """Run the action of ``action_file`` with the inputs ``given`` as ``with:`` would give them."""
    action = parse_action(action_file.read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    declared = action.get("inputs", {})
    warnings = [f"Unexpected input {name!r}" for name in given if name not in declared]
    inputs = {name: str(given.get(name, spec.get("default", ""))) for name, spec in declared.items()}
    contexts = {"inputs": inputs, "github": job.github}
    wanted = {name: str(spec["value"]) for name, spec in action.get("outputs", {}).items()}
    run = _run_steps(action["runs"]["steps"], action_file.parent, job, contexts, wanted)
    run.warnings += warnings
    return run


def run_job(described: Mapping[str, Any], job: Job, contexts: Mapping[str, Any]) -> ActionRun:
    """Run the steps of a workflow's job; ``contexts`` are those that the workflow gives it."""
    job.environ |= described.get("env", {})
    return _run_steps(
        described["steps"], job.workspace, job, dict(contexts), dict(described.get("outputs", {}))
    )


def _run_steps(
    described: list[dict[str, Any]],
    directory: Path,
    job: Job,
    contexts: dict[str, Any],
    wanted: Mapping[str, str],
) -> ActionRun:
    contexts |= {"env": job.environ, "steps": {}}
    steps: list[StepRun] = []
    for step in described:
        done = _run_step(step, directory, job, contexts, all(run.outcome != "failure" for run in steps))
        steps.append(done)
        if "id" in step:
            contexts["steps"][step["id"]] = {"outputs": done.outputs, "outcome": done.outcome}
    outputs = {name: fill(value, contexts) for name, value in wanted.items()}
    return ActionRun(steps=steps, outputs=outputs, warnings=[])


def _run_step(
    step: Mapping[str, Any], directory: Path, job: Job, contexts: dict[str, Any], succeeded: bool
) -> StepRun:
    name = step.get("name") or step.get("uses") or "run"
    status = {"success": succeeded, "failure": not succeeded, "always": True, "cancelled": False}
    if not is_due(step.get("if"), contexts, status):
        return StepRun(name=name, outcome="skipped")
    if "uses" in step:
        assert job.uses is not None, f"no stub for {step['uses']}"
        with_ = {key: fill(str(value), contexts) for key, value in step.get("with", {}).items()}
        return StepRun(name=name, outcome="success", outputs=dict(job.uses(step["uses"], with_)))
    assert step["shell"] == "bash", "a run step must name its shell: in a container the default is sh"
    return _run_bash(step, name, directory, job, contexts)


def _run_bash(
    step: Mapping[str, Any], name: str, directory: Path, job: Job, contexts: dict[str, Any]
) -> StepRun:
    place = job.temporary / "_runner_file_commands"
    place.mkdir(parents=True, exist_ok=True)
    index = len(list(place.iterdir()))
    files = {kind: place / f"{kind.lower()}_{index}" for kind in _FILES}
    for file in files.values():
        file.touch()
    script = place / f"script_{index}.sh"
    script.write_text(fill(step["run"], contexts), encoding="utf-8")
    environ = {
        **job.environ,
        **{key: fill(str(value), contexts) for key, value in step.get("env", {}).items()},
        **{f"GITHUB_{kind}": str(path) for kind, path in files.items()},
        "GITHUB_ACTION_PATH": str(directory),
        "GITHUB_WORKSPACE": str(job.workspace),
        "RUNNER_TEMP": str(job.temporary),
    }
    done = subprocess.run(
        [*BASH, str(script)],
        cwd=job.workspace / fill(step.get("working-directory", "."), contexts),
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=job.limit_s,
        check=False,
    )
    job.environ |= parse_command_file(files["ENV"].read_text(encoding="utf-8"))
    added = files["PATH"].read_text(encoding="utf-8").split()
    job.environ["PATH"] = os.pathsep.join([*reversed(added), job.environ["PATH"]])
    return StepRun(
        name=name,
        outcome="success" if done.returncode == 0 or step.get("continue-on-error") else "failure",
        code=done.returncode,
        log=done.stdout.decode(errors="replace"),
        outputs=parse_command_file(files["OUTPUT"].read_text(encoding="utf-8")),
        summary=files["STEP_SUMMARY"].read_text(encoding="utf-8"),
    )


def parse_command_file(text: str) -> dict[str, str]:
    """Parse ``name=value`` lines and ``name<<end`` blocks as the runner does; anything else is an error."""
    values: dict[str, str] = {}
    position = 0
    while position < len(text):
        line, _, _ = text[position:].partition("\n")
        block = _HEREDOC.match(text, position)
        if block:
            values[block["name"]] = block["value"]
            position = block.end()
            continue
        if line.strip():
            name, separator, value = line.partition("=")
            assert separator, f"invalid command file line {line!r}"
            values[name] = value
        position += len(line) + 1
    return values
