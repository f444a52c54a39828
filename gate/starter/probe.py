"""Asks a process of its own what the module is that a user named; and which action a workflow is to take."""

import importlib.metadata
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from gate.errors import GateError, MachineError, UsageError
from gate.git import ask_git
from gate.installation import find_page
from gate.programs import ask_program
from gate.revisions import find_repository, name_repository

PROBE_LIMIT_S = 300.0  # importing torch from a cold network disk, and building a large model
_TARGET = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?")  # without a name, the names that exist are listed
_FILE = re.compile(r"(\./)?(?P<path>[\w./]+)\.py(?P<name>:[\w.]+)?")
_SHAPE = re.compile(r"(?P<shape>\d{1,9}(x\d{1,9})*)(:(?P<dtype>[a-z]+\d*))?(<(?P<high>\d{1,9}))?")
_FLOATS = ("float32", "bfloat16", "float16", "float64", "complex64")
_DTYPES = (*_FLOATS, "int64", "int32", "bool")
_FIXES = {
    "import": "Run init where the module can be imported from, with the interpreter that has its packages.",
    "name": "Name a torch.nn.Module class, a function that returns one, or a function of tensors.",
    "arguments": "Give them: --argument NAME=VALUE, once for each; or name a function that makes the model.",
    "call": "Correct it, or give what it needs: --argument NAME=VALUE, once for each. For an object, such as"
    " a config, name a function that makes the model: `def make(): return Model(Config())`.",
    "inputs": "Say what forward takes, an --input for each tensor: 8x3x224x224, or '8x64:int64<30000'."
    f" For anything but tensors, such as a dict, write a factory: {find_page('adding-a-model')}.",
    "factory": f"Write a factory that gives it in `kwargs` of a Workload: {find_page('adding-a-model')}.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSketch:
    """One input: random numbers, or whole numbers below ``high``."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int | None = None
    source: str = ""  # what it was guessed from; "" where the user named it
    name: str = ""  # of the parameter that takes it; "" where it is optional or has none


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeQuestion:
    """What a user named, and what was said of how to call it."""

    directory: str
    target: str  # package.module:name
    arguments: Mapping[str, object] = field(default_factory=dict)
    inputs: tuple[TensorSketch, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """What was found: a factory that is ready, or a module with inputs that it takes."""

    target: str
    is_factory: bool
    called: bool  # it is a class or function that makes the module
    inputs: tuple[TensorSketch, ...]
    arguments: Mapping[str, object]
    has_cuda: bool = False


def check_probed_name(text: str) -> str:
    """Check the name of a module's class or function.

    Raises:
        UsageError: It is no such name.
    """
    if file := _FILE.fullmatch(text):
        fix = f"Write {file['path'].replace('/', '.')}{file['name'] or ':Name'}."
        raise UsageError(f"{text!r} is a file, not a Python module", fix)
    if not _TARGET.fullmatch(text):
        fix = "Write package.module:Name, as in my_package.model:MyModel."
        raise UsageError(f"{text!r} names no module", fix)
    return text


def parse_input(text: str) -> TensorSketch:
    """Parse ``8x64``, ``8x64:int64`` or ``8x64:int64<30000``.

    Raises:
        UsageError: It is something else.
    """
    found = _SHAPE.fullmatch(text.replace(" ", ""))
    if not found or (found["dtype"] or "float32") not in _DTYPES:
        fix = f"Write sizes, and a type of {', '.join(_DTYPES)}: --input 8x64, --input '8x64:int64<30000'."
        raise UsageError(f"--input: {text!r} is no tensor", fix)
    dtype = found["dtype"] or ("int64" if found["high"] else "float32")
    high = int(found["high"]) if found["high"] else None if dtype in _FLOATS else 2
    return TensorSketch(shape=tuple(map(int, found["shape"].split("x"))), dtype=dtype, high=high)


def probe_module(question: ProbeQuestion) -> Sketch:
    """Import, build and call what was named, in a process of its own.

    Raises:
        UsageError: It cannot be; the fix says what is missing.
        MachineError: The process died or took too long.
    """
    answer = _ask(question)
    if problem := answer.get("problem"):
        raise UsageError(f"{question.target}: {problem}", _FIXES[str(answer["kind"])])
    return Sketch(
        target=question.target,
        is_factory=answer["kind"] == "factory",
        called=bool(answer["called"]),
        inputs=tuple(
            TensorSketch(**{**one, "shape": tuple(one["shape"])})
            for one in answer["inputs"]  # type: ignore[attr-defined] # a list, as sketch.py writes it
        ),
        arguments=question.arguments,
        has_cuda=bool(answer["has_cuda"]),
    )


def _ask(question: ProbeQuestion) -> dict[str, object]:
    answer = ask_program(
        # -P: a directory `gate` of the user's must not stand in for this one
        [sys.executable, "-P", "-m", "gate.starter.sketch", json.dumps(asdict(question))],
        limit_s=PROBE_LIMIT_S,
        directory=question.directory,
    )
    if answer.problem:
        raise MachineError(f"{question.target} could not be tried: {answer.problem}", "Try it by hand.")
    if answer.status == 0 and (record := answer.read_record()):
        return record
    last = next((line for line in reversed(answer.err.splitlines()) if line.strip()), "it said nothing")
    what = f"{question.target}: the process that tried it died with status {answer.status}: {last[:300]}"
    raise MachineError(what, f"Try it by hand: {Path(sys.executable).name} -c 'import ...'.")


_TAG = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")  # of a release
_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}")


def parse_action(text: str) -> str:
    """Check what ``--action`` names: ``OWNER/compile-gate@COMMIT``, with the whole commit id.

    Raises:
        UsageError: It is something else; a tag or a branch can be moved, a commit cannot.
    """
    if not _ACTION.fullmatch(text):
        fix = "Write OWNER/compile-gate@ and the 40 digits of a release's commit."
        raise UsageError(f"--action: {text!r} pins no commit of an action", fix)
    return text


def find_action(package: Path | None = None) -> str:
    """Find the repository and commit that this installation came from; empty where either is unknown.

    pip writes down what it installed from. A clone counts where GitHub has its commit, too. The tag of a
    release follows, as a comment of YAML.
    """
    origin = _read_origin()
    vcs = origin.get("vcs_info")
    if isinstance(vcs, dict):
        found = f"{name_repository(str(origin.get('url', '')))}@{vcs.get('commit_id')}"
        return _add_tag(found, str(vcs.get("requested_revision"))) if _ACTION.fullmatch(found) else ""
    url = urlparse(str(origin.get("url", "")))
    place = Path(unquote(url.path)) if url.scheme == "file" else package
    return _ask_clone(place) if place and (place / "action.yml").is_file() else ""


def _read_origin() -> dict[str, object]:
    try:
        text = importlib.metadata.distribution("compile-gate").read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _ask_clone(place: Path) -> str:
    try:
        repository = find_repository(place)
        commit = ask_git(place, "rev-parse", "HEAD")
        pushed = ask_git(place, "branch", "--remotes", "--contains", "HEAD")
        tagged = ask_git(place, "describe", "--exact-match", "--tags", "HEAD")
    except GateError:
        return ""
    return _add_tag(f"{repository}@{commit.said}", tagged.said) if repository and pushed.said else ""


def _add_tag(action: str, tag: str) -> str:
    return f"{action} # {tag}" if _TAG.fullmatch(tag) else action
