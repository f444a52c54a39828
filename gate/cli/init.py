"""``init``: try what the user named in a process of its own, and write the files that a project lacks."""

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from gate.decide.constants import DRIFT_WRONG
from gate.devices import DEVICE_FORMS, DEVICE_PATTERN, get_kind
from gate.errors import ExitCode, MachineError, UsageError
from gate.files.schema import read_schema
from gate.files.yaml_in import parse_yaml
from gate.git import find_checkout
from gate.installation import name_page
from gate.programs import ask_program
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.report.words.templates import describe_error_factor
from gate.starter.new_files import (
    CONFIG_FILE,
    SCHEMA_FILE,
    Sketch,
    TensorSketch,
    is_begun,
    is_listed,
    make_project_files,
    make_sketch,
    name_factory,
    refuse_namesake,
    render_model,
    write_missing,
)
from gate.starter.notebook import export_notebook
from gate.starter.workflow_files import (
    CHECK_WORKFLOWS,
    LONG_WORKFLOWS,
    RESPOND_WORKFLOWS,
    WORKFLOWS,
    find_action,
    list_measured,
    load_workflows,
    parse_action,
)

_PACKAGE = Path(__file__).resolve().parents[2]  # of a clone: where action.yml lies
PROBE_LIMIT_S = 420.0  # importing torch from a cold network disk, building a large model, a first compile
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
    f" For anything but tensors, such as a dict, write a factory: {name_page('adding-a-model')}.",
    "factory": f"Write a factory that gives it in `kwargs` of a Workload: {name_page('adding-a-model')}.",
}


def run_init(options: Namespace) -> ExitCode:
    here = Path.cwd()
    action = _check_options(options)
    sketch = _look_at_model(options, here)
    usual = sketch.device if sketch else load_config(here / CONFIG_FILE).device
    device, schema = options.device or usual, read_schema("config")
    files = make_project_files(sketch, device, schema) if sketch else {SCHEMA_FILE: schema}
    top = find_checkout(here) or here.resolve()
    workflows, note = _load_missing(options, action, device, top)
    written, kept = write_missing(here, files)
    for paths, more in zip((written, kept), write_missing(top, workflows), strict=True):
        paths += [os.path.relpath(top / name, here) for name in more]
    if sketch is None:
        print(f"kept   {CONFIG_FILE}: it lists {options.target} already")
    for path in written:
        print(f"wrote  {path}")
    for path in kept:
        print(f"kept   {path}: it was there already")
    if sketch:
        _print_model(options, sketch, files, kept)
    _print_next_step(note, is_new=bool(written))
    return ExitCode.PASS


def _load_missing(options: Namespace, action: str, device: str, top: Path) -> tuple[Mapping[str, str], str]:
    """The workflows to write, or none and why."""
    short = RESPOND_WORKFLOWS if options.comments else CHECK_WORKFLOWS
    names = LONG_WORKFLOWS if options.long_workflows else short
    below = Path.cwd().resolve().relative_to(top).as_posix()
    has_all = all((top / WORKFLOWS / name).is_file() for name in names)
    kept = _read_kept(top)
    note = "" if has_all else _describe_obstacle(action, below if options.long_workflows else ".")
    if (measured := list_measured(kept)) and below not in measured:
        note = (
            f"GitHub does not check this project: {CHECK_WORKFLOWS[0]} measures {' and '.join(measured)}.\n"
            f"  Copy it to a file of another name, with `working-directory: {below}`: see"
            f" {name_page('github-workflows')}."
        )
    if note:
        return {}, note
    runner = options.runner or f"self-hosted, linux{', gpu' if get_kind(device).is_gpu else ''}"
    return load_workflows(names, action, runner, "" if options.runner else kept, below), ""


def _print_model(options: Namespace, sketch: Sketch, files: Mapping[str, str], kept: Collection[str]) -> None:
    factory, here = f"{name_factory(sketch.target)}.py", Path.cwd()
    if factory not in kept:
        _print_inputs(sketch, factory)
    elif (options.inputs or options.arguments) and _is_other(here / factory, files[factory]):
        print(f"note   {factory} stays as it is, without what --input and --argument say: change it there")
    if CONFIG_FILE in kept:
        _print_entry(sketch, here / CONFIG_FILE)
    else:
        _print_drift(sketch.drift)


def _check_options(options: Namespace) -> str:
    """Returns the action to pin, "" if it is unknown.

    Raises:
        UsageError: An option is of no use.
    """
    if options.device and not re.fullmatch(DEVICE_PATTERN, options.device):
        what = f"--device must be {DEVICE_FORMS}, got {options.device!r}"
        raise UsageError(what, "Write, for example, `--device cuda`.")
    action = parse_action(options.action) if options.action else find_action(_PACKAGE)
    if options.comments and not action:
        what = "--comments: no workflow can be written, since the commit of this installation is not known"
        raise UsageError(what, "Add --action OWNER/compile-gate@COMMIT.")
    return action


def _look_at_model(options: Namespace, here: Path) -> Sketch | None:
    """``None`` where gate.yml has all that would be found out."""
    target = check_probed_name(_export_notebook(options.target, here))
    if not options.arguments and not options.inputs and is_begun(here, target):
        return None
    inputs = [parse_input(text) for text in options.inputs]
    drift_on = choose_drift_device(options, here)
    sketch = probe_module(here, target, _parse_arguments(options.arguments), inputs, drift_on)
    refuse_namesake(here, sketch)
    return sketch


def _export_notebook(target: str, here: Path) -> str:
    """Returns the name of the model in its module."""
    name, is_notebook, model = target.partition(".ipynb")
    if not is_notebook:
        return target
    module = re.sub(r"[^\w/]", "_", name.removeprefix("./"))
    if write_missing(here, {f"{module}.py": export_notebook(here / f"{name}.ipynb")})[0]:
        print(f"wrote  {module}.py: what {name}.ipynb defines, without what its cells run")
    return f"{module.replace('/', '.')}{model}"


def _is_other(path: Path, text: str) -> bool:
    return path.read_text(encoding="utf-8", errors="replace") != text


def _parse_arguments(given: list[str]) -> dict[str, object]:
    """``NAME=VALUE``, with a value as in gate.yml.

    Raises:
        UsageError: One has no name.
    """
    parsed = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            raise UsageError(f"--argument: {text!r} is not NAME=VALUE", "Write, as an example, width=64.")
        parsed[name] = parse_yaml(value.encode(), f"--argument {name}").value
    return parsed


def _read_kept(top: Path) -> str:
    """The workflow of an earlier ``init``: the second must use the same runner."""
    path = top / WORKFLOWS / CHECK_WORKFLOWS[0]
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _describe_obstacle(action: str, below: str) -> str:
    """Why no workflow can be written. ``below``: where gate.yml lies, if workflows are in full."""
    if not action:
        return (
            "No workflow was written: the commit of this installation is not known.\n"
            "  Run init again with --action OWNER/compile-gate@COMMIT; it writes only what is missing."
        )
    if below != ".":
        return (
            f"No workflow was written: those in full are for the repository's top, and this is {below}.\n"
            "  Leave --long-workflows out, or run init at the top and set `working-directory` in each."
        )
    return ""


def _print_inputs(sketch: Sketch, factory: str) -> None:
    for tensor in sketch.inputs:
        if tensor.source:
            what = f"{tensor.name} {tensor}".strip()
            print(f"input  {what}, guessed from {tensor.source}; change it in {factory} or with --input")


def _print_entry(sketch: Sketch, config: Path) -> None:
    factory = sketch.target if sketch.is_factory else f"{name_factory(sketch.target)}:build"
    if not is_listed(config, factory):
        print(f"\n{config.name} does not list this model yet. Add to its `models`:")
        print(render_model(sketch, factory))
        return
    listed = [case.arguments for case in load_cases(load_config(config)) if case.factory == factory]
    if sketch.arguments and not any(sketch.arguments.items() <= arguments.items() for arguments in listed):
        what = f"{config.name} stays as it is, and lists this model with other arguments"
        print(f"note   {what}: change them there")


def _print_drift(drift: float) -> None:
    if drift > DRIFT_WRONG:
        print(
            f"note   compiled results are {describe_error_factor(drift)} already: a check says so, and is red"
            " only where a change makes it worse"
        )


def _print_next_step(note: str, *, is_new: bool) -> None:
    commit = f"commit these files but {SCHEMA_FILE} (for your editor), " if is_new else ""
    print(f"\nNext, {commit}change your model, and see what that costs:")
    print("  compile-gate check   # compares it with where you left the main branch; exit 10 on a regression")
    print(f"\n{note}" if note else f"On GitHub it needs a runner with your torch: see {name_page('github')}.")


def check_probed_name(text: str) -> str:
    """As in ``package.module:Name``.

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
    """``8x64``, ``8x64:int64`` or ``8x64:int64<30000``.

    Raises:
        UsageError: It is something else.
    """
    match = _SHAPE.fullmatch(text.replace(" ", ""))
    if not match or (match["dtype"] or "float32") not in _DTYPES:
        fix = f"Write sizes, and a type of {', '.join(_DTYPES)}: --input 8x64, --input '8x64:int64<30000'."
        raise UsageError(f"--input: {text!r} is no tensor", fix)
    dtype = match["dtype"] or ("int64" if match["high"] else "float32")
    high = int(match["high"]) if match["high"] else None if dtype in _FLOATS else 2
    return TensorSketch(shape=tuple(map(int, match["shape"].split("x"))), dtype=dtype, high=high)


def choose_drift_device(options: Namespace, here: Path) -> str | None:
    """For a new model's first drift: "" is the usual device, None nowhere."""
    return None if (here / CONFIG_FILE).exists() else options.device or ""


def probe_module(
    directory: Path,
    target: str,
    arguments: Mapping[str, object],
    inputs: Sequence[TensorSketch] = (),
    drift_on: str | None = None,
) -> Sketch:
    """In a process of its own; ``drift_on`` is a device to compile it on, too.

    Raises:
        UsageError: It cannot be; the fix says what is missing.
        MachineError: The process died or took too long.
    """
    tensors = [asdict(tensor) for tensor in inputs]
    request = {"target": target, "arguments": arguments, "inputs": tensors, "drift_on": drift_on}
    # -P: a directory `gate` of the user's must not stand in for this one
    command = [sys.executable, "-P", "-m", "gate.starter.sketch"]
    asked = json.dumps({"directory": str(directory), **request})
    answer = ask_program([*command, asked], limit_s=PROBE_LIMIT_S, directory=directory)
    answered = answer.read_record()
    if "kind" not in answered:  # what follows it is the drift: without that there are files too
        what = f"{target}: the process that tried it {answer.describe_end()}"
        raise MachineError(what, f"Try it by hand: {Path(sys.executable).name} -c 'import ...'.")
    if problem := answered.get("problem"):
        raise UsageError(f"{target}: {problem}", _FIXES[str(answered["kind"])])
    return make_sketch(request, answered)
