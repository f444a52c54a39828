"""Run ``python -m gate.action`` with the interpreter that owns torch, without changing its environment.

The gate's own packages are installed into a directory of their own, and only those that the
interpreter lacks. That directory is *appended* to ``sys.path`` (``PYTHONPATH`` would go in front of
the environment's packages and shadow torch's dependencies), so the environment under test always wins.
Only the package ``gate`` itself goes in front, in a directory that holds nothing else.

Standard library only, and nothing that Python 3.7 cannot parse: this file tells old ones that they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
REQUIREMENTS = HERE / "requirements.txt"
# Where a package that the environment has is older than this, the gate cannot use it; pyproject.toml
# says the same, and a test compares the two.
MINIMUM_VERSIONS = {
    "filelock": "3.13",
    "jsonschema": "4.20",
    "packaging": "23.0",
    "psutil": "5.9",
    "pytest": "8.0",
    "pytest-benchmark": "5.0",
    "pyyaml": "6.0",
    "requests": "2.31",
    "rich": "13.0",
    "urllib3": "2.2",
}
PACKAGES_VARIABLE = "COMPILE_GATE_PACKAGES"
USAGE, MACHINE = 2, 4  # gate.errors.ExitCode, which cannot be imported yet


class StartError(Exception):
    """The gate cannot be started: exit code, what is wrong, how to fix it."""

    def __init__(self, exit_code: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.exit_code = exit_code
        self.what = what
        self.fix = fix


def main() -> int:
    """Prepare, run the gate in a process of its own, and return its exit code."""
    try:
        environment = prepare_environment(os.environ.copy())
    except StartError as error:
        text = f"{error.what}. {error.fix}".replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::error title=compile-gate::{text}", flush=True)
        return error.exit_code
    # -P: a directory `gate` in the repository under test must not be taken for this package.
    return subprocess.call([sys.executable, "-P", "-m", "gate.action"], env=environment)


def prepare_environment(environment: dict[str, str]) -> dict[str, str]:
    """Put the gate and what it needs in place and return the environment that finds them.

    Raises:
        StartError: The interpreter is too old, or a package cannot be had.
    """
    if sys.version_info < MINIMUM_PYTHON:
        version = ".".join(map(str, sys.version_info[:3]))
        what = f"compile-gate needs Python 3.11 or later; {sys.executable} is {version}"
        raise StartError(USAGE, what, "Name another one in the input python.")
    place = Path(environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / f"compile-gate-{compute_stamp()}"
    packages = install_packages(place / "packages")
    paths = [str(copy_package(place / "source")), environment.get("PYTHONPATH", "")]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        PACKAGES_VARIABLE: str(packages),
    }


def compute_stamp() -> str:
    """Compute a name that changes with the packages, the interpreter and the gate's own path."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes())
    digest.update(repr((sys.executable, sys.version, str(PACKAGE))).encode())
    return digest.hexdigest()[:12]


def install_packages(directory: Path) -> Path:
    """Install what the interpreter lacks into ``directory``, from the locked list, and return it.

    Raises:
        StartError: pip could not, or a package of the environment is too old.
    """
    missing = list_missing_requirements()
    if not missing or directory.is_dir():
        return directory
    unfinished = directory.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    wanted = unfinished / "requirements.txt"
    wanted.write_text("".join(missing))
    # --no-deps: the list is complete, and what the environment has must not be installed again.
    options = [
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--target",
        str(unfinished),
    ]
    command = [*find_pip(directory.with_suffix(".pip")), "install", *options, "--requirement", str(wanted)]
    if subprocess.run(command, check=False).returncode != 0:
        fix = "pip's message is above; a runner without network needs them in its image."
        raise StartError(MACHINE, "pip could not install the gate's own packages", fix)
    unfinished.rename(directory)
    return directory


def list_missing_requirements() -> list[str]:
    """List the locked requirements that this interpreter does not have, each as pip reads it.

    A package that is there is left alone, whatever the lock says, unless the gate cannot use it.

    Raises:
        StartError: It cannot.
    """
    from importlib import metadata  # noqa: PLC0415 - new in Python 3.8; the version is checked before

    missing = []
    for block in re.findall(r"^[A-Za-z0-9].*\n(?:[ \t]+.*\n)*", REQUIREMENTS.read_text(), re.MULTILINE):
        name = block.partition("==")[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(block)
            continue
        minimum = MINIMUM_VERSIONS.get(name, "0")
        if parse_version(version) < parse_version(minimum):
            what = f"{sys.executable} has {name} {version}, and the gate needs {minimum}"
            raise StartError(USAGE, what, "Upgrade that package where torch is installed.")
    return missing


def parse_version(text: str) -> tuple[int, ...]:
    """Parse the leading numbers of a version, for comparison."""
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def find_pip(directory: Path) -> list[str]:
    """Find a pip for this interpreter: its own, or one in an environment made for it.

    Raises:
        StartError: There is neither pip nor venv.
    """
    options = ["-m", "pip", "--disable-pip-version-check"]
    silent = subprocess.DEVNULL
    probe = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], check=False, stdout=silent, stderr=silent
    )
    if probe.returncode == 0:
        return [sys.executable, *options]
    if subprocess.run([sys.executable, "-m", "venv", str(directory)], check=False).returncode != 0:
        what = f"{sys.executable} has neither pip nor venv"
        raise StartError(MACHINE, what, "Install compile-gate's dependencies where torch is installed.")
    return [str(directory / "bin" / "python"), *options]


def copy_package(directory: Path) -> Path:
    """Copy the package ``gate`` to where nothing else lies, and return that directory.

    The action's checkout has ``tests`` and ``tools`` beside it, which must not come in front of those
    of the repository under test. The metadata is what an installation would leave.
    """
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(PACKAGE, directory / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    found = re.search(r'^__version__ = "([^"]+)"', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    version = found[1] if found else "0"
    metadata = directory / f"compile_gate-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: compile-gate\nVersion: {version}\n")
    return directory


if __name__ == "__main__":
    sys.exit(main())
