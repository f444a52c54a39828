"""Other interpreters, made for the test: what they borrow, and what is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from gate.errors import MachineError, UsageError
from gate.lab.arms import interpreter as interpreter_module
from gate.lab.arms.interpreter import ForeignInterpreter, list_needed, prepare_interpreter

TORCH = "__version__ = '9.8.7'"
# What a worker sees: where it finds the gate, torch and pytest, and what of ours can be imported.
LOOK = """
import json, sys
import gate, pytest, pytest_benchmark, torch
import importlib.util
print(json.dumps({
    "gate": gate.__file__, "torch": torch.__file__, "pytest": pytest.__file__, "path": sys.path,
    "psutil": importlib.util.find_spec("psutil") is not None,
}))
"""

MakeInterpreter = Callable[..., Path]


def look(interpreter: ForeignInterpreter, **variables: str) -> dict[str, object]:
    """Examine a foreign interpreter as its workers would."""
    environment = {"PATH": os.environ["PATH"], **variables, **interpreter.variables}
    done = subprocess.run(
        [interpreter.python, "-P", "-c", LOOK], env=environment, check=True, capture_output=True, text=True
    )
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.fixture(autouse=True)
def _no_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of these tests inherit no search path."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


def test_bare_interpreter_is_lent_what_it_lacks(make_interpreter: MakeInterpreter, tmp_path: Path) -> None:
    """An interpreter with nothing but torch measures with our gate and pytest, and with its own torch."""
    python = make_interpreter(torch=TORCH)
    interpreter = prepare_interpreter(str(python), "--base-python", tmp_path)
    assert ("9.8.7", f"torch 9.8.7 ({python})") == (interpreter.torch, interpreter.label)
    report = look(interpreter)
    assert report["gate"] == str(tmp_path / "source" / "gate" / "__init__.py")
    assert str(report["torch"]).startswith(str(python.parent.parent))
    assert str(report["pytest"]).startswith(str(tmp_path / "packages-base-python"))
    assert report["psutil"] is False
    assert isinstance(report["path"], list)
    assert (report["path"][0], report["path"][-1]) == (
        str(tmp_path / "source"),
        str(tmp_path / "packages-base-python"),
    )


def test_nothing_but_the_gate_is_in_front(make_interpreter: MakeInterpreter, tmp_path: Path) -> None:
    """The directory in front of the interpreter's packages holds the gate alone."""
    prepare_interpreter(str(make_interpreter(torch=TORCH)), "--base-python", tmp_path)
    assert ["gate"] == [path.name for path in (tmp_path / "source").iterdir()]


def test_torch_cannot_come_from_here(make_interpreter: MakeInterpreter, tmp_path: Path) -> None:
    """An interpreter without torch is refused, although this one has it."""
    python = make_interpreter()
    with pytest.raises(UsageError, match="cannot import torch: ModuleNotFoundError") as caught:
        prepare_interpreter(str(python), "--head-python", tmp_path)
    assert caught.value.what.startswith(f"--head-python: {python}")
    assert caught.value.fix.startswith(f"Install torch for {python}")


def test_own_packages_win(make_interpreter: MakeInterpreter, tmp_path: Path) -> None:
    """The interpreter's own packages are not lent again."""
    python = make_interpreter(torch=TORCH)
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    for file in metadata.files("iniconfig") or ():
        target = site / file
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_binary())
    prepare_interpreter(str(python), "--base-python", tmp_path)
    lent = {path.name for path in (tmp_path / "packages-base-python").iterdir()}
    assert "iniconfig" not in lent
    assert {"pytest", "_pytest", "pluggy", "pytest_benchmark"} <= lent


def test_own_search_path_follows_the_gate(
    make_interpreter: MakeInterpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH is kept, behind the gate."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    interpreter = prepare_interpreter(str(make_interpreter(torch=TORCH)), "--base-python", tmp_path)
    assert f"{tmp_path}/source{os.pathsep}{tmp_path}/mine" == interpreter.variables["PYTHONPATH"]


def test_this_interpreter_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is looked up on PATH and not resolved, so that a virtual environment stays one."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    interpreter = prepare_interpreter(Path(sys.executable).name, "--base-python", tmp_path)
    assert str(Path(sys.executable).absolute()) == interpreter.python
    assert list((tmp_path / "packages-base-python").iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words", "fix"),
    [
        ("exit 1", " died (status 1): it wrote no error", "Give the path of a Python interpreter."),
        ("echo hello", " gave no answer", "Give the path of a Python interpreter."),
        ("""echo '{"python": "3.10", "packages": {}}'""", " is Python 3.10", "Use Python 3.11 or newer."),
        (
            """echo '{"python": "3.12", "packages": {"pytest": "7.4.4"}}'""",
            " has pytest 7.4.4, and the gate needs 8.0",
            "Upgrade pytest there, or uninstall it: the gate then lends its own.",
        ),
        (
            """case $1 in -c) echo '{"python": "3.12", "packages": {}}';; *) echo no >&2; kill -9 $$; esac""",
            ", importing torch, died (SIGKILL): no",
            "Try `",
        ),
    ],
)
def test_unusable_interpreter(tmp_path: Path, script: str, words: str, fix: str) -> None:
    """The error for no Python, an old one, or old packages has the fix."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(UsageError) as caught:
        prepare_interpreter(str(python), "--base-python", tmp_path)
    assert f"--base-python: {python}{words}" == caught.value.what
    assert caught.value.fix.startswith(fix)


def test_an_interpreter_that_imports_slowly_is_neither_dead_nor_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is of CPU seconds; one that hangs is reported so, with the fix."""
    python = tmp_path / "python"
    script = 'case "$1" in -P) sleep 2; echo \'{"torch": "9.8.7", "problem": ""}\';;'
    python.write_text(f'#!/bin/sh\n{script} *) echo \'{{"python": "3.12", "packages": {{}}}}\';; esac\n')
    python.chmod(0o755)
    monkeypatch.setattr(interpreter_module, "IMPORT_LIMIT_S", 1.0)
    assert prepare_interpreter(str(python), "--base-python", tmp_path).torch == "9.8.7"
    python.write_text(python.read_text().replace("sleep 2", "sleep 60"))
    with pytest.raises(MachineError) as caught:
        prepare_interpreter(str(python), "--base-python", tmp_path)
    message = f"--base-python: {python}, importing torch, hangs (0."
    assert caught.value.what.startswith(message)
    assert caught.value.fix == interpreter_module.SLOW_IMPORT_FIX


def test_missing_interpreter(tmp_path: Path) -> None:
    """A path that leads nowhere is named."""
    with pytest.raises(UsageError, match="--base-python: there is no program /no/python"):
        prepare_interpreter("/no/python", "--base-python", tmp_path)


def test_suite_that_cannot_be_imported(
    make_interpreter: MakeInterpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing can be lent, the packages that the interpreter needs are named."""
    monkeypatch.setattr(interpreter_module, "list_needed", tuple)
    with pytest.raises(UsageError, match=r"cannot import gate\.suite\.plugin") as caught:
        prepare_interpreter(str(make_interpreter(torch=TORCH)), "--base-python", tmp_path)
    assert caught.value.fix.startswith("Install pytest and pytest-benchmark for ")


def test_needed_packages_are_few() -> None:
    """Of our dependencies workers need pytest-benchmark, pytest and theirs; torch is not lent."""
    assert {"pytest", "pytest-benchmark", "pluggy", "iniconfig"} <= set(list_needed())
    assert {"torch", "numpy", "psutil", "pyyaml"}.isdisjoint(list_needed())


def test_what_another_python_needs_is_not_lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest needs tomli below Python 3.11 only, whatever is on our path."""
    vendored = tmp_path / "tomli-2.0.1.dist-info"
    vendored.mkdir()
    (vendored / "METADATA").write_text("Metadata-Version: 2.1\nName: tomli\nVersion: 2.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert metadata.version("tomli") == "2.0.1"
    assert "tomli" not in list_needed()
