"""Make the virtual environment that `make gate` and `make test` run in; standard library only.

    python3 tools/bootstrap.py .venv models
    python3 tools/bootstrap.py .venv models,test
    python3 tools/bootstrap.py .venv-torch-2.15.0 models,test 2.15.0

Where the interpreter already has torch, that torch is what the gate must measure: the new
environment then sees the interpreter's own packages (appended, through a .pth file, because
``--system-site-packages`` shows the packages of the base installation and not those of a virtual
environment), and pip is held to its torch version. Elsewhere the versions of constraints.txt are used,
with another torch where one is named.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINIMUM_PYTHON = (3, 11)
UNSAFE = " '\""  # Inductor takes its compiler commands apart as a shell would


def find_host_torch() -> str:
    """Return the version of this interpreter's torch, or '' where it has none."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def list_host_packages() -> list[str]:
    """Return the directories this interpreter imports packages from."""
    return [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]


def compute_stamp(extras: str, host_torch: str, torch: str) -> str:
    """Return a hash of all that decides what is installed."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt", "tools/bootstrap.py"):
        digest.update((ROOT / name).read_bytes())
    digest.update(repr((str(ROOT), extras, host_torch, torch, sys.executable, sys.version)).encode())
    return digest.hexdigest()


def create_environment(directory: Path, host_torch: str) -> Path:
    """Create the environment and return its interpreter."""
    venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt", clear=True).create(directory)
    interpreter = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if host_torch:
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        done = subprocess.run([interpreter, "-c", code], check=True, capture_output=True, text=True)
        (Path(done.stdout.strip()) / "host_packages.pth").write_text("\n".join(list_host_packages()) + "\n")
    return interpreter


def write_constraints(directory: Path, host_torch: str, torch: str) -> Path:
    """Write the versions that pip is held to, or find them."""
    pinned = ROOT / "constraints.txt"
    if not (host_torch or torch):
        return pinned
    constraints = directory / "own-constraints.txt"
    # A release of torch needs its own of triton.
    of_torch = ("torch==", "triton==")
    others = [line for line in pinned.read_text().splitlines() if torch and not line.startswith(of_torch)]
    constraints.write_text("\n".join([*others, f"torch=={torch or host_torch}"]) + "\n")
    return constraints


def install(interpreter: Path, extras: str, constraints: Path) -> None:
    """Install this checkout with its extras into the environment."""
    target = f"{ROOT}[{extras}]"
    command = [
        str(interpreter),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    subprocess.run([*command, "--constraint", str(constraints), "--editable", target], check=True)
    compile_packages(interpreter)


def compile_packages(interpreter: Path) -> None:
    """Compile what was installed to bytecode on all cores: pip uses one, for more than a minute.

    Without it every process would, where PYTHONDONTWRITEBYTECODE is set. Packages hold files of other
    Pythons, which this one cannot compile: as with pip, that is no fault. Of the collections of models,
    a third of everything, only those that the registry is built from are compiled, by importing them.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for code in (_COMPILE_PACKAGES, _IMPORT_MODELS):
        subprocess.run(
            [interpreter, "-c", code], env=environment, check=False, stdout=subprocess.DEVNULL, cwd=ROOT
        )


_COMPILE_PACKAGES = r"""
import compileall, re, sysconfig
models = re.compile(r"[\\/](transformers|diffusers)[\\/](models|pipelines)[\\/]")
compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0, rx=models)
"""
_IMPORT_MODELS = """
import importlib, pkgutil
import gate.models
for found in pkgutil.iter_modules(gate.models.__path__, "gate.models."):
    importlib.import_module(found.name)
"""


def main(directory_name: str, extras: str, torch: str = "") -> int:
    """Make or reuse the environment; return the process exit code."""
    if sys.version_info < MINIMUM_PYTHON:
        print(f"compile-gate needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}.")
        print("Name another one: make gate PYTHON=python3.12")
        return 2
    directory = (ROOT / directory_name).resolve()
    if set(UNSAFE) & set(str(directory)):
        print(f"torch cannot compile from {directory}: C++ compilers stumble over blanks and quotes.")
        print("Name a path that has none: make gate VENV=$HOME/.venvs/compile-gate")
        return 2
    host_torch = "" if torch else find_host_torch()
    stamp_file = directory / "compile-gate.stamp"
    stamp = compute_stamp(extras, host_torch, torch)
    if stamp_file.exists() and stamp in stamp_file.read_text().split():
        return 0
    named = f"torch {torch}" if torch else "torch from constraints.txt"
    whose = f"torch {host_torch} of {sys.executable}" if host_torch else named
    print(f"Installing into {directory} ({whose}); the first time takes a few minutes ...", flush=True)
    start = time.monotonic()
    interpreter = directory / "bin" / "python"
    if not stamp_file.exists() or not interpreter.exists():
        interpreter = create_environment(directory, host_torch)
    try:
        install(interpreter, extras, write_constraints(directory, host_torch, torch))
    except subprocess.CalledProcessError as error:
        print(f"pip could not install compile-gate (exit {error.returncode}); its message is above.")
        print(f"Fix what it names and run make again, or remove {directory} to start afresh.")
        return 4
    # A larger set of extras also serves the smaller ones, so both stamps are kept.
    smaller = compute_stamp(extras.split(",", maxsplit=1)[0], host_torch, torch)
    stamp_file.write_text(f"{stamp}\n{smaller}\n")
    print(f"Installed in {time.monotonic() - start:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
