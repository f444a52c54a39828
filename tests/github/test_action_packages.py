"""Where the gate's own packages come from: the environment's first, else the locked list, never into it."""

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
    """What the interpreter has: everything in the lock, at its version; a test takes away or ages."""
    found = dict(LOCKED)

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "version", version)
    return found


def test_the_lock_has_all_that_the_gate_needs() -> None:
    """A minimum that is raised without the lock would fail on every bare runner; pip takes all by hash."""
    wanted = {name for mode in ActionMode for name in list_packages(mode, has_gpu=True)}
    entries = re.split(r"\n(?=[a-z])", REQUIREMENTS.read_text().partition("\n\n")[0])

    assert not any(is_older(LOCKED[name], OLDEST_PACKAGES[name]) for name in wanted)
    assert set(LOCKED) == wanted | find_needed(*wanted)
    assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#"))


def find_needed(*names: str) -> set[str]:
    """Find what installed packages need in their turn, by what they say."""
    needed, waiting = set[str](), [*names]
    while waiting:
        required = [Requirement(line) for line in metadata.requires(waiting.pop()) or ()]
        found = {
            one.name.lower().replace("_", "-")
            for one in required
            if not one.marker or one.marker.evaluate({"extra": ""})
        }
        waiting += found - needed
        needed |= found
    return needed


@pytest.mark.parametrize("mode", ActionMode)
def test_an_environment_that_has_everything_needs_nothing(have: dict[str, str], mode: ActionMode) -> None:
    """Nor does Debian 12's: its argcomplete is too old for a command that no mode calls."""
    have["argcomplete"] = "2.0.0"

    assert list_missing(mode, has_gpu=True) == []


def test_what_is_there_and_new_enough_stays(have: dict[str, str]) -> None:
    """An older release than the lock's is no reason for pip: what is measured may need it."""
    del have["rich"], have["mdurl"]
    have["jinja2"] = "3.1.0"

    assert list_missing("check", has_gpu=True) == ["rich"]


def test_what_a_package_brings_is_the_business_of_whoever_installed_it(have: dict[str, str]) -> None:
    """An older pytest-benchmark reads the processor by another package than the lock's newer one."""
    del have["py-cpuinfo2"], have["mdurl"]

    assert list_missing("check", has_gpu=True) == []


def test_what_holds_a_token_needs_little(have: dict[str, str]) -> None:
    """Of an empty interpreter it wants no test runner; what is too old for it counts as missing."""
    have.clear()
    have.update({"pyyaml": "6.0.1", "requests": "2.31.0"})  # as Ubuntu 24.04's own interpreter has them

    assert list_missing("publish", has_gpu=True) == ["jsonschema", "requests", "urllib3"]


def test_a_package_that_is_too_old_to_measure_with_is_named(have: dict[str, str]) -> None:
    """It is not shadowed by a newer one: what is measured may need the old one."""
    have |= {"pytest": "7.4.4", "requests": "2.28.1"}

    with pytest.raises(UsageError, match=r"has pytest 7\.4\.4, and the gate needs 8\.0"):
        list_missing("check", has_gpu=True)


def make_wheel(place: Path) -> str:
    """Make a wheel of nothing that is called mdurl, and its line of a locked list."""
    place.mkdir()
    name, info = place / "mdurl-9.0-py3-none-any.whl", "mdurl-9.0.dist-info"
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


def put_lock(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a locked list of one wheel in the place of the gate's."""
    (place / "locked.txt").write_text(make_wheel(place / "wheels"))
    monkeypatch.setattr(launch, "REQUIREMENTS", place / "locked.txt")


@pytest.mark.parametrize("where", ["variables", "file"])
def test_settings_of_an_image_are_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The real pip, told by an image to do something else with packages, and where to find them."""
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
    """A throw-away environment; its pip installs for the same Python, and is given nothing of the step."""
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
    assert [sorted(one.keys() & {"PATH", "INPUT_TOKEN", "PYTHONPATH"}) for one in started] == [["PATH"]] * 2


@pytest.mark.parametrize(
    ("has_pip", "what"), [(True, "pip could not install .*rich"), (False, "has neither pip nor venv")]
)
def test_a_failed_installation_is_a_matter_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pip: bool, what: str
) -> None:
    """Exit code 4, and not a verdict."""
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
    """Every trusted command starts, as far as GitHub's answer, with the few packages it is given."""
    listed = list_packages("publish", has_gpu=False)
    python = make_bare_python(tmp_path, only=listed | find_needed(*listed))
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
    """All else cannot be imported, and each of the list is; a report needs what renders it."""
    listed = list_packages(ActionMode.CHECK, has_gpu=False)
    given = listed | find_needed(*listed)
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
    """For a runner without network: the packages of a check, which has most; the others need no further."""
    text = (ROOT / "docs" / "github-runners.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"A runner without network needs `([^`]+)` in its image", text)
    modes = set(ActionMode) - TRUSTED_MODES
    assert set(told.split()) == {name for mode in modes for name in list_packages(mode, has_gpu=False)}
    (trusted,) = re.findall(r"in jobs with a token only `([^`]+)`", text)
    assert all(set(trusted.split()) == list_packages(mode, has_gpu=True) for mode in TRUSTED_MODES)


def test_whoever_measures_can_watch_a_gpu() -> None:
    """What asks the driver comes with the gate, wherever it is installed from and there is a GPU."""
    assert "nvidia-ml-py" in OLDEST_PACKAGES
    assert "nvidia-ml-py" in list_packages("check", has_gpu=True)
    assert "nvidia-ml-py" not in list_packages("check", has_gpu=False)
    assert "nvidia-ml-py" not in list_packages("publish", has_gpu=True)
