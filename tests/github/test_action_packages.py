"""The source of the gate's packages: the environment's first, else the locked list, never into it."""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from action.samples import make_bare_python
from deliveries import make_comment
from fake.server import FakeGitHub
from packaging.requirements import Requirement
from records import make_passing

from gate.action import launch
from gate.action.inputs import TRUSTED_MODES, ActionMode
from gate.action.launch import REQUIREMENTS, install, list_missing, list_packages
from gate.errors import MachineError, UsageError
from gate.files.codec import VERDICT
from gate.installation import OLDEST_PACKAGES, is_older

ROOT = Path(__file__).resolve().parents[2]
LOCKED: dict[str, str] = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE))


@pytest.fixture
def have(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The interpreter's packages: everything in the lock, at its version; a test removes or ages some."""
    installed = dict(LOCKED)

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    return installed


def test_the_lock_has_all_that_the_gate_needs() -> None:
    """A raised minimum must be in the lock, and pip takes all by hash."""
    wanted = {name for mode in ActionMode for name in list_packages(mode, has_gpu=True)}
    entries = re.split(r"\n(?=[a-z])", REQUIREMENTS.read_text().partition("\n\n")[0])

    assert not any(is_older(LOCKED[name], OLDEST_PACKAGES[name]) for name in wanted)
    assert set(LOCKED) == wanted | list_needed(*wanted)
    assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#"))


def list_needed(*names: str) -> set[str]:
    """The packages that installed ones require, directly or not."""
    needed, waiting = set[str](), [*names]
    while waiting:
        required = [Requirement(line) for line in metadata.requires(waiting.pop()) or ()]
        needs = {
            requirement.name.lower().replace("_", "-")
            for requirement in required
            if not requirement.marker or requirement.marker.evaluate({"extra": ""})
        }
        waiting += needs - needed
        needed |= needs
    return needed


@pytest.mark.parametrize("mode", ActionMode)
def test_an_environment_that_has_everything_needs_nothing(have: dict[str, str], mode: ActionMode) -> None:
    """Nor does Debian 12's: its argcomplete is too old for a command that no mode calls."""
    have["argcomplete"] = "2.0.0"

    assert list_missing(mode, has_gpu=True) == []


def test_what_is_there_and_new_enough_stays(have: dict[str, str]) -> None:
    """Code under test may need a release older than the lock's."""
    del have["rich"], have["mdurl"]
    have["jinja2"] = "3.1.0"

    assert list_missing("check", has_gpu=True) == ["rich"]


def test_what_a_package_brings_is_the_business_of_whoever_installed_it(have: dict[str, str]) -> None:
    """An older pytest-benchmark requires another package than the lock's newer one."""
    del have["py-cpuinfo2"], have["mdurl"]

    assert list_missing("check", has_gpu=True) == []


def test_what_holds_a_token_needs_little(have: dict[str, str]) -> None:
    """An empty interpreter gets no test runner; a package that is too old counts as missing."""
    have.clear()
    have.update({"pyyaml": "6.0.1", "requests": "2.31.0"})  # as Ubuntu 24.04's own interpreter has them

    assert list_missing("publish", has_gpu=True) == ["jsonschema", "requests", "urllib3"]


def test_a_package_that_is_too_old_to_measure_with_is_named(have: dict[str, str]) -> None:
    """No newer one shadows it: code under test may need the old one."""
    have |= {"pytest": "7.4.4", "requests": "2.28.1"}

    with pytest.raises(UsageError, match=r"has pytest 7\.4\.4, and the gate needs 8\.0"):
        list_missing("check", has_gpu=True)


def make_wheel(directory: Path) -> str:
    """Make a wheel of nothing that is called mdurl, and return its line of a locked list."""
    directory.mkdir()
    name, info = directory / "mdurl-9.0-py3-none-any.whl", "mdurl-9.0.dist-info"
    files = {
        "mdurl.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mdurl\nVersion: 9.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    digest = hashlib.sha256(name.read_bytes()).hexdigest()
    return f"mdurl==9.0 --hash=sha256:{digest}\n"


def put_lock(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the gate's locked list by one of one wheel."""
    (directory / "locked.txt").write_text(make_wheel(directory / "wheels"))
    monkeypatch.setattr(launch, "REQUIREMENTS", directory / "locked.txt")


@pytest.mark.parametrize("where", ["variables", "file"])
def test_settings_of_an_image_are_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The image's settings tell the real pip to find packages elsewhere."""
    put_lock(tmp_path, monkeypatch)
    (tmp_path / "constraint.txt").write_text("mdurl==0.1\n")
    settings = {
        "constraint": str(tmp_path / "constraint.txt"),
        "prefix": str(tmp_path / "prefix"),
        "user": "true",
        "target": str(tmp_path / "target"),
        "require-virtualenv": "true",
        "no-index": "true",
        "find-links": str(tmp_path / "wheels"),
    }
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONNOUSERSITE": "1"}
    if where == "variables":
        environ |= {"PIP_" + name.upper().replace("-", "_"): value for name, value in settings.items()}
    else:
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        (tmp_path / "pip.conf").write_text(f"[global]\n{lines}")
        environ |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}

    install(tmp_path / "packages", environ, ["mdurl"])

    assert (tmp_path / "packages" / "mdurl.py").is_file()
    assert not any((tmp_path / name).exists() for name in ("prefix", "target"))


def test_an_interpreter_without_pip_gets_one_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pip of a temporary environment installs for the same Python, without the step's variables."""
    put_lock(tmp_path, monkeypatch)
    monkeypatch.setattr(launch, "find_release", lambda _: "")
    environ = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    started: list[Mapping[str, str]] = []
    run = subprocess.run

    def note_environment(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        started.append(options["env"])
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", note_environment)

    install(tmp_path / "packages", {**environ, "INPUT_TOKEN": "ghs_x", "PYTHONPATH": "src"}, ["mdurl"])

    assert (tmp_path / "pip" / "bin" / "python").exists()
    assert (tmp_path / "packages" / "mdurl.py").is_file()
    assert [sorted(names.keys() & {"PATH", "INPUT_TOKEN", "PYTHONPATH"}) for names in started] == [
        ["PATH"]
    ] * 2


def start_all(monkeypatch: pytest.MonkeyPatch, *statuses: int) -> list[tuple[str, str, Path]]:
    """Let each process end with the next status; return the interpreter, module and directory of each."""
    started: list[tuple[str, str, Path]] = []

    def run(command: list[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[bytes]:
        assert command[1:3] == ["-I", "-S"]
        started.append((command[0], command[4], cwd))
        return subprocess.CompletedProcess(command, statuses[len(started) - 1])

    monkeypatch.setattr(subprocess, "run", run)
    return started


@pytest.mark.parametrize("release", ["", "26.0"])
def test_the_interpreters_own_pip_installs_or_one_of_a_new_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    """Both start beside the packages, where nothing of the workspace is imported."""
    monkeypatch.setattr(launch, "find_release", lambda _: release)
    started = start_all(monkeypatch, 0, 0)

    install(tmp_path / "packages", {}, ["rich"])

    made = [(sys.executable, "venv", tmp_path), (str(tmp_path / "pip/bin/python"), "pip", tmp_path)]
    assert started == ([(sys.executable, "pip", tmp_path)] if release else made)


@pytest.mark.parametrize("status", [1, -9])
@pytest.mark.parametrize(
    ("release", "before", "what"),
    [
        ("26.0", (), r"\(mdurl, rich are missing\)"),
        ("", (), "neither pip nor venv"),
        ("", (0,), "could not install"),
    ],
)
def test_any_status_of_pip_or_venv_but_0_ends_the_step(
    monkeypatch: pytest.MonkeyPatch, *, status: int, release: str, before: tuple[int, ...], what: str
) -> None:
    """A killed one, too; the message names what the interpreter lacks."""
    monkeypatch.setattr(launch, "find_release", lambda _: release)
    started = start_all(monkeypatch, *before, status)

    with pytest.raises(MachineError, match=what):
        install(Path("packages"), {}, ["mdurl", "rich"])

    assert len(started) == len(before) + 1


@pytest.mark.parametrize(
    ("has_pip", "what"), [(True, "pip could not install .*rich"), (False, "has neither pip nor venv")]
)
def test_a_failed_installation_is_a_matter_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pip: bool, what: str
) -> None:
    """The exit code is 4, and there is no verdict."""
    put_lock(tmp_path, monkeypatch)
    monkeypatch.setattr(launch, "find_release", lambda _: "26.0" if has_pip else "")
    (tmp_path / "pip").write_text("no directory can be made here")

    with pytest.raises(MachineError, match=what):
        install(tmp_path / "packages", {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1"}, ["rich"])


@pytest.mark.parametrize(
    "arguments",
    [("publish", "--run-id=1"), ("authorize",), ("propose", f"--head-sha={'a' * 40}", "--head-ref=topic")],
)
def test_what_holds_a_token_runs_with_no_more(
    tmp_path: Path, github: FakeGitHub, arguments: tuple[str, ...]
) -> None:
    """Every trusted command starts, up to GitHub's answer, with its few packages."""
    listed = list_packages("publish", has_gpu=False)
    python = make_bare_python(tmp_path, only=listed | list_needed(*listed))
    work, event = tmp_path / "work", tmp_path / "event.json"
    work.mkdir()
    event.write_text(json.dumps(make_comment("/refresh-baselines")))
    environ = github.environ | {
        "PATH": os.environ["PATH"],
        "GITHUB_RUN_ID": "1",
        "GITHUB_WORKSPACE": str(work),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "issue_comment",
    }
    start = Path(launch.__file__).with_name("start.py")
    whole = [str(python), "-I", "-S", str(start), "gate", "github", *arguments]

    done = subprocess.run(whole, env=environ, cwd=work, capture_output=True, text=True, check=False)

    assert github.requests != []
    assert not any(word in done.stderr for word in ("ModuleNotFound", "PackageNotFound", "Traceback"))


# The modules of what the lock has, where they are not called as their distribution is.
_MODULES = {
    "markdown-it-py": "markdown_it",
    "nvidia-ml-py": "pynvml",
    "py-cpuinfo2": "cpuinfo",
    "pyyaml": "yaml",
    "rpds-py": "rpds",
}
# What the modes start that hold no token; then what is loaded only when it is used.
_IMPORTS = """
import importlib, pkgutil, sys
from pathlib import Path

BLOCKED = set({blocked!r})

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"blocked: {{name}}")

sys.meta_path.insert(0, Wall())
for name in {modules!r}:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{{name}}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
from gate.files.codec import VERDICT
from gate.project.config import load_config
from gate.report import FORMATS, render
from gate.report.text import print_text
verdict = VERDICT.load(Path({verdict!r}))
for name in FORMATS:
    render(verdict, name)
print_text(verdict, verbose=True)
Path("gate.yml").write_text("version: 1")
load_config("gate.yml")
print("imported", *sorted(name for name in {known!r} if name in sys.modules))
"""
_STARTED = (
    *("gate.action.modes", "gate.cli.check", "gate.cli.recording", "gate.cli.reports"),
    *("gate.lab", "gate.measure", "gate.suite", "gate.check"),
)


def test_what_measures_imports_what_is_listed_and_no_more(tmp_path: Path) -> None:
    """Each listed package is imported, and no other can be."""
    listed = list_packages(ActionMode.CHECK, has_gpu=False)
    given = listed | list_needed(*listed)
    modules = {name: _MODULES.get(name, name.replace("-", "_")) for name in {*LOCKED, "argcomplete"}}
    verdict = tmp_path / "verdict.json"
    VERDICT.save(make_passing(), verdict)
    code = _IMPORTS.format(
        blocked=[module for name, module in modules.items() if name not in given],
        modules=_STARTED,
        verdict=str(verdict),
        known=[modules[name] for name in listed],
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[1:] == sorted(modules[name] for name in listed)


def test_the_guide_lists_what_an_image_needs() -> None:
    """It lists the packages of a check, which needs the most."""
    text = (ROOT / "docs" / "github-runners.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"A runner without network needs `([^`]+)` in its image", text)
    modes = set(ActionMode) - TRUSTED_MODES
    assert set(listed.split()) == {name for mode in modes for name in list_packages(mode, has_gpu=False)}
    (trusted,) = re.findall(r"in jobs with a token only `([^`]+)`", text)
    assert all(set(trusted.split()) == list_packages(mode, has_gpu=True) for mode in TRUSTED_MODES)


def test_whoever_measures_can_watch_a_gpu() -> None:
    """With a GPU the driver's package is installed too."""
    assert "nvidia-ml-py" in OLDEST_PACKAGES
    assert "nvidia-ml-py" in list_packages("check", has_gpu=True)
    assert "nvidia-ml-py" not in list_packages("check", has_gpu=False)
    assert "nvidia-ml-py" not in list_packages("publish", has_gpu=True)
