"""``python -m gate.starter.sketch REQUEST``: look at what a user named, in a process that has torch.

The request is JSON of :class:`gate.starter.probe.ProbeQuestion`. The last line of standard output is JSON:
what was found, or the problem in the user's words. torch is not imported here: without it there is no
module to find.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

from gate.workload import Workload

BATCH, LENGTH, SIDE = 8, 64, 64  # what guessed inputs have of each: a call takes milliseconds
IDS = 1000  # of a guessed vocabulary where no embedding tells it
_SEED = 0
_PROBLEM_CHARS = 300


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
        return {"kind": "factory", "called": True, "inputs": [], "has_cuda": _has_cuda()}
    forward = made.forward if _is_module(made) else made
    inputs = _find_inputs(made, forward, request["inputs"])
    return {"kind": "module", "called": called, "inputs": inputs, "has_cuda": _has_cuda()}


def _find(target: str) -> Any:  # noqa: ANN401 - whatever the user named
    module, _, name = target.partition(":")
    try:
        found = importlib.import_module(module)
    except BaseException as error:
        raise CannotTellError("import", f"{module} cannot be imported: {_describe(error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise CannotTellError("name", f"{module} has no {name}") from error
    return found


def _make(found: Any, arguments: dict[str, Any]) -> tuple[Any, bool]:  # noqa: ANN401
    """Make the module where a class or function makes it; say whether it took a call."""
    if _is_module(found):
        return found, False
    if not callable(found):
        raise CannotTellError("name", f"it is {type(found).__name__}, not a module, class or function")
    lacking = [name for name in _list_required(found) if name not in arguments]
    if lacking and not inspect.isclass(found) and not arguments:
        return found, False  # a function of tensors
    if lacking:
        have = "has" if len(lacking) == 1 else "have"
        raise CannotTellError("arguments", f"it needs {', '.join(lacking)}, which {have} no default")
    try:
        _seed()
        made = found(**arguments)
    except BaseException as error:
        raise CannotTellError("arguments", f"calling it failed: {_describe(error)}") from error
    if _is_module(made) or isinstance(made, Workload):
        return made, True
    told = f"calling it gave {type(made).__name__}, not a torch.nn.Module or a gate.Workload"
    raise CannotTellError("name", told)


def _find_inputs(made: Any, forward: Any, given: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: ANN401
    """Find inputs that a call takes: those given, else the first guess that works."""
    if _is_module(made):
        made.eval()
    needed = len(_list_required(forward))
    problem = f"forward takes {inspect.signature(forward)}, and no guess at its tensors worked"
    for inputs in [given] if given else _guess_inputs(made, needed):
        try:
            _call(made, inputs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, these are no inputs of it
            problem = f"forward{inspect.signature(forward)} failed: {_describe(error)}"
        else:
            return inputs
    raise CannotTellError("inputs", problem)


def _guess_inputs(made: Any, needed: int) -> Iterator[list[dict[str, Any]]]:  # noqa: ANN401
    """Guess: one kind of tensor for every argument, those of the first layers first."""
    for tensor in _guess_tensors(made):
        yield [tensor] * max(needed, 1)


def _guess_tensors(made: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    for layer in made.modules() if _is_module(made) else ():
        if count := getattr(layer, "num_embeddings", 0):
            yield {"shape": [BATCH, LENGTH], "dtype": "int64", "high": count}
        if width := getattr(layer, "in_channels", 0):
            space = len(getattr(layer, "kernel_size", (1, 1)))
            yield {"shape": [BATCH, width, *[SIDE] * space], "dtype": "float32"}
            yield {"shape": [BATCH, width, *[224] * space], "dtype": "float32"}
        for name in ("in_features", "input_size", "embed_dim", "num_features"):
            if isinstance(width := getattr(layer, name, None), int):
                yield {"shape": [BATCH, width], "dtype": "float32"}
                yield {"shape": [BATCH, LENGTH, width], "dtype": "float32"}
        if shape := getattr(layer, "normalized_shape", None):
            yield {"shape": [BATCH, LENGTH, *shape], "dtype": "float32"}
    for shape in ([SIDE, SIDE], [BATCH, LENGTH, SIDE], [BATCH, 3, SIDE, SIDE], [BATCH]):
        yield {"shape": shape, "dtype": "float32"}
    yield {"shape": [BATCH, LENGTH], "dtype": "int64", "high": IDS}


def _call(made: Any, inputs: list[dict[str, Any]]) -> None:  # noqa: ANN401
    import torch  # noqa: PLC0415 - nothing before needs it

    _seed()
    tensors = [
        torch.randint(0, one["high"], one["shape"], dtype=getattr(torch, one["dtype"]))
        if one.get("high") is not None
        else torch.randn(one["shape"], dtype=getattr(torch, one["dtype"]))
        for one in inputs
    ]
    with torch.no_grad():
        output = made(*tensors)
    if not any(isinstance(leaf, torch.Tensor) for leaf in _list_leaves(output)):
        raise TypeError(f"forward returned {type(output).__name__}, and no tensor")


def _list_leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _list_leaves(item)
    else:
        yield value


def _list_required(function: Any) -> list[str]:  # noqa: ANN401
    """List the parameters without default; none where it has no signature to look at."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        one.name for one in parameters if one.default is inspect.Parameter.empty and one.kind not in variadic
    ]


def _is_module(value: Any) -> bool:  # noqa: ANN401
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _has_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def _seed() -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(_SEED)


def _describe(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_PROBLEM_CHARS].rstrip(": ")


def main() -> None:
    """Answer one request."""
    try:
        answer = look(json.loads(sys.argv[1]))
    except CannotTellError as error:
        answer = {"kind": error.kind, "problem": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
