"""Another interpreter as an arm: it measures with this installation's gate and its own torch.

First on its workers' path is a copy of the package ``gate`` alone; last (:mod:`gate` appends it) are links to
the packages of pytest that the interpreter lacks. So nothing is shadowed, and this interpreter's torch cannot
be imported.
"""

import json
import os
import shutil
from dataclasses import dataclass
from importlib import metadata
from itertools import count
from pathlib import Path

from packaging.requirements import Requirement

from gate.errors import MachineError, UsageError
from gate.installation import (
    OLDEST_PACKAGES,
    OLDEST_PYTHON,
    PACKAGES_VARIABLE,
    copy_package,
    is_installed,
    is_older,
)
from gate.lab.workers.worker_environment import keep_variables
from gate.programs import ProgramAnswer, ask_program

_NEEDED = ("pytest", "pytest-benchmark")  # what a worker imports besides torch

IMPORT_LIMIT_S = 120.0  # importing torch from a cold network disk takes a minute
SLOW_IMPORT_FIX = (
    "Try again: a first import reads some GB. Wait for other programs, or install torch on a local disk."
)

# Run in the other interpreter; each prints one line of JSON. Nothing of the gate is imported by the first.
_ASK_VERSIONS = """
import importlib.metadata as metadata, json, sys
versions = {}
for name in json.loads(sys.argv[1]):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print("\\n" + json.dumps({"python": "%d.%d" % sys.version_info[:2], "packages": versions}))
"""
_ASK_IMPORTS = """
import json
answer = {"torch": "", "problem": "", "module": "torch"}
try:
    import torch
    answer["torch"] = str(torch.__version__)
    answer["module"] = "gate.suite.plugin"
    import gate.worker.worker, gate.suite.plugin
    answer["module"] = "pytest_benchmark.plugin"
    import pytest_benchmark.plugin
except BaseException as error:
    answer["problem"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
print("\\n" + json.dumps(answer))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignInterpreter:
    """``variables`` are those that only its workers get."""

    python: str
    torch: str
    variables: dict[str, str]

    @property
    def label(self) -> str:
        return f"torch {self.torch} ({self.python})"


def prepare_interpreter(python: str, option: str, scratch: Path) -> ForeignInterpreter:
    """Make an interpreter ready to measure; all arms share the directory ``scratch``.

    Errors name it by ``option``, as in ``--base-python``.

    Raises:
        UsageError: It does not run, is too old, or lacks torch or something that cannot be lent.
        MachineError: It does not answer in time.
    """
    program = shutil.which(python)
    if program is None:
        raise UsageError(
            f"{option}: there is no program {python}", "Give the path of a Python interpreter with torch."
        )
    path = str(Path(program).absolute())  # not resolved: a virtual environment is known by its link
    packages = _lend_packages(path, option, scratch)
    inherited = keep_variables(os.environ).get("PYTHONPATH", "")
    paths = [str(copy_package(scratch / "source")), *([inherited] if inherited else [])]
    variables = {"PYTHONPATH": os.pathsep.join(paths), PACKAGES_VARIABLE: str(packages)}
    return ForeignInterpreter(python=path, torch=_check_imports(path, option, variables), variables=variables)


def list_needed() -> tuple[str, ...]:
    needed: set[str] = set()
    waiting = list(_NEEDED)
    while waiting:
        name = waiting.pop()
        if name in needed or not is_installed(name):
            continue
        needed.add(name)
        required = [Requirement(line) for line in metadata.requires(name) or ()]
        # Not what another system or an older Python needs: something may have put that on our path.
        waiting += [
            requirement.name
            for requirement in required
            if not requirement.marker or requirement.marker.evaluate({"extra": ""})
        ]
    return tuple(sorted(needed))


def _lend_packages(python: str, option: str, scratch: Path) -> Path:
    stem = f"packages-{option.strip('-')}"  # an option may name many
    directory = next(path for n in count(1) if not (path := scratch / f"{stem}{n if n > 1 else ''}").exists())
    directory.mkdir()
    needed = list_needed()
    # Not with -P, which an interpreter that is too old does not know: the empty directory does instead.
    answer = _ask((python, "-c", _ASK_VERSIONS, json.dumps(needed)), option, {}, directory)
    have = _check_versions(python, option, answer)
    for name in needed:
        if name not in have:
            _link_distribution(name, directory)
    return directory


def _check_versions(python: str, option: str, answer: ProgramAnswer) -> dict[str, str]:
    reported = answer.read_record()
    if not reported:
        what = f"{option}: {python} {answer.describe_end()}"
        raise UsageError(what, "Give the path of a Python interpreter.")
    release, have = str(reported["python"]), dict(reported["packages"])
    if is_older(release, OLDEST_PYTHON):
        raise UsageError(
            f"{option}: {python} is Python {release}",
            f"Use Python {OLDEST_PYTHON} or newer.",
        )
    for name in _NEEDED:
        oldest = OLDEST_PACKAGES[name]
        if name in have and is_older(have[name], oldest):
            raise UsageError(
                f"{option}: {python} has {name} {have[name]}, and the gate needs {oldest}",
                f"Upgrade {name} there, or uninstall it: the gate then lends its own.",
            )
    return have


def _link_distribution(name: str, directory: Path) -> None:
    distribution = metadata.distribution(name)
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    for top in tops:
        if not (directory / top).exists():  # a namespace that two distributions share
            (directory / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


def _check_imports(python: str, option: str, variables: dict[str, str]) -> str:
    answer = _ask((python, "-P", "-c", _ASK_IMPORTS), option, variables, Path(variables[PACKAGES_VARIABLE]))
    reported = answer.read_record()
    if not reported:
        what = f"{option}: {python}, importing torch, {answer.describe_end()}"
        raise UsageError(what, f"Try `{python} -c 'import torch'`.")
    if reported.get("torch") and not reported["problem"]:
        return str(reported["torch"])
    module, problem = reported.get("module", "torch"), reported.get("problem", "it does not say why")
    fix = f"Install torch for {python}, or name an interpreter that has it."
    if module != "torch":
        fix = f"Install pytest and pytest-benchmark for {python}."
    raise UsageError(f"{option}: {python} cannot import {module}: {problem}", fix)


def _ask(command: tuple[str, ...], option: str, variables: dict[str, str], directory: Path) -> ProgramAnswer:
    environment = keep_variables(os.environ) | variables
    answer = ask_program(command, limit_s=IMPORT_LIMIT_S, directory=directory, variables=environment)
    if answer.is_late:
        raise MachineError(f"{option}: {command[0]}, importing torch, {answer.problem}", SLOW_IMPORT_FIX)
    return answer
