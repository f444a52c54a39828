"""Processes in which nothing of the workspace can stand in for the gate, pip or the standard library.

They are started with ``-I -S`` and complete ``sys.path`` themselves. What belongs to the step alone
(inputs, command files, tokens) is not in their environment: an environment can be read from outside
for as long as the process lives, whatever the process does to its own copy.
"""

from __future__ import annotations

import os
import runpy
import site
import sys
from collections.abc import Mapping
from pathlib import Path

from gate.installation import PACKAGES_VARIABLE

# What a step talks to its runner with, and what its job could be asked for. A name of these files in
# the environment would let measured code set outputs, paths and variables of later steps; the event
# and the runner's temporary directory say where they lie.
_HIDDEN_PREFIXES = ("INPUT_", "ACTIONS_")
_HIDDEN_NAMES = frozenset(
    (
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"),
        *("GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH", "RUNNER_TEMP"),
    )
)
_START = Path(__file__).resolve().with_name("start.py")
_ROOT = str(_START.parents[2])


def is_hidden(name: str) -> bool:
    """Whether a variable belongs to the step alone."""
    return name in _HIDDEN_NAMES or name.startswith(_HIDDEN_PREFIXES)


def drop_hidden(environ: Mapping[str, str]) -> dict[str, str]:
    """Drop the variables that belong to the step alone."""
    return {name: value for name, value in environ.items() if not is_hidden(name)}


def make_command(module: str, *arguments: str, start: Path = _START) -> list[str]:
    """Make the command that enters a module; ``start`` is this package's ``start.py`` or a copy's."""
    return [sys.executable, "-I", "-S", str(start), module, *arguments]


def enter(module: str, arguments: list[str]) -> int:
    """Run a module as ``python -m`` does, with the interpreter's packages and none of the workspace's."""
    isolate(os.environ)
    if module.partition(".")[0] == "gate":
        sys.path.insert(0, _ROOT)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def isolate(environ: Mapping[str, str]) -> None:
    """Complete ``sys.path`` as the interpreter would have, without the workspace and start-up modules.

    An environment may point into the workspace, as an editable installation does. The gate's own
    packages come last, behind those of the environment.
    """
    _complete_path(environ)
    packages = environ.get(PACKAGES_VARIABLE, "")
    own = [entry for entry in sys.path if entry != packages and not is_workspaces(entry, environ)]
    sys.path[:] = [*own, *([packages] if packages else [])]


def is_workspaces(entry: str, environ: Mapping[str, str]) -> bool:
    """Whether an entry of the search path lies in the workspace and is not the interpreter's own.

    An environment that lies in the workspace, as ``.venv``, is the interpreter's.
    """
    workspace = Path(environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    around = (path := Path(entry).resolve(), *path.parents)
    owners = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)} - {workspace}
    return workspace in around and owners.isdisjoint(around)


def _complete_path(environ: Mapping[str, str]) -> None:
    # Instead of the import of sitecustomize and usercustomize.
    site.execsitecustomize = site.execusercustomize = lambda: None
    # Else -I would hide what `pip install --user` has put there.
    site.ENABLE_USER_SITE = not environ.get("PYTHONNOUSERSITE")
    site.main()
    named = environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [entry for entry in named if Path(entry).is_absolute()]
