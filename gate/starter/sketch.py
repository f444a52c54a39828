"""``python -m gate.starter.sketch REQUEST``: look at what a user named, in a process that has torch.

The request is JSON of :mod:`gate.cli.init`, the last line of standard output too: what was found, or the
problem. With the drift of a first compile it is printed again, by the same process: importing torch takes
seconds.
"""

import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from gate.devices import CPU, CUDA
from gate.files.invalid import find_nearest
from gate.programs import TimeLimit
from gate.records.cases import Case, Metric
from gate.records.protocol import Sampling, WorkerRole
from gate.starter.guesses import Guess, guess_inputs, is_module
from gate.starter.new_files import (
    Sketch,
    make_sketch,
    make_tensor,
    name_factory,
    render_factory,
    render_tensor,
)
from gate.workload import Workload

_SEED = 0
_PROBLEM_CHARS = 300
_GUESSING_S = 30.0  # no further guess is tried after that
_DRIFT_LIMIT_S = 120.0  # one compile; whoever waits for init wants its files
_MOST_NAMES = 8  # of what a Python module has, or a function takes
_MISSING = object()


class UnusableTargetError(Exception):
    """Nothing can be begun with the target. ``kind`` names the fix."""

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Describe what ``target`` is, whether it must be called, and inputs that it takes.

    Raises:
        UnusableTargetError: It cannot be imported or called, or takes no input that was tried.
    """
    sys.path.insert(0, request["directory"])
    target = _import_target(request["target"])
    arguments = request["arguments"]
    made, called = _make_module(target, arguments)
    if isinstance(made, Workload):
        return {"kind": "factory", "called": True, "inputs": [], "device": _choose_device()}
    forward = made.forward if is_module(made) else made
    inputs = _choose_inputs(made, forward, request["inputs"])
    return {"kind": "module", "called": called, "inputs": inputs, "device": _choose_device()}


def _import_target(target: str) -> Any:  # noqa: ANN401 - whatever the user named
    module, _, name = target.partition(":")
    try:
        value: Any = importlib.import_module(module)
    except BaseException as error:
        problem = f"{module} cannot be imported: {_describe(error)}{_list_lacking(module)}"
        raise UnusableTargetError("import", problem) from error
    for part in filter(None, name.split(".")):
        value = getattr(value, part, _MISSING)
    if value is _MISSING or not name:
        problem = f"{module} has no {name}" if name else "this is a module"
        raise UnusableTargetError("name", f"{problem}{_list_made(sys.modules[module], name)}")
    return value


def _list_lacking(module: str) -> str:
    """All that its own file imports: one try names all."""
    path = Path(sys.path[0], *module.split(".")).with_suffix(".py")
    code = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    names = re.findall(r"^(?:import|from) +([A-Za-z_]\w*)", code, re.MULTILINE)
    lacking = [name for name in dict.fromkeys(names) if importlib.util.find_spec(name) is None]
    return f"; not installed: {', '.join(lacking)}" if lacking else ""


def _list_made(module: Any, wanted: str) -> str:  # noqa: ANN401
    members = [
        (name, member)
        for name, member in vars(module).items()
        if getattr(member, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    torch = sys.modules.get("torch")
    classes = [
        name
        for name, member in members
        if torch and inspect.isclass(member) and issubclass(member, torch.nn.Module)
    ]
    names = [*classes, *(name for name, member in members if inspect.isfunction(member))][:_MOST_NAMES]
    # Of a module that was named alone it is the last class: it is made of those above it.
    likely = [] if wanted else classes[-1:]
    meant = find_nearest(wanted, names) or next(iter(names if len(names) == 1 else likely), "")
    write = f": write {module.__name__}:{meant}" if meant else ""
    return f"; it has {', '.join(names)}{write}" if names else ""


def _make_module(target: Any, arguments: dict[str, Any]) -> tuple[Any, bool]:  # noqa: ANN401
    """Return the module, and whether a class or function was called for it."""
    if is_module(target):
        return target, False
    if not callable(target):
        raise UnusableTargetError("name", f"it is {type(target).__name__}, not a module, class or function")
    lacking = [parameter.name for parameter in _list_required(target) if parameter.name not in arguments]
    if lacking and not inspect.isclass(target) and not arguments:
        return target, False  # a function of tensors
    if lacking:
        have = "has" if len(lacking) == 1 else "have"
        takes = getattr(target, "forward", None)
        forward = f"; forward takes {_name_parameters(takes)}" if takes else ""
        problem = f"it needs {', '.join(lacking)}, which {have} no default{forward}"
        raise UnusableTargetError("arguments", problem)
    try:
        _seed()
        made = target(**arguments)
    except BaseException as error:
        raise UnusableTargetError("call", f"calling it failed: {_describe(error)}") from error
    if is_module(made) or isinstance(made, Workload):
        return made, True
    message = f"calling it gave {type(made).__name__}, not a torch.nn.Module or a gate.Workload"
    raise UnusableTargetError("name", message)


def _choose_inputs(made: Any, forward: Any, given: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: ANN401
    """Where no guess works the first error is reported: that of the likeliest guess."""
    if is_module(made):
        made.eval()
    required = _list_required(forward)
    _refuse_keyword_only(required)
    lists = list(map(_count_lists, required))
    first_error, until_s = "", time.monotonic() + _GUESSING_S
    names = [parameter.name for parameter in required] or ["input"]
    guesses = [given] if given else guess_inputs(made, names)
    for inputs in (nested for guess in guesses for nested in _nest(guess, lists)):
        try:
            _call(made, inputs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, these are no inputs of it
            first_error = first_error or f"{_describe_tensors(inputs)}: {_describe(error)}"
        else:
            taking = [parameter.name for parameter in required] + [""] * len(inputs)
            return [{**tensor, "name": name} for tensor, name in zip(inputs, taking, strict=False)]
        if time.monotonic() > until_s:
            break
    what = "failed with" if given else "failed with guessed inputs, the likeliest of them"
    raise UnusableTargetError("inputs", f"forward({_name_parameters(forward)}) {what} {first_error}")


def _refuse_keyword_only(required: Sequence[inspect.Parameter]) -> None:
    if named := [parameter.name for parameter in required if parameter.kind is parameter.KEYWORD_ONLY]:
        raise UnusableTargetError("factory", f"forward takes {', '.join(named)} by keyword only")


def _count_lists(parameter: inspect.Parameter) -> int:
    text = str(parameter.annotation).lower()
    around = re.match(r"(([\w.]*\.)?(list|sequence|tuple|iterable)\[)*(?=.*tensor)", text)
    return around[0].count("[") if around else 0


def _nest(guess: list[Guess], lists: Sequence[int]) -> Iterator[list[Guess]]:
    """First without their batch, which the list stands for."""
    if not any(lists):
        yield guess
        return
    pairs = list(zip(guess, lists, strict=False))
    if all(tensor.get("source") for tensor in guess):
        yield [
            {**tensor, "lists": around, "shape": tensor["shape"][min(around, 1) :]}
            for tensor, around in pairs
        ]
    yield [{**tensor, "lists": around} for tensor, around in pairs]


def _name_parameters(function: Any) -> str:  # noqa: ANN401
    names = list(inspect.signature(function).parameters)
    return ", ".join([*names[:_MOST_NAMES], *(["..."] if names[_MOST_NAMES:] else [])])


def _describe_tensors(inputs: list[Guess]) -> str:
    sources = (f" from {source}" if (source := tensor.get("source")) else "" for tensor in inputs)
    return ", ".join(f"{make_tensor(tensor)}{source}" for tensor, source in zip(inputs, sources, strict=True))


def _call(made: Any, inputs: list[Guess]) -> None:  # noqa: ANN401
    import torch  # noqa: PLC0415 - nothing before needs it

    _seed()
    texts = [render_tensor(make_tensor(tensor)) for tensor in inputs]
    with torch.no_grad():
        output = made(*(eval(text, {"torch": torch}) for text in texts))  # noqa: S307 - our own text
    from gate.measure.workload.tensors import iterate_tensors  # noqa: PLC0415 - as torch

    if not any(True for _ in iterate_tensors(output)):
        raise TypeError(f"forward returned {type(output).__name__}, and no tensor")


def _list_required(function: Any) -> list[inspect.Parameter]:  # noqa: ANN401
    """List the parameters without default; none where there is no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
    ]


def _choose_device() -> str:
    torch = sys.modules.get("torch")
    return (CUDA if torch is not None and torch.cuda.is_available() else CPU).name


def _seed() -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(_SEED)


def _describe(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_PROBLEM_CHARS].rstrip(": ")


def measure_first(sketch: Sketch, device: str) -> float:
    """Measure the drift of the factory that will be written, in float32 under one seed."""
    from gate.measure.context import WorkerContext, open_case  # noqa: PLC0415 - torch
    from gate.measure.device.choice import open_device  # noqa: PLC0415
    from gate.measure.logbook import Logbook  # noqa: PLC0415
    from gate.measure.seed_drift import CompiledSubject, measure_drift  # noqa: PLC0415

    factory = sketch.target
    if not sketch.is_factory:
        module = ModuleType(name_factory(sketch.target))
        exec(render_factory(sketch), vars(module))  # noqa: S102 - our own text
        sys.modules[module.__name__] = module
        factory = f"{module.__name__}:build"
    case = Case(id="init/first", model="init", factory=factory, arguments=dict(sketch.arguments))
    sampling = Sampling(drift_seeds=1)
    logbook = Logbook(None, WorkerRole.WARM)
    context = WorkerContext(
        case=case, device=open_device(device), sampling=sampling, logbook=logbook, directory=""
    )
    with open_case(context, None) as prepared:
        measure_drift(context, CompiledSubject(subject=prepared.subject, compiled=prepared.compiled))
    return sum(logbook.result.samples.get(Metric.DRIFT, ()))


def _end_late() -> None:
    limit = TimeLimit(os.getpid(), _DRIFT_LIMIT_S)
    while left_s := limit.compute_left_s():
        time.sleep(left_s)
    os._exit(0)


def main() -> None:
    request = json.loads(sys.argv[1])
    try:
        answer = look(request)
    except UnusableTargetError as error:
        answer = {"kind": error.kind, "problem": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    if request["drift_on"] is not None and "problem" not in answer:
        threading.Thread(target=_end_late, daemon=True).start()
        drift = measure_first(make_sketch(request, answer), request["drift_on"] or answer["device"])
        sys.stdout.write("\n" + json.dumps({**answer, "drift": drift}) + "\n")


if __name__ == "__main__":
    main()
