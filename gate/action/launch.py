"""Puts the gate in place and becomes ``gate.action``, in a process that was started without any secret.

The environment that owns torch is not changed. The gate's requirements are *appended* to ``sys.path``
(``PYTHONPATH`` would go in front of the environment's packages and shadow torch's dependencies), so
that the environment under test always wins. Only the package ``gate`` goes in front, alone.

Imports nothing that the interpreter may lack.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from gate.action.inputs import TRUSTED_MODES, ActionMode, refuse_token
from gate.action.isolation import drop_hidden, is_hidden, isolate, make_command
from gate.action.packages import install, list_missing, list_packages
from gate.devices import CPU
from gate.errors import ExitCode, GateError
from gate.github.job import render_annotation, write_outputs
from gate.installation import PACKAGES_VARIABLE, copy_package
from gate.version import __version__

_GPU_DEVICE = Path("/dev/nvidiactl")  # of the driver; there is none without a GPU of NVIDIA's


def launch(environ: Mapping[str, str]) -> int:
    """Put everything in place and become ``gate.action``; return an exit code only where that fails."""
    try:
        check_token(environ)
        become_action(prepare_environment(environ))
    except GateError as error:
        return _tell(environ, error.exit_code, f"{error.what}. {error.fix}")
    except OSError as error:
        what = f"the gate cannot be put in place: {error}. Free some space if the disk is full."
        return _tell(environ, ExitCode.MACHINE, what)
    except Exception as error:  # noqa: BLE001 - a step that fails says why, and has an exit code
        what = f"{type(error).__name__}: {error}. This is a bug in compile-gate: please report it."
        return _tell(environ, ExitCode.BUG, what)


def check_token(environ: Mapping[str, str]) -> None:
    """Refuse a token where code under test runs, before anything else has been started.

    Raises:
        UsageError: There is one.
    """
    if environ.get("INPUT_TOKEN", "").strip() and (mode := _get_mode(environ)) not in TRUSTED_MODES:
        shown = mode if mode in set(ActionMode) else ActionMode.CHECK
        raise refuse_token(shown)


def prepare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Put the gate and what it needs in place and return the environment that finds them.

    Raises:
        UsageError: A package of the interpreter is too old.
        MachineError: A package cannot be had.
    """
    isolate(environ)
    # New each time: what an earlier step of this job has measured could have written to an older one.
    place = Path(tempfile.mkdtemp(prefix="compile-gate-", dir=environ.get("RUNNER_TEMP") or None))
    on_cpu = environ.get("INPUT_DEVICE", "").strip() == CPU.name
    wanted = list_packages(_get_mode(environ), has_gpu=_GPU_DEVICE.exists() and not on_cpu)
    if missing := list_missing(wanted):
        install(missing, place / "packages", environ)
    paths = (str(place_package(place / "source")), environ.get("PYTHONPATH", ""))
    search_path = os.pathsep.join(path for path in paths if path)
    return {**environ, "PYTHONPATH": search_path, PACKAGES_VARIABLE: str(place / "packages")}


def place_package(directory: Path) -> Path:
    """Copy the package to where nothing else lies, with what an installation would leave as its metadata.

    The action's checkout has ``tests`` and ``tools`` beside it, which must not come in front of those
    of the repository under test.
    """
    metadata = copy_package(directory) / f"compile_gate-{__version__}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: compile-gate\nVersion: {__version__}\n")
    return directory


def become_action(environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by ``gate.action``; what belongs to the step alone goes in an unnamed file."""
    source = Path(environ["PYTHONPATH"].split(os.pathsep)[0])
    given = {name: value for name, value in environ.items() if is_hidden(name)}
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(given).encode())
        file.seek(0)
        os.set_inheritable(file.fileno(), True)
        start = source / "gate" / "action" / "start.py"
        command = make_command("gate.action", str(file.fileno()), start=start)
        sys.stdout.flush()
        os.execve(sys.executable, command, drop_hidden(environ))  # noqa: S606 - our own arguments, no shell


def read_given(descriptor: str) -> dict[str, str]:
    """Read what :func:`become_action` handed over, and close it: nothing that is started later has it."""
    with os.fdopen(int(descriptor), "rb") as file:
        return dict(json.loads(file.read()))


def _get_mode(environ: Mapping[str, str]) -> str:
    return environ.get("INPUT_MODE", "").strip()


def _tell(environ: Mapping[str, str], code: ExitCode, message: str) -> int:
    print(render_annotation("error", message), flush=True)
    write_outputs(environ, {"exit-code": int(code)})
    return int(code)
