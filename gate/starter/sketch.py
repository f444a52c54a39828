"""``python -m gate.starter.sketch REQUEST``: look at what a user named, in a process that has torch.

The request is JSON of :mod:`gate.cli.init`. The last line of standard output is JSON: what was found, the
problem in the user's words. The same line with the drift of a first compile follows it, in the same process:
importing torch takes seconds. Without torch there is no module to find, so it is not imported here. Inputs
that the user did not name are guessed from the sizes of the module's layers, and from names and annotations.
"""

import importlib
import importlib.util
import inspect
import itertools
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
from gate.files.untrusted import find_nearest
from gate.programs import TimeLimit
from gate.records.cases import Case, Metric
from gate.records.protocol import Sampling, WorkerRole
from gate.starter.files import Sketch, make_sketch, name_factory, read_tensor, render_factory, render_tensor
from gate.workload import Workload

_SEED = 0
_PROBLEM_CHARS = 300
_GUESSING_S = 30.0  # no further guess is tried after that
_DRIFT_LIMIT_S = 120.0  # one compile; whoever waits for init wants its files
_MOST_NAMES = 8  # of what a Python module has, or a function takes
_MISSING = object()

Guess = dict[str, Any]  # of a TensorSketch: shape, dtype, high, and what it is guessed from


class CannotTellError(Exception):
    """Nothing can be begun with what was named. ``kind`` says which fix there is."""

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Find what ``target`` is, whether it must be called, and inputs that it takes.

    Raises:
        CannotTellError: It cannot be imported or called, or nothing that was tried is an input of it.
    """
    sys.path.insert(0, request["directory"])
    found = _find(request["target"])
    arguments = request["arguments"]
    made, called = _make(found, arguments)
    if isinstance(made, Workload):
        return {"kind": "factory", "called": True, "inputs": [], "device": _find_device()}
    forward = made.forward if _is_module(made) else made
    inputs = _find_inputs(made, forward, request["inputs"])
    return {"kind": "module", "called": called, "inputs": inputs, "device": _find_device()}


def _find(target: str) -> Any:  # noqa: ANN401 - whatever the user named
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except BaseException as error:
        problem = f"{module} cannot be imported: {_describe(error)}{_list_lacking(module)}"
        raise CannotTellError("import", problem) from error
    for part in filter(None, name.split(".")):
        found = getattr(found, part, _MISSING)
    if found is _MISSING or not name:
        problem = f"{module} has no {name}" if name else "this is a module"
        raise CannotTellError("name", f"{problem}{_list_made(sys.modules[module], name)}")
    return found


def _list_lacking(module: str) -> str:
    """List all packages that a module's own file imports and that are not there: one try names all."""
    path = Path(sys.path[0], *module.split(".")).with_suffix(".py")
    code = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    names = re.findall(r"^(?:import|from) +([A-Za-z_]\w*)", code, re.MULTILINE)
    lacking = [name for name in dict.fromkeys(names) if importlib.util.find_spec(name) is None]
    return f"; not installed: {', '.join(lacking)}" if lacking else ""


def _list_made(module: Any, wanted: str) -> str:  # noqa: ANN401
    """List the classes of modules, then the functions, of a Python module; write the one that was meant.

    Which one that is nobody knows where several are unlike the ``wanted`` name.
    """
    own = [
        (name, one)
        for name, one in vars(module).items()
        if getattr(one, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    torch = sys.modules.get("torch")
    classes = [
        name for name, one in own if torch and inspect.isclass(one) and issubclass(one, torch.nn.Module)
    ]
    names = [*classes, *(name for name, one in own if inspect.isfunction(one))][:_MOST_NAMES]
    # Of a module that was named alone it is the last class: it is made of those above it.
    likely = [] if wanted else classes[-1:]
    meant = find_nearest(wanted, names) or next(iter(names if len(names) == 1 else likely), "")
    write = f": write {module.__name__}:{meant}" if meant else ""
    return f"; it has {', '.join(names)}{write}" if names else ""


def _make(found: Any, arguments: dict[str, Any]) -> tuple[Any, bool]:  # noqa: ANN401
    """Make the module where a class or function makes it; say whether it took a call."""
    if _is_module(found):
        return found, False
    if not callable(found):
        raise CannotTellError("name", f"it is {type(found).__name__}, not a module, class or function")
    lacking = [one.name for one in _list_required(found) if one.name not in arguments]
    if lacking and not inspect.isclass(found) and not arguments:
        return found, False  # a function of tensors
    if lacking:
        have = "has" if len(lacking) == 1 else "have"
        takes = getattr(found, "forward", None)
        forward = f"; forward takes {_name_parameters(takes)}" if takes else ""
        problem = f"it needs {', '.join(lacking)}, which {have} no default{forward}"
        raise CannotTellError("arguments", problem)
    try:
        _seed()
        made = found(**arguments)
    except BaseException as error:
        raise CannotTellError("call", f"calling it failed: {_describe(error)}") from error
    if _is_module(made) or isinstance(made, Workload):
        return made, True
    message = f"calling it gave {type(made).__name__}, not a torch.nn.Module or a gate.Workload"
    raise CannotTellError("name", message)


def _find_inputs(made: Any, forward: Any, given: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: ANN401
    """Find inputs that a call takes: those given, else the first guess that works.

    Where none works the first guess's error is reported: that guess is the likeliest.
    """
    if _is_module(made):
        made.eval()
    required = _list_required(forward)
    lists = [_count_lists(one) for one in required]
    if named := [one.name for one in required if one.kind is inspect.Parameter.KEYWORD_ONLY]:
        raise CannotTellError("factory", f"forward takes {', '.join(named)} by keyword only")
    first_error, until_s = "", time.monotonic() + _GUESSING_S
    names = [one.name for one in required] or ["input"]
    guesses = [given] if given else guess_inputs(made, names)
    for inputs in (nested for guess in guesses for nested in _nest(guess, lists)):
        try:
            _call(made, inputs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, these are no inputs of it
            first_error = first_error or f"{_describe_tensors(inputs)}: {_describe(error)}"
        else:
            taking = [one.name for one in required] + [""] * len(inputs)
            return [{**one, "name": name} for one, name in zip(inputs, taking, strict=False)]
        if time.monotonic() > until_s:
            break
    what = "failed with" if given else "failed with guessed inputs, the likeliest of them"
    raise CannotTellError("inputs", f"forward({_name_parameters(forward)}) {what} {first_error}")


def _count_lists(parameter: inspect.Parameter) -> int:
    """Count the lists around the tensors that a parameter is annotated with."""
    text = str(parameter.annotation).lower()
    around = re.match(r"(([\w.]*\.)?(list|sequence|tuple|iterable)\[)*(?=.*tensor)", text)
    return around[0].count("[") if around else 0


def _nest(guess: list[Guess], lists: Sequence[int]) -> Iterator[list[Guess]]:
    """Put tensors into the lists that are asked for: first without their batch, which the list is."""
    if not any(lists):
        yield guess
        return
    pairs = list(zip(guess, lists, strict=False))
    if all(one.get("source") for one in guess):
        yield [{**one, "lists": around, "shape": one["shape"][min(around, 1) :]} for one, around in pairs]
    yield [{**one, "lists": around} for one, around in pairs]


def _name_parameters(function: Any) -> str:  # noqa: ANN401
    names = list(inspect.signature(function).parameters)
    return ", ".join([*names[:_MOST_NAMES], *(["..."] if names[_MOST_NAMES:] else [])])


def _describe_tensors(inputs: list[Guess]) -> str:
    sources = (f" from {source}" if (source := one.get("source")) else "" for one in inputs)
    return ", ".join(f"{read_tensor(one)}{source}" for one, source in zip(inputs, sources, strict=True))


def _call(made: Any, inputs: list[Guess]) -> None:  # noqa: ANN401
    import torch  # noqa: PLC0415 - nothing before needs it

    _seed()
    texts = [render_tensor(read_tensor(one)) for one in inputs]
    with torch.no_grad():
        output = made(*(eval(text, {"torch": torch}) for text in texts))  # noqa: S307 - our own text
    from gate.measure.workload.tensors import iterate_tensors  # noqa: PLC0415 - as torch

    if not any(True for _ in iterate_tensors(output)):
        raise TypeError(f"forward returned {type(output).__name__}, and no tensor")


def _list_required(function: Any) -> list[inspect.Parameter]:  # noqa: ANN401
    """List the parameters without default; none where it has no signature to look at."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in parameters if one.default is inspect.Parameter.empty and one.kind not in variadic]


def _is_module(value: Any) -> bool:  # noqa: ANN401
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _find_device() -> str:
    torch = sys.modules.get("torch")
    return (CUDA if torch is not None and torch.cuda.is_available() else CPU).name


def _seed() -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(_SEED)


def _describe(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_PROBLEM_CHARS].rstrip(": ")


BATCH, LENGTH, SIDE = 8, 64, 64  # what guessed inputs have of each: a call takes milliseconds
SHORT = 16  # a length for a short table of positions
CHANNELS = 3  # of an image
IDS = 1000  # of a guessed vocabulary where no embedding says it
_WIDTHS = ("in_features", "input_size", "embed_dim", "num_features")
# Several inputs are guessed one by one as well, from so many guesses each.
_MOST_GUESSES, _MOST_INPUTS = 6, 3
# What inputs of these names are, whatever the layers say.
_NAMED: Sequence[tuple[str, Guess]] = (
    (r"(attention_)?mask", {"shape": [BATCH, LENGTH], "dtype": "bool", "high": 2}),
    (r"edge_index", {"shape": [2, LENGTH], "dtype": "int64", "high": BATCH}),
    (r"timesteps?|t", {"shape": [BATCH], "dtype": "float32"}),
)


def guess_inputs(made: Any, names: Sequence[str]) -> Iterator[list[Guess]]:  # noqa: ANN401 - any model
    """Guess the inputs of these names, the likeliest first: one kind of tensor for all, then one for each."""
    general = list(guess_tensors(made))
    named = [_guess_by_name(name) for name in names]
    for one in general:
        yield [own or one for own in named]
    if any(named):
        for one in general:
            yield [one] * len(names)
    if 1 < len(names) <= _MOST_INPUTS:
        choices = ([own] if own else general[:_MOST_GUESSES] for own in named)
        yield from map(list, itertools.product(*choices))


def guess_tensors(made: Any) -> Iterator[Guess]:  # noqa: ANN401 - any model
    """Guess a tensor, each once: for the first layers first, then what fits no layer's size."""
    floats = _find_dtype(made)
    seen = set()
    for guess in itertools.chain(_guess_by_layers(made, floats), _guess_blindly(floats)):
        key = (*guess["shape"], guess["dtype"], guess.get("high"))
        if key not in seen:
            seen.add(key)
            yield guess


def _guess_by_name(name: str) -> Guess | None:
    found = (guess for pattern, guess in _NAMED if re.fullmatch(pattern, name))
    return next(({**guess, "source": f"its name, {name}"} for guess in found), None)


def _guess_by_layers(made: Any, floats: str) -> Iterator[Guess]:  # noqa: ANN401 - any model
    layers = list(made.named_modules()) if _is_module(made) else []
    tables = [(name, layer) for name, layer in layers if vars(layer).get("num_embeddings")]
    if tables:  # the largest holds the words, a smaller one may hold positions
        name, layer = max(tables, key=lambda pair: pair[1].num_embeddings)
        for length in (LENGTH, SHORT):
            ids = {"shape": [BATCH, length], "dtype": "int64", "high": layer.num_embeddings}
            yield {**ids, "source": _describe_layer(name, layer, layer.num_embeddings)}
    for name, layer in layers:
        for width, shape in _list_shapes(layer):
            guess = {"shape": shape, "dtype": floats, "source": _describe_layer(name, layer, width)}
            yield {**guess, "is_image": _is_image(shape, floats)}


def _list_shapes(layer: Any) -> Iterator[tuple[int, list[int]]]:  # noqa: ANN401 - any module
    """List shapes that a layer takes, each with the width that it is made of."""
    kernel = vars(layer).get("kernel_size")
    width = vars(layer).get("in_channels")
    if isinstance(kernel, tuple) and isinstance(width, int) and width:  # 0: a lazy layer
        for side in (SIDE, 224):
            yield width, [BATCH, width, *[side] * len(kernel)]
    for name in _WIDTHS:
        if isinstance(width := vars(layer).get(name), int) and width:
            yield width, [BATCH, width]
            yield width, [BATCH, LENGTH, width]
    if shape := vars(layer).get("normalized_shape"):
        yield shape[-1], [BATCH, LENGTH, *shape]


def _is_image(shape: list[int], dtype: str) -> bool:
    """Whether it has the channels of an image: such are from 0 to 1, and some models take no others."""
    return len(shape) == len("NCHW") and shape[1] in (1, CHANNELS) and not dtype.startswith("complex")


def _guess_blindly(floats: str) -> Iterator[Guess]:
    for shape in ([SIDE, SIDE], [BATCH, LENGTH, SIDE], [BATCH, CHANNELS, SIDE, SIDE], [BATCH]):
        guess = {"shape": shape, "dtype": floats, "source": "no layer's size"}
        yield {**guess, "is_image": _is_image(shape, floats)}
    yield {"shape": [BATCH, LENGTH], "dtype": "int64", "high": IDS, "source": "no layer's size"}


def _describe_layer(name: str, layer: Any, width: int) -> str:  # noqa: ANN401 - any module
    kind = f"{type(layer).__name__} {width}"
    return f"{name} ({kind})" if name else kind


def _find_dtype(made: Any) -> str:  # noqa: ANN401 - any model
    """Find the floating-point or complex type of the parameters."""
    dtypes = (one.dtype for one in made.parameters()) if _is_module(made) else ()
    return next(
        (str(one).removeprefix("torch.") for one in dtypes if one.is_floating_point or one.is_complex),
        "float32",
    )


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
    """Answer one request: with what was found, then with the drift too, unless that takes too long."""
    request = json.loads(sys.argv[1])
    try:
        answer = look(request)
    except CannotTellError as error:
        answer = {"kind": error.kind, "problem": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    if request["drift_on"] is not None and "problem" not in answer:
        threading.Thread(target=_end_late, daemon=True).start()
        drift = measure_first(make_sketch(request, answer), request["drift_on"] or answer["device"])
        sys.stdout.write("\n" + json.dumps({**answer, "drift": drift}) + "\n")


if __name__ == "__main__":
    main()
