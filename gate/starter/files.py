"""The files that a project begins with, as text: of templates, and of the workflows that come with us.

Those workflows take the action from where this installation came from.
"""

import importlib.metadata
import importlib.resources
import json
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import jinja2

from gate.devices import CPU
from gate.errors import FileError, GateError, UsageError
from gate.files.disk import is_present, write_atomic
from gate.files.yaml_out import write_scalar
from gate.git import ask_git
from gate.installation import find_url
from gate.records.bounds import SHA
from gate.revisions import find_repository, name_repository
from gate.version import __version__

CONFIG_FILE = "gate.yml"
WORKFLOWS = ".github/workflows"
SCHEMA_FILE = ".gate.schema.json"
CHECK_WORKFLOWS = ("compile-gate.yml",)  # calls the check of this repository
RESPOND_WORKFLOWS = (*CHECK_WORKFLOWS, "compile-gate-respond.yml")
LONG_WORKFLOWS = (  # the same and its answers in full, for where nothing of another repository can be called
    "gate.yml",
    "gate-publish.yml",
    "gate-accept.yml",
    "gate-refresh.yml",
    "gate-retarget.yml",
)
_PLACEHOLDER = re.compile(r"OWNER/compile-gate(/\S+)?@0{40} # v\S+")
_RUNNER = "runs-on: [self-hosted, linux, gpu]"
_CALLED_WITH = ("runner", "python")  # what is asked of our own workflows
_CALLED_RUNNER = """runner: '["self-hosted", "linux", "gpu"]'"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSketch:
    """One input: random numbers, or whole numbers below ``high``."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int | None = None
    is_image: bool = False  # drawn from 0 to 1
    lists: int = 0  # around it, each of two
    source: str = ""  # what it was guessed from; "" where the user named it
    name: str = ""  # of the parameter that takes it; "" where it is optional or has none

    def __str__(self) -> str:
        """Describe it as ``--input`` does: ``8x64:int64``."""
        return f"{'list of ' * self.lists}{'x'.join(map(str, self.shape))}:{self.dtype}"


def read_tensor(found: Mapping[str, Any]) -> TensorSketch:
    """Read a tensor of an answer."""
    return TensorSketch(**{**found, "shape": tuple(found["shape"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """What was found: a factory that is ready, or a module with inputs that it takes."""

    target: str
    is_factory: bool
    called: bool  # it is a class or function that makes the module
    inputs: tuple[TensorSketch, ...]
    arguments: Mapping[str, object]
    device: str = CPU.name  # the usual one: CUDA where torch sees a GPU
    drift: float = 0.0  # of its first compile; 0 where that was not measured


def make_sketch(request: Mapping[str, Any], answer: Mapping[str, Any]) -> Sketch:
    """Make the sketch of a request to :mod:`gate.starter.sketch`, and its answer."""
    return Sketch(
        target=request["target"],
        is_factory=answer["kind"] == "factory",
        called=answer["called"],
        inputs=tuple(map(read_tensor, answer["inputs"])),
        arguments=request["arguments"],
        device=answer["device"],
        drift=answer.get("drift", 0.0),
    )


def name_model(target: str) -> str:
    """The model's name for a class or function: ``my_package.model:MyModel`` is ``my_model``."""
    name = target.rpartition(":")[2].rpartition(".")[2]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    plain = re.sub(r"[^a-z0-9_]+", "_", words.lower()).strip("_") or "model"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def name_factory(target: str) -> str:
    """The name of the module with the factory that is written for a class or function."""
    return f"gate_{name_model(target)}"


def is_listed(config: Path, factory: str) -> bool:
    """Whether a gate.yml names this factory."""
    if not config.is_file():
        return False
    text = config.read_text(encoding="utf-8", errors="replace")
    return re.search(rf"factory: *['\"]?{re.escape(factory)}(?![\w.:])", text) is not None


def is_begun(directory: Path, target: str) -> bool:
    """Whether gate.yml lists what was named, and its factory is there: then there is nothing to try."""
    config, module = directory / CONFIG_FILE, name_factory(target)
    if is_listed(config, target):
        return True
    path = directory / f"{module}.py"
    return is_listed(config, f"{module}:build") and path.is_file() and _is_factory_of(path, target)


def refuse_namesake(directory: Path, sketch: Sketch) -> None:
    """Refuse what would get the factory of a class of the same name in another module.

    Raises:
        FileError: The factory's file is there already, and does not name the module.
    """
    path, module = directory / f"{name_factory(sketch.target)}.py", sketch.target.partition(":")[0]
    if not sketch.is_factory and path.exists() and not _is_factory_of(path, sketch.target):
        problem = f"is there already, and is no factory of {module}"
        fix = f"Rename it, with its model in {CONFIG_FILE}, or write a factory for {sketch.target} by hand."
        raise FileError(path.name, "", problem, fix)


def _is_factory_of(path: Path, target: str) -> bool:
    """Whether a file names the module of ``target``.

    Raises:
        FileError: It cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(str(path), "", f"cannot be read: {error.strerror}", "Rename it.") from error
    module = target.partition(":")[0]
    return re.search(rf"(?<![\w.]){re.escape(module)}(?!\w|\.\w)", text) is not None


def make_project_files(sketch: Sketch, device: str, schema: str) -> dict[str, str]:
    """Make ``gate.yml``, its schema, and a factory unless the named object is one: path -> text."""
    module = name_factory(sketch.target)
    factory = sketch.target if sketch.is_factory else f"{module}:build"
    made = {} if sketch.is_factory else {f"{module}.py": render_factory(sketch)}
    config = _render("gate.yml.jinja", **_list_entry(sketch, factory), device=device, schema=SCHEMA_FILE)
    return {CONFIG_FILE: config, **made, SCHEMA_FILE: schema}


def render_model(sketch: Sketch, factory: str) -> str:
    """Render the entry of the model for the list ``models``."""
    return _render("model.jinja", **_list_entry(sketch, factory)).rstrip("\n")


def _list_entry(sketch: Sketch, factory: str) -> dict[str, object]:
    arguments = write_scalar(dict(sketch.arguments)) if sketch.arguments else ""
    return {"name": name_model(sketch.target), "factory": write_scalar(factory), "arguments": arguments}


def render_factory(sketch: Sketch) -> str:
    """Render the module with the factory of what was named."""
    module, _, name = sketch.target.partition(":")
    # null does not show what else may be given.
    typed = ", ".join(
        key if value is None else f"{key}: {type(value).__name__}" for key, value in sketch.arguments.items()
    )
    return _render(
        "factory.py.jinja",
        module=module,
        name=name,
        parameters=f"*, {typed}" if typed else "",
        arguments=list(sketch.arguments),
        call=f"({', '.join(f'{key}={key}' for key in sketch.arguments)})" if sketch.called else "",
        inputs=[(render_tensor(one), one.name) for one in sketch.inputs],
        config=CONFIG_FILE,
    )


def _render(template: str, **values: object) -> str:
    environment = jinja2.Environment(  # noqa: S701 - these are no pages
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)


def render_tensor(tensor: TensorSketch) -> str:
    """Render what draws it."""
    dtype = "" if tensor.dtype == "float32" else f", dtype=torch.{tensor.dtype}"
    if tensor.high is None:
        name = "rand" if tensor.is_image else "randn"
        text = f"torch.{name}({', '.join(map(str, tensor.shape))}{dtype})"
    else:
        text = f"torch.randint(0, {tensor.high}, {tensor.shape}{dtype})"
    for _ in range(tensor.lists):
        text = f"[{text} for _ in range(2)]"
    return text


def load_workflows(
    names: Iterable[str], action: str, runner: str, kept: str = "", directory: str = "."
) -> dict[str, str]:
    """Load example workflows, with the action pinned and the runner's labels: path -> text.

    Runner and interpreter are those of the workflow ``kept``, if it is there and calls this repository's.
    ``directory`` is where gate.yml lies, from the repository's top.

    Raises:
        FileError: This installation lacks them.
    """
    repository, _, pin = action.partition("@")
    pinned, place = rf"{repository}\g<1>@{pin}", find_workflows()
    labels = parse_labels(runner)
    called = f"runner: '{json.dumps(labels)}'"
    said = {
        key: found[1].replace("\\", r"\\")
        for key in _CALLED_WITH
        if (found := re.search(rf"^ +({key}: .*)", kept, re.MULTILINE))
    }
    files = {}
    for name in names:
        try:
            text = (place / name).read_text(encoding="utf-8")
        except OSError as error:
            problem, fix = f"cannot be read: {error.strerror}", "Install compile-gate again."
            raise FileError(str(place / name), "", problem, fix) from error
        text = _PLACEHOLDER.sub(pinned, text).replace(_RUNNER, f"runs-on: [{', '.join(labels)}]")
        for key, line in said.items() if _CALLED_RUNNER in text else ():
            text = re.sub(rf"^( +){key}: .*", rf"\1{line}", text, flags=re.MULTILINE)
        if directory != ".":
            called_there = f"working-directory: {write_scalar(directory)}\n      {called}"
            text = text.replace(_CALLED_RUNNER, called_there)
        files[f"{WORKFLOWS}/{name}"] = text.replace(_CALLED_RUNNER, called)
    return files


_LABEL = re.compile(r"[A-Za-z0-9_.-]+")


def parse_labels(text: str) -> list[str]:
    """Parse the labels of a runner: ``self-hosted, gpu``, or the list of JSON that the workflow has.

    Raises:
        UsageError: One is no label; a job that asks for it would wait until GitHub gives it up.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = re.split(r" *, *", text.strip())
    labels = found if isinstance(found, list) else [text.strip()]
    for label in labels or [""]:
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            fix = "Write letters, digits, `_`, `.` and `-`, joined by commas: --runner self-hosted,gpu."
            raise UsageError(f"--runner: {label!r} is no label of a runner", fix)
    return labels


def find_workflows() -> Path:
    """Find the example workflows: the wheel brings them, a clone has them beside the package."""
    package = Path(str(importlib.resources.files("gate")))
    brought = package / "starter" / "workflows"
    return brought if brought.is_dir() else package.parent / "examples" / "workflows"


def write_missing(directory: Path, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Write the files (path -> text) that are not there; return the paths written, and those kept.

    Raises:
        MachineError, UsageError: See :func:`gate.files.disk.write_atomic`.
    """
    written, kept = [], []
    for name, text in files.items():
        if is_present(directory / name):
            kept.append(name)
        else:
            write_atomic(directory / name, text)
            written.append(name)
    return written, kept


_TAG = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")  # of a release
_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}(?:[0-9a-f]{24})?")


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

    A release's metadata says so, and pip writes down what it installed from. A clone counts where GitHub has
    its commit, too. The tag of a release follows, as a comment of YAML.
    """
    origin = _read_origin()
    vcs = origin.get("vcs_info")
    if released := _read_release():
        return released
    if isinstance(vcs, dict):
        found = f"{name_repository(str(origin.get('url', '')))}@{vcs.get('commit_id')}"
        return _add_tag(found, str(vcs.get("requested_revision"))) if _ACTION.fullmatch(found) else ""
    url = urlparse(str(origin.get("url", "")))
    place = Path(unquote(url.path)) if url.scheme == "file" else package
    return _ask_clone(place) if place and (place / "action.yml").is_file() else ""


def _read_release() -> str:
    """Read the project URL ``Action`` of a release's wheel, which ``hatch_build.py`` writes."""
    pattern = rf"https://github\.com/(?P<name>[^/]+/[^/]+)/tree/(?P<commit>{SHA})"
    found = re.fullmatch(pattern, find_url("Action"))
    return _add_tag(f"{found['name']}@{found['commit']}", f"v{__version__}") if found else ""


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
