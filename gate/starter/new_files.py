"""The files that a project begins with, as text made of templates: gate.yml, its schema, a factory."""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from gate.devices import CPU
from gate.errors import FileError
from gate.files.disk import is_present, write_atomic
from gate.files.yaml_out import write_scalar

CONFIG_FILE = "gate.yml"
SCHEMA_FILE = ".gate.schema.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSketch:
    """Random numbers, or whole numbers below ``high``."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int | None = None
    is_image: bool = False  # drawn from 0 to 1
    lists: int = 0  # around it, each of two
    source: str = ""  # what it was guessed from; "" where the user named it
    name: str = ""  # of the parameter that takes it; "" where it is optional or has none

    def __str__(self) -> str:
        """As ``--input`` takes it: ``8x64:int64``."""
        return f"{'list of ' * self.lists}{'x'.join(map(str, self.shape))}:{self.dtype}"


def make_tensor(fields: Mapping[str, Any]) -> TensorSketch:
    return TensorSketch(**{**fields, "shape": tuple(fields["shape"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """A factory that is ready, or a module with inputs that it takes."""

    target: str
    is_factory: bool
    called: bool  # it is a class or function that makes the module
    inputs: tuple[TensorSketch, ...]
    arguments: Mapping[str, object]
    device: str = CPU.name  # the usual one: CUDA where torch sees a GPU
    drift: float = 0.0  # of its first compile; 0 where that was not measured


def make_sketch(request: Mapping[str, Any], answer: Mapping[str, Any]) -> Sketch:
    return Sketch(
        target=request["target"],
        is_factory=answer["kind"] == "factory",
        called=answer["called"],
        inputs=tuple(map(make_tensor, answer["inputs"])),
        arguments=request["arguments"],
        device=answer["device"],
        drift=answer.get("drift", 0.0),
    )


def name_model(target: str) -> str:
    """``my_package.model:MyModel`` is ``my_model``."""
    name = target.rpartition(":")[2].rpartition(".")[2]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    plain = re.sub(r"[^a-z0-9_]+", "_", words.lower()).strip("_") or "model"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def name_factory(target: str) -> str:
    return f"gate_{name_model(target)}"


def is_listed(config: Path, factory: str) -> bool:
    if not config.is_file():
        return False
    text = config.read_text(encoding="utf-8", errors="replace")
    return re.search(rf"factory: *['\"]?{re.escape(factory)}(?![\w.:])", text) is not None


def is_begun(directory: Path, target: str) -> bool:
    """Whether gate.yml lists the target, and its factory is there."""
    config, module = directory / CONFIG_FILE, name_factory(target)
    if is_listed(config, target):
        return True
    path = directory / f"{module}.py"
    return is_listed(config, f"{module}:build") and path.is_file() and _is_factory_of(path, target)


def refuse_namesake(directory: Path, sketch: Sketch) -> None:
    """Check the name of the factory.

    Raises:
        FileError: The factory's file is there already, for a class of that name in another module.
    """
    path, module = directory / f"{name_factory(sketch.target)}.py", sketch.target.partition(":")[0]
    if not sketch.is_factory and path.exists() and not _is_factory_of(path, sketch.target):
        problem = f"is there already, and is no factory of {module}"
        fix = f"Rename it, with its model in {CONFIG_FILE}, or write a factory for {sketch.target} by hand."
        raise FileError(path.name, "", problem, fix)


def _is_factory_of(path: Path, target: str) -> bool:
    """Raises FileError where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(str(path), "", f"cannot be read: {error.strerror}", "Rename it.") from error
    module = target.partition(":")[0]
    return re.search(rf"(?<![\w.]){re.escape(module)}(?!\w|\.\w)", text) is not None


def make_project_files(sketch: Sketch, device: str, schema: str) -> dict[str, str]:
    """Make gate.yml, its schema, and a factory unless the target is one: path -> text."""
    module = name_factory(sketch.target)
    factory = sketch.target if sketch.is_factory else f"{module}:build"
    made = {} if sketch.is_factory else {f"{module}.py": render_factory(sketch)}
    config = _render("gate.yml.jinja", **_list_entry(sketch, factory), device=device, schema=SCHEMA_FILE)
    return {CONFIG_FILE: config, **made, SCHEMA_FILE: schema}


def render_model(sketch: Sketch, factory: str) -> str:
    return _render("model.jinja", **_list_entry(sketch, factory)).rstrip("\n")


def _list_entry(sketch: Sketch, factory: str) -> dict[str, object]:
    arguments = write_scalar(dict(sketch.arguments)) if sketch.arguments else ""
    return {"name": name_model(sketch.target), "factory": write_scalar(factory), "arguments": arguments}


def render_factory(sketch: Sketch) -> str:
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
        inputs=[(render_tensor(tensor), tensor.name) for tensor in sketch.inputs],
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
    dtype = "" if tensor.dtype == "float32" else f", dtype=torch.{tensor.dtype}"
    if tensor.high is None:
        name = "rand" if tensor.is_image else "randn"
        text = f"torch.{name}({', '.join(map(str, tensor.shape))}{dtype})"
    else:
        text = f"torch.randint(0, {tensor.high}, {tensor.shape}{dtype})"
    for _ in range(tensor.lists):
        text = f"[{text} for _ in range(2)]"
    return text


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
