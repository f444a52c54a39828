"""A hostile workspace and the shipped action: nothing of it runs as part of the gate, or finds its job.

The interpreters are real. A module in place of torch reports what it can see: it stands for measured code, in
a process that the gate has started.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from action.samples import CONFIG, commit, leave_shard, make_bare_python, make_job
from action.step import ROOT, Workspace, run_action
from runner_log import list_commands

from gate.action.step import Ended, list_complaints, run_child

# What the action, pip, venv and the interpreter's start import, or look for.
PLANTED = (
    *("pip.py", "pip/__init__.py", "pip/__main__.py", "venv.py", "venv/__main__.py", "ensurepip/__init__.py"),
    *("sitecustomize.py", "usercustomize.py", "site.py", "os.py", "json.py", "subprocess.py", "tempfile.py"),
    *("gate/__init__.py", "gate/__main__.py", "gate/action/modes.py", "gate.py"),
    *(
        "yaml.py",
        "yaml/__init__.py",
        "urllib/__init__.py",
        "psutil.py",
        "mdurl.py",
        "rich/__init__.py",
    ),
)
SPY = """\
import json, os, pathlib
seen, process = [], os.getpid()
while process not in (1, {test}):
    place = pathlib.Path("/proc", str(process))
    variables = (place / "environ").read_bytes().decode(errors="replace").split("\\0")
    seen.append([name.partition("=")[0] for name in variables if name])
    process = int((place / "stat").read_text().rpartition(")")[2].split()[1])
pathlib.Path({report!r}).write_text(json.dumps(seen))
raise ImportError("no torch, but a spy")
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A pull request's job whose workspace has every name that a process could import by mistake."""
    job = make_job(tmp_path / "a job")
    (job.workspace / "gate.yml").write_text(CONFIG)
    base = commit(job.workspace, "base")
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__ + chr(10))\n"
    for root in (job.workspace, job.workspace / "src"):
        for name in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(code)
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": commit(job.workspace, "head")}}}
    Path(job.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    leave_shard(job)
    job.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "no wheels")}
    return job


def list_ran(tmp_path: Path) -> list[str]:
    ran = tmp_path / "ran"
    return ran.read_text().splitlines() if ran.exists() else []


@pytest.mark.parametrize("search_path", ["", ".", "src::", "{workspace}:{workspace}/src"])
def test_nothing_of_the_workspace_runs(
    workspace: Workspace, bare_python: Path, tmp_path: Path, search_path: str
) -> None:
    """A job's PYTHONPATH is for what is measured, not for the gate."""
    workspace.environ["PYTHONPATH"] = search_path.format(workspace=workspace.workspace)

    run = run_action(workspace, {"mode": "judge", "python": str(bare_python)})

    assert (run.outputs["verdict"], run.outputs["cases"]) == ("NOTHING_COMPARED", "1"), run.log
    assert list_ran(tmp_path) == []


@pytest.mark.parametrize("only", [(), ("jinja2",)], ids=["complete", "lacking packages"])
def test_an_environment_that_points_into_the_workspace_is_no_way_in(
    workspace: Workspace, tmp_path: Path, only: tuple[str, ...]
) -> None:
    """An editable installation does so, also where pip and venv have to install packages."""
    python = make_bare_python(tmp_path / "python", only=only)
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    (site / "editable.pth").write_text(f"{workspace.workspace}\n{workspace.workspace}/src\n")
    workspace.environ["PYTHONPATH"] = "."

    run = run_action(workspace, {"mode": "judge", "python": str(python)})

    assert list_ran(tmp_path) == []
    assert run.outputs["exit-code"] == ("4" if only else "3")
    assert ("::error title=compile-gate::pip could not install the gate's own packages (" in run.log) is bool(
        only
    )


def test_an_environment_in_the_workspace_is_the_interpreters(
    workspace: Workspace, bare_python: Path, tmp_path: Path
) -> None:
    """A `.venv` that the workflow has made there is used with all its packages."""
    environment = workspace.workspace / ".venv"
    shutil.copytree(bare_python.parent.parent, environment, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    for entry in (bare_python.parents[2] / "packages").iterdir():
        (site / entry.name).symlink_to(entry.resolve())

    run = run_action(workspace, {"mode": "judge", "python": ".venv/bin/python"})

    assert run.outputs["verdict"] == "NOTHING_COMPARED", run.log
    assert list_ran(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows environments so")
def test_what_is_measured_finds_nothing_of_its_job_above_it(workspace: Workspace, tmp_path: Path) -> None:
    """No parent process up to the test got inputs, command files, the event or a token."""
    python, report = make_bare_python(tmp_path / "python"), tmp_path / "report.json"
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    (site / "torch.py").write_text(SPY.format(report=str(report), test=os.getpid()))
    # Locks that no other test holds.
    workspace.environ |= {"GITHUB_TOKEN": "ghs_stray", "COMPILE_GATE_LOCKS": str(workspace.temporary)}

    run = run_action(workspace, {"python": str(python), "device": "cpu", "confirm": "false"})

    assert run.outputs["exit-code"] == "4", run.log
    above = json.loads(report.read_text())
    assert len(above) >= 3  # itself, the gate, the action
    names = {name for level in above for name in level}
    assert not {name for name in names if name.startswith(("INPUT_", "ACTIONS_")) or "TOKEN" in name}
    assert not names & {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"}
    assert not {"RUNNER_TEMP", "GITHUB_EVENT_PATH"} & set(above[0])
    assert "GITHUB_REPOSITORY" in above[0]  # what says where it runs stays


def test_a_token_is_refused_before_anything_is_started(workspace: Workspace, tmp_path: Path) -> None:
    """The interpreter lacks packages, but pip is not called with a token in the environment."""
    python = make_bare_python(tmp_path / "python", only=("jinja2",))

    run = run_action(workspace, {"python": str(python), "token": "ghs_secret"})

    assert run.outputs["exit-code"] == "2"
    assert "input token: the mode check takes no token" in run.log
    assert "pip" not in run.log
    assert list(workspace.temporary.glob("compile-gate-*")) == []
    assert "ghs_secret" not in run.log


def test_a_checkout_of_the_containers_host_is_read(
    workspace: Workspace, bare_python: Path, tmp_path: Path
) -> None:
    """In a container the workspace belongs to another user, and git refuses it by default."""
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    script.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "{real}" "$@"\n')
    script.chmod(0o755)
    workspace.environ["PATH"] = f"{script.parent}{os.pathsep}{workspace.environ['PATH']}"
    refused = subprocess.run([script, "-C", workspace.workspace, "status"], check=False, capture_output=True)
    assert b"dubious ownership" in refused.stderr

    run = run_action(workspace, {"mode": "judge", "python": str(bare_python)})

    assert run.outputs["verdict"] == "NOTHING_COMPARED", run.log
    assert run.outputs["baseline-sha"]


def test_a_clone_below_the_workspace_is_judged_by_its_own_rules(
    workspace: Workspace, bare_python: Path, tmp_path: Path
) -> None:
    """With `path:` of actions/checkout the repository's top is not the workspace."""
    moved = workspace.workspace.rename(tmp_path / "clone")
    workspace.workspace.mkdir()
    moved.rename(workspace.workspace / "repo")
    shutil.copytree(workspace.workspace / "repo" / "shards", workspace.workspace / "shards")
    base = json.loads(Path(workspace.environ["GITHUB_EVENT_PATH"]).read_text())["pull_request"]["base"]["sha"]
    given = {"mode": "judge", "python": str(bare_python)}

    above = run_action(workspace, given)
    inside = run_action(workspace, given | {"working-directory": "repo"})

    assert above.outputs["exit-code"] == "2"
    assert "is not in a git repository. Run in a checkout; after actions/checkout" in above.log
    assert (inside.outputs["exit-code"], inside.outputs["baseline-sha"]) == ("3", base)


def test_a_wrong_selection_is_reported_in_the_annotation(workspace: Workspace, bare_python: Path) -> None:
    """The annotation of the real command shows the mistake and the closest name."""
    given = {"mode": "judge", "select": "tag:smok", "python": str(bare_python)}
    Path(workspace.environ["GITHUB_EVENT_PATH"]).write_text(
        "{}"
    )  # a push: of a change the base's gate.yml says it

    run = run_action(workspace, given)

    assert run.outputs["exit-code"] == "2"
    (error,) = (command for command in list_commands(run.log) if command.name == "error")
    assert "tag:smok" in error.data
    assert "tag:smoke" in error.data


def test_complaints_are_joined_with_their_fix() -> None:
    """A command prints each error in two lines, after its other output."""
    output = """\
measuring...
compile-gate: gate.yml: trials: is 0
Write a number from 1.
compile-gate: gate.yml:7: no such key.
Did you mean `select`?
compile-gate check: there is no option --x
See `compile-gate check --help` for the options.
"""
    assert list_complaints(output) == (
        "gate.yml: trials: is 0. Write a number from 1.",
        "gate.yml:7: no such key. Did you mean `select`?",
        "there is no option --x. See `compile-gate check --help` for the options.",
    )
    assert list_complaints("Traceback\n") == ()


def test_a_command_ends_with_its_errors(capfd: pytest.CaptureFixture[str]) -> None:
    """Its output passes through as one stream; the errors are kept."""
    code = "import sys; print('compile-gate: bad.\\nFix it.', file=sys.stderr); sys.exit(2)"

    ended = run_child([sys.executable, "-c", code], dict(os.environ))

    assert ended == Ended(code=2, complaints=("bad. Fix it.",))
    assert capfd.readouterr() == ("compile-gate: bad.\nFix it.\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_step_lets_the_command_clean_up(number: int) -> None:
    """The runner signals one process, which passes it on, waits, and ends as the command did."""
    waits = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    code = (
        "import os, sys; from gate.action.step import run_child;"
        f"sys.exit(run_child([sys.executable, '-c', {waits!r}], dict(os.environ)).code)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(30) == 7
