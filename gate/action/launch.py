"""Puts the gate in place and becomes ``gate.action.modes``, without any secret in its environment.

The gate's requirements are *appended* to ``sys.path``: ``PYTHONPATH`` would shadow torch's dependencies.
Missing ones are installed from the locked list. With a token nothing is measured: there the list goes in
front. Processes are started with ``-I -S``: nothing of the workspace can replace the gate, pip or the
standard library.

Imports nothing that the interpreter may lack.
"""

import json
import os
import runpy
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from gate.action.inputs import TRUSTED_MODES, ActionMode, make_token_error
from gate.devices import CPU
from gate.errors import ExitCode, GateError, MachineError, UsageError
from gate.github.job import render_annotation, write_outputs
from gate.installation import OLDEST_PACKAGES, PACKAGES_VARIABLE, copy_package, find_release, is_older
from gate.version import __version__

# What a step talks to its runner with, and what its job could be asked for. A name of these files in
# the environment would let measured code set outputs, paths and variables of later steps; the event
# and the runner's temporary directory say where they lie.
_HIDDEN_PREFIXES = ("INPUT_", "ACTIONS_")
_HIDDEN_NAMES = frozenset(
    (
        "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH", "RUNNER_TEMP",
    )
)  # fmt: skip
_START = Path(__file__).resolve().with_name("start.py")
_ROOT = str(_START.parents[2])
_REASON_CHARS = 200
_GPU_DEVICE = Path("/dev/nvidiactl")  # of the driver; there is none without a GPU of NVIDIA's
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# What holds a token imports; it measures nothing, so its packages may stand in front of an older one.
_TRUSTED = frozenset(("jsonschema", "pyyaml", "requests", "urllib3"))
_GPU = "nvidia-ml-py"  # without it nobody watches a GPU for throttling and strangers
# Of `compile-gate completion`, which no mode calls, and of what asks GitHub.
_UNUSED = frozenset(("argcomplete", "requests", "urllib3"))
# In place of an image's own settings; pip takes an empty one for none.
_PIP_SETTINGS = {
    "PIP_USER": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_CONSTRAINT": os.devnull,
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
# The list is complete, and what the environment has must not be installed again.
_PIP_OPTIONS = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--prefix", "")


def is_hidden(name: str) -> bool:
    """Whether a variable belongs to the step alone."""
    return name in _HIDDEN_NAMES or name.startswith(_HIDDEN_PREFIXES)


def drop_hidden(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not is_hidden(name)}


def make_command(module: str, *arguments: str, start: Path = _START) -> list[str]:
    return [sys.executable, "-I", "-S", str(start), module, *arguments]


def enter(module: str, arguments: list[str]) -> int:
    isolate(os.environ)
    if module.partition(".")[0] == "gate":
        sys.path.insert(0, _ROOT)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def isolate(environ: Mapping[str, str]) -> None:
    """Complete ``sys.path`` without the workspace and start-up modules.

    An environment may point into the workspace, as an editable installation does.
    """
    _complete_path(environ)
    packages = environ.get(PACKAGES_VARIABLE, "")
    allowed = [entry for entry in sys.path if entry != packages and not is_in_workspace(entry, environ)]
    sys.path[:] = [*allowed, *([packages] if packages else [])]


def is_in_workspace(entry: str, environ: Mapping[str, str]) -> bool:
    """An environment that lies in the workspace, as ``.venv``, is the interpreter's own."""
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


def launch(environ: Mapping[str, str]) -> int:
    """Become the action; return an exit code only where that fails."""
    try:
        check_token(environ)
        become_action(prepare_environment(environ))
    except GateError as error:
        return _fail(environ, error.exit_code, f"{error.what}. {error.fix}")
    except OSError as error:
        reason = error.strerror or f"{error}"[:_REASON_CHARS]  # shutil's has a line for each file
        what = f"the gate cannot be put in place: {reason}. Free some space if the disk is full."
        return _fail(environ, ExitCode.MACHINE, what)
    except Exception as error:  # noqa: BLE001 - a step that fails says why, and has an exit code
        what = f"{type(error).__name__}: {error}. This is a bug in compile-gate: please report it."
        return _fail(environ, ExitCode.BUG, what)


def check_token(environ: Mapping[str, str]) -> None:
    """Refuse a token where code under test runs, before anything else is started.

    Raises:
        UsageError: There is one.
    """
    if environ.get("INPUT_TOKEN", "").strip() and (mode := _get_mode(environ)) not in TRUSTED_MODES:
        shown = mode if mode in set(ActionMode) else ActionMode.CHECK
        raise make_token_error(shown)


def prepare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Install what is missing, and return the environment that finds it.

    Raises:
        UsageError: A package of the interpreter is too old.
        MachineError: A package cannot be installed.
    """
    isolate(environ)
    # New each time: what an earlier step of this job has measured could have written to an older one.
    directory = Path(tempfile.mkdtemp(prefix="compile-gate-", dir=environ.get("RUNNER_TEMP") or None))
    on_cpu = environ.get("INPUT_DEVICE", "").strip() == CPU.name
    mode, packages = _get_mode(environ), directory / "packages"
    if missing := list_missing(mode, has_gpu=_GPU_DEVICE.exists() and not on_cpu):
        install(packages, environ, missing)
    in_front, behind = (packages, "") if mode in TRUSTED_MODES else ("", packages)
    paths = (place_package(directory / "source"), in_front, environ.get("PYTHONPATH", ""))
    search_path = os.pathsep.join(str(path) for path in paths if path)
    return {**environ, "PYTHONPATH": search_path, PACKAGES_VARIABLE: str(behind)}


def place_package(directory: Path) -> Path:
    """Copy the package alone, with metadata: the action's ``tests`` must not shadow the workspace's."""
    metadata = copy_package(directory) / f"compile_gate-{__version__}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: compile-gate\nVersion: {__version__}\n")
    return directory


def become_action(environ: Mapping[str, str]) -> NoReturn:
    source = Path(environ["PYTHONPATH"].split(os.pathsep)[0])
    given = {name: value for name, value in environ.items() if is_hidden(name)}
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(given).encode())
        file.seek(0)
        os.set_inheritable(file.fileno(), True)
        start = source / "gate" / "action" / "start.py"
        command = make_command("gate.action.modes", str(file.fileno()), start=start)
        os.execve(sys.executable, command, drop_hidden(environ))  # noqa: S606 - our own arguments, no shell


def read_given(descriptor: str) -> dict[str, str]:
    """Read what :func:`become_action` handed over, and close it for later processes."""
    with os.fdopen(int(descriptor), "rb") as file:
        return dict(json.loads(file.read()))


def _get_mode(environ: Mapping[str, str]) -> str:
    return environ.get("INPUT_MODE", "").strip()


def _fail(environ: Mapping[str, str], code: ExitCode, message: str) -> int:
    print(render_annotation("error", message))
    with suppress(GateError):  # a runner's file that cannot be written changes no code
        write_outputs(environ, {"exit-code": int(code)})
    return int(code)


def list_packages(mode: str, *, has_gpu: bool) -> frozenset[str]:
    if mode in TRUSTED_MODES:
        return _TRUSTED
    return frozenset(OLDEST_PACKAGES.keys() - _UNUSED - ({_GPU} if not has_gpu else set()))


def list_missing(mode: str, *, has_gpu: bool) -> list[str]:
    """List the packages of a mode that this interpreter lacks, or has too old to hold a token with.

    Raises:
        UsageError: One is too old to measure with: a newer one could not stand in front of it.
    """
    missing = []
    for name in sorted(list_packages(mode, has_gpu=has_gpu)):
        release, oldest = find_release(name), OLDEST_PACKAGES[name]
        is_unfit = is_older(release, oldest)
        if release and is_unfit and mode not in TRUSTED_MODES:
            what = f"{sys.executable} has {name} {release}, and the gate needs {oldest}"
            raise UsageError(what, "Upgrade that package, or name another interpreter in the input `python`.")
        missing += [name] if is_unfit else []
    return missing


def install(directory: Path, environ: Mapping[str, str], missing: Sequence[str]) -> None:
    """Raises MachineError where pip cannot, or is missing."""
    root = directory.parent
    kept = drop_hidden(environ)
    kept = {name: value for name, value in kept.items() if not name.startswith("PYTHON")} | _PIP_SETTINGS
    pip = make_command(
        "pip", "install", *_PIP_OPTIONS, f"--target={directory}", f"--requirement={REQUIREMENTS}"
    )
    if not find_release("pip"):
        made = make_command("venv", str(root / "pip"))
        if subprocess.run(made, check=False, cwd=root, env=kept).returncode != 0:
            what = f"{sys.executable} has neither pip nor venv"
            raise MachineError(what, "Install compile-gate's dependencies where torch is installed.")
        pip[0] = str(root / "pip" / "bin" / "python")
    if subprocess.run(pip, check=False, cwd=root, env=kept).returncode != 0:
        raise MachineError(
            f"pip could not install the gate's own packages ({', '.join(missing)} are missing)",
            "pip's message is above; a runner without network needs them in its image.",
        )
