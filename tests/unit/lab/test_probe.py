"""The probe of the machine that runs these tests."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gate.lab import probe
from gate.lab.arms.interpreter import SLOW_IMPORT_FIX
from gate.lab.doctor import examine_machine
from gate.lab.probe import find_existing, probe_compiler, probe_machine
from gate.lab.trials.bench import LabSettings
from gate.programs import count_cores
from gate.records.events import Check
from gate.records.run import Arm

STAND_IN_TORCH = "__version__ = '9.8.7'\nclass cuda:\n    device_count = staticmethod(lambda: 3)\n"


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torch that imports at once."""
    package = tmp_path / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN_TORCH, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package


def test_finds_what_is_there(fake_torch: Path, arm: Arm, settings: LabSettings) -> None:
    """Interpreter, torch, cores, memory and disk of this machine are found."""
    assert fake_torch.is_dir()
    state = probe_machine(arm, settings)
    assert (sys.version.split()[0], "9.8.7", str(fake_torch), "", 3) == (
        state.python,
        state.torch,
        state.torch_path,
        state.torch_problem,
        state.torch_devices,
    )
    assert count_cores() == state.cores >= 1
    assert state.memory_bytes > 0
    assert state.disk_bytes > 0
    assert state.gpu is None
    assert 0.0 <= state.steal <= 1.0


def test_asks_the_workers_interpreter_for_nvml(fake_torch: Path, arm: Arm, settings: LabSettings) -> None:
    """Python's message shows what cannot be imported there, whatever the gate can import."""
    (fake_torch.parent / "pynvml.py").write_text("raise ImportError('no such library')", encoding="utf-8")
    assert probe_machine(arm, settings).nvml_problem == "ImportError: no such library"
    (fake_torch.parent / "pynvml.py").write_text("def nvmlInit(): pass", encoding="utf-8")
    assert probe_machine(arm, settings).nvml_problem == ""


@pytest.fixture
def examine_script(arm: Arm, settings: LabSettings, tmp_path: Path) -> Callable[[str], tuple[Check, ...]]:
    """Examine this machine with a shell script in place of the interpreter."""
    python = tmp_path / "python"

    def examine(script: str) -> tuple[Check, ...]:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return examine_machine(probe_machine(replace(arm, python=str(python)), settings))

    return examine


def test_a_slow_import_is_no_missing_torch(
    examine_script: Callable[[str], tuple[Check, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has its seconds and the fix; nothing has to be installed."""
    monkeypatch.setattr(probe, "IMPORT_LIMIT_S", 0.5)
    of_python, of_torch, *_ = examine_script("exec sleep 60")
    assert "/python, importing torch, hangs (0." in of_python.finding
    assert of_python.fix == SLOW_IMPORT_FIX
    assert (of_torch.finding, of_torch.fix) == ("unknown", "See what is said of python.")


def test_an_interpreter_that_dies_shows_its_signal_and_last_lines(
    examine_script: Callable[[str], tuple[Check, ...]], tmp_path: Path
) -> None:
    """As if its torch lacked a library."""
    of_python, *_ = examine_script("echo no libcudnn >&2; kill -SEGV $$")
    python = tmp_path / "python"
    assert of_python.finding == f"{python}, importing torch, died (SIGSEGV): no libcudnn"
    assert of_python.fix == f"Try `{python} -c 'import torch'`."


def test_asks_the_workers_interpreter_for_its_headers(
    fake_torch: Path, arm: Arm, settings: LabSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory without Python.h is named, unless the compiler gets another."""
    include = fake_torch.parent / "include"
    hook = f"import sysconfig\nsysconfig.get_path = lambda *_: {str(include)!r}\n"
    (fake_torch.parent / "sitecustomize.py").write_text(hook, encoding="utf-8")
    assert probe_machine(arm, settings).headers_lacking == str(include)
    headers = fake_torch.parent / "headers" / "Python.h"
    headers.parent.mkdir()
    headers.touch()
    monkeypatch.setenv("CPATH", str(headers.parent))
    assert probe_machine(arm, settings).headers_lacking == ""
    monkeypatch.delenv("CPATH")
    include.mkdir()
    headers.rename(include / "Python.h")
    assert probe_machine(arm, settings).headers_lacking == ""


def test_torch_that_cannot_be_imported(fake_torch: Path, arm: Arm, settings: LabSettings) -> None:
    """The message is its error's first line, whatever it prints before."""
    (fake_torch / "__init__.py").write_text(
        "print('noise')\nraise OSError('no libc10\\nmore')", encoding="utf-8"
    )
    state = probe_machine(arm, settings)
    assert (state.torch, state.torch_problem) == ("", "OSError: no libc10")


def test_interpreter_that_does_not_run(arm: Arm, settings: LabSettings) -> None:
    """The interpreter is unknown, and the rest is still found."""
    state = probe_machine(replace(arm, python="/no/python"), settings)
    assert (state.python, state.torch, state.headers_lacking) == ("", "", "")
    assert state.cores >= 1


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is not there is named."""
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert probe_compiler() == ("", "no-such-compiler is not installed")


def test_compiler_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler without its headers is reported with its own message."""
    compiler = tmp_path / "my-g++"
    script = '#!/bin/sh\ncase "$1" in -dump*) echo 1.2.3;; *) echo "fatal: no <vector>"; exit 1;; esac\n'
    compiler.write_text(script, encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert probe_compiler() == ("my-g++ 1.2.3", f"{compiler} cannot compile: fatal: no <vector>")


def test_output_directory_need_not_exist(tmp_path: Path) -> None:
    """A missing output directory is judged by its parent."""
    assert tmp_path == find_existing(tmp_path / "a" / "b")
