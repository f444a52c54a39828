"""``compile-gate github publish`` as a process of a job: its output, time and memory."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from action.step import parse_command_file
from deliveries import make_workflow_run
from fake.server import TOKEN, FakeGitHub
from records import GATE_YML, RUN, SHA, make_archive, make_failing, make_passing, make_regressed, make_verdict

from gate.cli import main
from gate.project.config import load_config
from gate.project.registry import load_cases

MAX_RSS_BYTES = 320 * 1024 * 1024
MAX_S = 5.0
# The kernel's own count of the process: a child's resource usage would count its parent's memory, too.
MAIN = """\
import os, pathlib, re, sys
from gate.cli import main
code = main(sys.argv[1:])
status = pathlib.Path("/proc/self/status").read_text()
spent_s = sum(os.times()[:2])
peak = re.search(r"VmHWM:\\s+(\\d+)", status)[1]
pathlib.Path(os.environ["PEAK_FILE"]).write_text(f"{peak} {spent_s}")
sys.exit(code)
"""


@dataclass(frozen=True)
class Done:
    code: int
    printed: str
    outputs: str
    summary: str
    elapsed_s: float
    processor_s: float
    rss_bytes: int


@pytest.fixture
def job(github: FakeGitHub, tmp_path: Path) -> Path:
    """A checkout of the base commit, in a directory with a space, and a job's files."""
    directory = tmp_path / "base commit"
    directory.mkdir()
    (directory / "gate.yml").write_text(GATE_YML)
    github.state.add_pull(7, SHA, owner="mallory")
    github.state.add_run(RUN.id, SHA, owner="mallory")
    (tmp_path / "event.json").write_text(json.dumps(make_workflow_run(github.state.runs[RUN.id])))
    return directory


def make_environ(github: FakeGitHub, job: Path) -> dict[str, str]:
    """The environment of the step."""
    return github.environ | {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "GITHUB_EVENT_NAME": "workflow_run",
        "GITHUB_EVENT_PATH": str(job.parent / "event.json"),
        "GITHUB_OUTPUT": str(job.parent / "output"),
        "GITHUB_STEP_SUMMARY": str(job.parent / "summary"),
    }


def run_publish(github: FakeGitHub, job: Path, *options: str, **more: str) -> Done:
    """Run the command as a step does."""
    files = {name: job.parent / name for name in ("output", "summary", "printed", "peak")}
    environ = make_environ(github, job) | {"PEAK_FILE": str(files["peak"]), **more}
    python = [sys.executable, "-X", "importtime", "-c", MAIN]
    command = [*python, "github", "publish", "--run-id", "100", *options]
    started = time.perf_counter()
    with files["printed"].open("w") as printed:
        done = subprocess.run(command, cwd=job, env=environ, stdout=printed, stderr=printed, check=False)
    read = {name: path.read_text() if path.exists() else "" for name, path in files.items()}
    return Done(
        code=done.returncode,
        printed=read["printed"],
        outputs=read["output"],
        summary=read["summary"],
        elapsed_s=time.perf_counter() - started,
        processor_s=float(read["peak"].partition(" ")[2] or 0),
        rss_bytes=int(read["peak"].partition(" ")[0] or 0) * 1024,
    )


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_fork(github: FakeGitHub, job: Path) -> None:
    """A fork's regression is published in full by a process that is quick, small and without torch."""
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_failing()))
    done = run_publish(github, job)
    comment = github.state.list_comments(7)[0]
    outputs = parse_command_file(done.outputs)
    assert done.code == 0
    assert (outputs["verdict"], outputs["pr-number"]) == ("REGRESSION", "7")
    assert outputs["comment-url"] == comment["html_url"]
    assert "bert/inference-float32-smoke-default" in comment["body"]
    assert "REGRESSION" in done.summary
    assert "| torch" not in done.printed
    assert TOKEN not in done.printed + done.outputs + done.summary + str(github.state.comments)
    assert len(github.requests) <= 20
    assert 0 < done.rss_bytes < MAX_RSS_BYTES
    assert 0 < done.processor_s < MAX_S / 2
    assert done.elapsed_s < 60.0  # it waits for nothing, but a busy machine lets it wait


def test_large_verdict(github: FakeGitHub, job: Path) -> None:
    """A verdict near the size limit stays within the memory that a small runner has."""
    cases = load_cases(load_config(job / "gate.yml"))
    names = [f"model_{index:04}" for index in range(2300)]
    text = "".join(
        f"  - {{name: {name}, factory: 'bench:run', cases: [{{size: smoke}}]}}\n" for name in names
    )
    (job / "gate.yml").write_text(GATE_YML + text)
    cases = load_cases(load_config(job / "gate.yml"))
    verdict = make_verdict(*(row for case in cases for row in make_regressed(case)), cases=cases)
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(verdict))
    done = run_publish(github, job)
    assert parse_command_file(done.outputs)["regressions"] == "2303"
    assert 0 < done.rss_bytes < MAX_RSS_BYTES


@pytest.fixture
def publish(github: FakeGitHub, job: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the command in this process, and return its exit code."""

    def run(*options: str, **environ: str) -> int:
        for name, value in (make_environ(github, job) | environ).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(job)
        return main(["github", "publish", "--run-id", "100", *options])

    return run


def test_options(github: FakeGitHub, publish: Callable[..., int]) -> None:
    """The options of the action's inputs take effect."""
    github.state.add_artifact(RUN.id, "gpu", make_archive(make_passing()))
    github.state.runs[RUN.id]["conclusion"] = "success"
    assert publish("--artifact-name=gpu", "--comment=always", "--comment-key=gpu") == 0
    assert github.state.list_comments(7)[0]["body"].startswith("<!-- compile-gate key=gpu run=100 ")
    assert github.state.statuses[SHA][0]["context"] == "compile-gate/report (gpu)"


@pytest.mark.parametrize(
    ("keys", "state"), [("", "failure"), ("fail_on: never\nstatus: gate/speed\n", "success")]
)
def test_what_fails_and_the_status_are_those_of_gate_yml(
    github: FakeGitHub, job: Path, publish: Callable[..., int], keys: str, state: str
) -> None:
    """The check reads the same file of the base, so both have one colour."""
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_failing()))
    (job / "gate.yml").write_text(GATE_YML + keys)
    github.state.runs[RUN.id]["conclusion"] = state

    assert publish() == 0

    status = github.state.statuses[SHA][0]
    name = "gate/speed" if keys else "compile-gate/report"
    assert (status["state"], status["context"]) == (state, name)


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ((), {"GITHUB_TOKEN": ""}, "no usable token"),
        ((), {"GITHUB_TOKEN": "a\nb"}, "no usable token"),
        ((), {"GITHUB_REPOSITORY": "nobody"}, "not owner/name"),
        ((), {"GITHUB_API_URL": "http://evil.example"}, "not an https address"),
        (("--config", "none.yml"), {}, "does not exist"),
        (("--comment-key", "a b"), {}, "40 letters"),
        (("--comment", "often"), {}, "expected one of always"),
        (("--run-id", "101"), {}, "not the run that this event is about"),
    ],
)
def test_usage(
    github: FakeGitHub,
    publish: Callable[..., int],
    options: tuple[str, ...],
    environ: dict[str, str],
    expected: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What the caller can fix is exit code 2 and two lines; nothing is written."""
    assert publish(*options, **environ) == 2
    printed = capfd.readouterr()
    assert expected in printed.err
    assert "Traceback" not in printed.err
    assert github.list_writes() == []
