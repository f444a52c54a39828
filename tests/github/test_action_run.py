"""The shipped action.yml, executed: real bash, real command files, a real interpreter without torch."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from action.samples import CONFIG, commit, find_early_patch, leave_shard, make_bare_python, make_job
from action.step import ROOT, Workspace, run_action

TWO_SENTENCES = re.compile(r"::error title=compile-gate::.+\. .+\.")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A job in a workspace whose path has a space."""
    return make_job(tmp_path / "a job")


def test_no_interpreter_is_reported(workspace: Workspace) -> None:
    """The message names the missing interpreter of the workflow, and the fix."""
    run = run_action(workspace, {"python": "no-such-python%0A"})

    assert run.code == 2
    assert 'input python: there is no interpreter "no-such-python?0A" here.' in run.log
    assert TWO_SENTENCES.search(run.log)


def test_an_old_interpreter_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    """Python 3.9 parses the start, and is refused by name."""
    old = tmp_path / "python3.9"
    pretend = "import runpy, sys; sys.version_info = (3, 9, 1); sys.argv = sys.argv[1:]"
    code = f"{pretend}; runpy.run_path(sys.argv[0], run_name='__main__')"
    # Without the options that come before the file.
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$3"\n')
    old.chmod(0o755)

    run = run_action(workspace, {"python": str(old)})

    assert run.code == 2
    assert re.search(r"::error .*needs Python 3\.11 or later; .* is 3\.9\.1\. Name another one", run.log)
    assert run.outputs["exit-code"] == "2"


def test_a_python_without_torch_is_a_matter_of_the_machine(workspace: Workspace, bare_python: Path) -> None:
    """The exit code is 4, without a verdict: nothing is known about the code."""
    (workspace.workspace / "gate.yml").write_text(CONFIG)
    (workspace.workspace / "tiny.py").touch()
    commit(workspace.workspace, "head")
    workspace.environ["COMPILE_GATE_LOCKS"] = str(workspace.temporary)  # no other test holds these
    given = {"baseline-ref": "head", "device": "cpu"}

    run = run_action(workspace, {"python": str(bare_python), **given})

    assert (run.code, run.outputs["exit-code"], run.outputs["verdict"]) == (4, "4", "")
    assert "torch" in run.log
    assert not (workspace.workspace / "out" / "verdict.json").exists()


def test_a_directory_that_is_not_there_is_reported(workspace: Workspace, bare_python: Path) -> None:
    """Most often the workflow has no checkout step."""
    run = run_action(workspace, {"python": str(bare_python), "working-directory": "nowhere"})

    assert run.code == 2
    assert "input working-directory: 'nowhere' cannot be entered" in run.log


def test_an_early_patch_of_the_oldest_python_will_do(workspace: Workspace, tmp_path: Path) -> None:
    """A distribution's Python gets to a verdict by the base commit's rules."""
    python = find_early_patch()
    if not python:
        pytest.skip("no Python from 3.11.0 to 3.11.3 here")
    (workspace.workspace / "gate.yml").write_text(CONFIG)
    (workspace.workspace / "tiny.py").write_text("")
    base = commit(workspace.workspace, "base")
    (workspace.workspace / "gate.yml").unlink()
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": commit(workspace.workspace, "head")}}}
    Path(workspace.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    early = make_bare_python(tmp_path / "early python", python=python)

    leave_shard(workspace)

    run = run_action(workspace, {"mode": "judge", "python": str(early)})

    assert (run.outputs["verdict"], run.outputs["cases"]) == ("NOTHING_COMPARED", "1"), run.log
    assert run.outputs["baseline-sha"] == base


def test_the_action_works_from_a_path_with_spaces(
    workspace: Workspace, bare_python: Path, tmp_path: Path
) -> None:
    """A wrong input is named, and the exit code is an output."""
    copy = tmp_path / "an action; $(id)"
    shutil.copytree(ROOT / "gate", copy / "gate", ignore=shutil.ignore_patterns("__pycache__"))

    run = run_action(workspace, {"mode": "chek", "python": str(bare_python)}, root=copy)

    assert (run.code, run.outputs["exit-code"], run.outputs["verdict"]) == (2, "2", "")
    assert "::error title=compile-gate::input mode: 'chek' is not check, measure" in run.log


def test_the_environment_under_test_is_not_changed(workspace: Workspace, bare_python: Path) -> None:
    """No file appears in it; the gate lies in the runner's temporary directory."""
    before = sorted(bare_python.parent.parent.rglob("*"))

    run_action(workspace, {"mode": "chek", "python": str(bare_python)})

    assert sorted(bare_python.parent.parent.rglob("*")) == before
    (directory,) = workspace.temporary.glob("compile-gate-*")
    assert sorted(path.name for path in directory.iterdir()) == [
        "source"
    ]  # nothing was missing: pip was not called
    assert sorted(path.name for path in (directory / "source").iterdir()) == [
        "compile_gate-0.1.0.dist-info",
        "gate",
    ]


def test_the_gates_packages_come_last(workspace: Workspace, bare_python: Path, tmp_path: Path) -> None:
    """The gate comes first, its packages after the environment's; the user's path stays."""
    probe = (
        "import json, sys, gate; from importlib import metadata;"
        "print(json.dumps([gate.__file__, sys.path, metadata.version('compile-gate')]))"
    )
    start = (
        "import json, os, sys; sys.path.insert(0, sys.argv[1]); from gate.action import launch;"
        "print(json.dumps(launch.prepare_environment(dict(os.environ))))"
    )
    given = {**workspace.environ, "RUNNER_TEMP": str(tmp_path), "PYTHONPATH": "/opt/site"}
    command = [str(bare_python), "-c", start, str(ROOT)]
    prepared = json.loads(subprocess.run(command, env=given, check=True, capture_output=True).stdout)
    command = [str(bare_python), "-P", "-c", probe]
    imported, path, version = json.loads(
        subprocess.run(command, env=prepared, check=True, capture_output=True).stdout
    )

    (directory,) = tmp_path.glob("compile-gate-*")
    assert Path(imported) == directory / "source" / "gate" / "__init__.py"
    assert path[:2] == [str(directory / "source"), "/opt/site"]
    assert path[-1] == str(directory / "packages")
    assert version == "0.1.0"
