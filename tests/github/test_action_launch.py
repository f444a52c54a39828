"""How the gate is put in place: the functions, in this process; what replaces it is recorded."""

import os
import runpy
import shutil
import site
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from action.step import ROOT, parse_command_file

from gate.action import launch
from gate.action.inputs import TRUSTED_MODES, ActionMode
from gate.action.launch import (
    become_action,
    check_token,
    drop_hidden,
    enter,
    is_in_workspace,
    isolate,
    prepare_environment,
    read_given,
)
from gate.errors import MachineError, UsageError
from gate.installation import PACKAGES_VARIABLE

COMMAND_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


@pytest.mark.parametrize(
    "name",
    [
        *COMMAND_FILES,
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_EVENT_PATH", "RUNNER_TEMP"),
        *("INPUT_DEVICE", "ACTIONS_RUNTIME_TOKEN"),
    ],
)
def test_what_belongs_to_the_step_is_dropped_and_nothing_else(name: str) -> None:
    """Inputs, command files and tokens go; a name that only holds such a word stays."""
    kept = {"PATH": "/bin", "GITHUB_SHA": "a", "MY_INPUT_X": "b", "GITHUB_OUTPUTS": "c"}

    assert drop_hidden({**kept, name: "x"}) == kept


@pytest.fixture
def search_path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The interpreter's path of ``/opt/lib``, to which ``site`` adds ``/opt/site``."""
    path = ["/opt/lib"]
    monkeypatch.setattr(sys, "path", path)
    for name in ("execsitecustomize", "execusercustomize", "ENABLE_USER_SITE"):
        monkeypatch.setattr(site, name, "unset", raising=False)
    monkeypatch.setattr(site, "main", lambda: path.append("/opt/site"))
    return path


def test_only_absolute_entries_outside_the_workspace_are_imported_from(
    search_path: list[str], tmp_path: Path
) -> None:
    """The job's own entries come first, then the interpreter's; the workspace is left out."""
    search_path.append(str(tmp_path / "src"))
    named = f"src{os.pathsep}{os.pathsep}/opt/named{os.pathsep}{tmp_path}/other{os.pathsep}/opt/too"

    isolate({"GITHUB_WORKSPACE": str(tmp_path), "PYTHONPATH": named})

    assert search_path == ["/opt/named", "/opt/too", "/opt/lib", "/opt/site"]


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ("/opt/packages", ["/opt/lib", "/opt/site", "/opt/packages"]),
        ("{workspace}/packages", ["/opt/packages", "/opt/lib", "/opt/site", "{workspace}/packages"]),
        ("", ["/opt/packages", "/opt/lib", "/opt/site"]),
    ],
)
def test_the_gates_packages_are_found_last(
    search_path: list[str], tmp_path: Path, packages: str, expected: list[str]
) -> None:
    """Also where they stood in front, or lie below the workspace, where the runner may keep its files."""
    search_path.insert(0, "/opt/packages")
    environ = {"GITHUB_WORKSPACE": str(tmp_path), PACKAGES_VARIABLE: packages.format(workspace=tmp_path)}

    isolate(environ)

    assert search_path == [entry.format(workspace=tmp_path) for entry in expected]


@pytest.mark.parametrize(("environ", "is_enabled"), [({}, True), ({"PYTHONNOUSERSITE": "1"}, False)])
def test_packages_of_the_user_are_found_and_no_module_of_theirs_runs(
    search_path: list[str], environ: Mapping[str, str], is_enabled: bool
) -> None:
    """As the interpreter would without -I: unless the job has switched that off."""
    isolate(environ)

    assert site.ENABLE_USER_SITE is is_enabled
    for name in ("execsitecustomize", "execusercustomize"):
        assert getattr(site, name)() is None
    assert "/opt/site" in search_path


@pytest.mark.parametrize(
    ("entry", "prefix", "expected"),
    [
        ("work", "/usr", True),
        ("work/src", "/usr", True),
        ("work/../work/src", "/usr", True),
        ("other", "/usr", False),
        (".", "/usr", False),
        ("work/.venv/lib", "work/.venv", False),
        ("work/.venv", "work/.venv", False),
        ("work/src", "work/.venv", True),
        ("work/src", "work", True),
    ],
)
@pytest.mark.parametrize("which", ["prefix", "base_prefix"])
@pytest.mark.parametrize("is_named", [True, False])
def test_an_entry_is_in_the_workspace_unless_it_is_the_interpreters(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    entry: str,
    prefix: str,
    expected: bool,
    which: str,
    is_named: bool,
) -> None:
    """The working directory stands for a workspace that has no variable."""
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path / prefix) if name == which else "/usr")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path if is_named else tmp_path / "work")
    environ = {"GITHUB_WORKSPACE": str(tmp_path / "work")} if is_named else {}

    assert is_in_workspace(str(tmp_path / entry), environ) is expected


@pytest.mark.parametrize(
    ("module", "first"),
    [("gate", str(ROOT)), ("gate.cli", str(ROOT)), ("gateway", "/opt/lib"), ("pip", "/opt/lib")],
)
def test_only_the_gates_own_modules_are_looked_for_beside_it(
    search_path: list[str], monkeypatch: pytest.MonkeyPatch, module: str, first: str
) -> None:
    """Any module runs as the program that it is called, with its arguments."""
    ran: list[tuple[object, ...]] = []

    def run_module(name: str, **options: object) -> None:
        ran.append((name, options, sys.path[0], sys.argv))

    monkeypatch.setattr(runpy, "run_module", run_module)
    monkeypatch.setattr(sys, "argv", ["start.py", module, "--version"])

    assert enter(module, ["--version", "x"]) == 0
    options = {"run_name": "__main__", "alter_sys": True}
    assert ran == [(module, options, first, [module, "--version", "x"])]
    assert "/opt/site" in search_path


@pytest.mark.parametrize("mode", ActionMode)
def test_a_token_stops_what_runs_code_under_test(mode: ActionMode) -> None:
    """Blanks are no token; a mode that needs one may have it."""
    check_token({"INPUT_MODE": mode, "INPUT_TOKEN": " \n"})
    given = {"INPUT_MODE": f" {mode} ", "INPUT_TOKEN": "ghs_x"}
    if mode in TRUSTED_MODES:
        check_token(given)
    else:
        with pytest.raises(UsageError, match=f"the mode {mode} takes no token"):
            check_token(given)


@pytest.mark.parametrize("mode", ["", "chek", "a\n::error::b"])
def test_a_token_with_a_mode_that_there_is_not_is_refused_as_a_checks(mode: str) -> None:
    """The mode may be any text of the workflow, which the message does not repeat."""
    with pytest.raises(UsageError, match=r"^input token: the mode check takes no token"):
        check_token({"INPUT_MODE": mode, "INPUT_TOKEN": "ghs_x"})


class Preparation:
    """What is missing, and what was asked, isolated and installed; nothing is copied."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.missing: list[str] = []
        self.asked: list[tuple[str, bool]] = []
        self.installed: list[tuple[Path, list[str]]] = []
        self.isolated: list[Mapping[str, str]] = []
        monkeypatch.setattr(launch, "isolate", self.isolated.append)
        monkeypatch.setattr(launch, "list_missing", self._list_missing)
        monkeypatch.setattr(launch, "install", self._install)
        monkeypatch.setattr(launch, "copy_package", lambda directory: directory.mkdir() or directory)
        self.gpu = root / "nvidiactl"
        monkeypatch.setattr(launch, "_GPU_DEVICE", self.gpu)

    def _list_missing(self, mode: str, *, has_gpu: bool) -> list[str]:
        assert len(self.isolated) > len(self.asked)  # or the workspace would say what is there
        self.asked.append((mode, has_gpu))
        return self.missing

    def _install(self, directory: Path, _: Mapping[str, str], missing: list[str]) -> None:
        self.installed.append((directory, missing))


@pytest.fixture
def preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preparation:
    return Preparation(tmp_path, monkeypatch)


@pytest.mark.parametrize(("mode", "is_trusted"), [("check", False), ("refresh", False), ("publish", True)])
@pytest.mark.parametrize("given", ["", "/opt/named"])
def test_packages_stand_in_front_only_where_nothing_is_measured(
    preparation: Preparation, tmp_path: Path, mode: str, is_trusted: bool, given: str
) -> None:
    """Then the job's own path follows; elsewhere the packages are named apart, and come last."""
    prepared = prepare_environment(
        {"INPUT_MODE": f" {mode}", "RUNNER_TEMP": str(tmp_path), "PYTHONPATH": given, "HOME": "/root"}
    )

    (directory,) = tmp_path.glob("compile-gate-*")
    front = [str(directory / "source"), *([str(directory / "packages")] if is_trusted else [])]
    assert prepared["PYTHONPATH"].split(os.pathsep) == [*front, *([given] if given else [])]
    assert prepared[PACKAGES_VARIABLE] == ("" if is_trusted else str(directory / "packages"))
    assert prepared["HOME"] == "/root"
    assert preparation.installed == []


@pytest.mark.parametrize(
    ("has_device", "device", "has_gpu"),
    [(True, "", True), (True, "cuda", True), (True, " cpu ", False), (False, "", False)],
)
def test_what_watches_a_gpu_is_needed_where_one_is_measured_on(
    preparation: Preparation, tmp_path: Path, has_device: bool, device: str, has_gpu: bool
) -> None:
    """A machine without a GPU, or an input that names the CPU, needs nothing of it."""
    if has_device:
        preparation.gpu.touch()
    preparation.missing = ["rich"]

    prepare_environment({"INPUT_MODE": "check", "INPUT_DEVICE": device, "RUNNER_TEMP": str(tmp_path)})

    (directory,) = tmp_path.glob("compile-gate-*")
    assert preparation.asked == [("check", has_gpu)]
    assert preparation.installed == [(directory / "packages", ["rich"])]


def test_outside_a_runner_the_gate_is_put_where_temporary_files_go(
    preparation: Preparation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable names no directory: nothing appears in the workspace."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    (source,) = prepare_environment({"RUNNER_TEMP": ""})["PYTHONPATH"].split(os.pathsep)

    assert Path(source).parents[1] == tmp_path
    assert preparation.asked == [("", False)]


def test_each_step_gets_a_copy_of_its_own_with_metadata(preparation: Preparation, tmp_path: Path) -> None:
    """A step that has measured could have written to an older one."""
    environ = {"INPUT_MODE": "check", "RUNNER_TEMP": str(tmp_path)}

    sources = [prepare_environment(environ)["PYTHONPATH"] for _ in range(2)]

    assert len({*sources}) == 2
    (metadata,) = Path(sources[0]).iterdir()
    assert metadata.name == "compile_gate-0.1.0.dist-info"
    assert (metadata / "METADATA").read_text().splitlines() == [
        *("Metadata-Version: 2.1", "Name: compile-gate", "Version: 0.1.0")
    ]
    assert preparation.installed == []


def test_the_next_program_reads_the_secrets_from_a_file_that_has_no_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its environment and its arguments have none of them; once read, the file is closed."""
    came: dict[str, object] = {}

    def execve(path: str, command: list[str], environ: dict[str, str]) -> None:
        descriptor = os.dup(int(command[-1]))
        came.update(
            path=path,
            command=command[:-1],
            environ=environ,
            is_inherited=os.get_inheritable(int(command[-1])),
            given=read_given(str(descriptor)),
        )
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    monkeypatch.setattr(os, "execve", execve)
    secrets = {"INPUT_TOKEN": "ghs_x", "GITHUB_OUTPUT": "/runner/output"}
    plain = {"PYTHONPATH": f"/opt/source{os.pathsep}/opt/named", "HOME": "/root"}

    become_action({**secrets, **plain})

    start = "/opt/source/gate/action/start.py"
    assert came == {
        "path": sys.executable,
        "command": [sys.executable, "-I", "-S", start, "gate.action.modes"],
        "environ": plain,
        "is_inherited": True,
        "given": secrets,
    }


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MachineError("pip is missing", "Install it."), 4, "pip is missing. Install it."),
        (UsageError("jinja2 is old", "Upgrade it."), 2, "jinja2 is old. Upgrade it."),
        (OSError(28, "No space left on device"), 4, "put in place: No space left on device. Free some"),
        (shutil.Error("x" * 300), 4, f"put in place: {'x' * 200}. Free some"),
        (KeyError("x"), 1, "KeyError: 'x'. This is a bug in compile-gate: please report it."),
    ],
)
@pytest.mark.parametrize("output", ["output", "no such directory/output"])
def test_a_launch_that_fails_says_why_and_has_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    *,
    error: Exception,
    code: int,
    words: str,
    output: str,
) -> None:
    """Also where the runner's file of outputs cannot be written."""

    def fail(_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(launch, "prepare_environment", fail)

    assert launch.launch({"GITHUB_OUTPUT": str(tmp_path / output)}) == code
    printed = capsys.readouterr().out
    assert printed.startswith("::error title=compile-gate::")
    assert words in printed
    if output == "output":
        assert parse_command_file((tmp_path / output).read_text()) == {"exit-code": str(code)}


def test_with_a_token_nothing_is_put_in_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal comes before the interpreter's packages are looked at."""
    begun: list[object] = []
    monkeypatch.setattr(launch, "prepare_environment", begun.append)
    monkeypatch.setattr(launch, "become_action", begun.append)

    assert launch.launch({"INPUT_TOKEN": "ghs_x"}) == 2
    assert begun == []
    assert "takes no token" in capsys.readouterr().out


def test_the_action_starts_in_the_environment_that_was_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is printed or returned: the process becomes another program."""
    became: list[object] = []
    monkeypatch.setattr(launch, "prepare_environment", lambda environ: {**environ, "PREPARED": "1"})
    monkeypatch.setattr(launch, "become_action", became.append)

    launch.launch({"INPUT_MODE": "check"})

    assert became == [{"INPUT_MODE": "check", "PREPARED": "1"}]
