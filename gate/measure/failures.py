"""How an exception is recorded: its kind, one line, its frames in measured code, and what fixes it."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, format_exception_only

from gate.errors import GateError
from gate.installation import COMPILER_FIX, HEADERS_FIX, PATH_FIX, is_one_word
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import WorkerFailure
from gate.records.run import FailureKind

_DEVICE_FIX = (
    "Choose a device this machine has (--device cpu), install a torch built for it, or fix its driver:"
    " `nvidia-smi` must list it."
)
# What fixes it, by the words of the compiler, of Inductor and of the driver: none has an exception for it.
_FIXES = {
    COMPILER_FIX: re.compile(r"InvalidCxxCompiler|C\+\+ compiler"),
    HEADERS_FIX: re.compile(r"Python\.h"),
    _DEVICE_FIX: re.compile(r"CUDA|NVIDIA|device ordinal|[Nn]o such device|Found no"),
}
_GATE = f"{Path(__file__).resolve().parents[1]}{os.sep}"
# Of the gate's own code these stand for a user's: a reference model, and a planted fault.
_MEASURED = (f"{_GATE}models{os.sep}", f"{_GATE}selftest{os.sep}planted.py")
# How the measured code was reached, which is not about it.
_MACHINERY = ("importlib", "_pytest", "pluggy", "pytest_benchmark")
_CONTEXTS = contextlib.__file__
_FROZEN = "<frozen "  # the import system, runpy
_GENERATED = ("<string>", "__init__")  # a dataclass's own
_COMPILER = "torch._dynamo"
_TRACED = "TorchRuntimeError"  # Dynamo's, of an operator that failed as it was traced
_BARE_HEADER = re.compile(r"^Traceback \(most recent call last\):\n(?! )", re.MULTILINE)
_MAX_MESSAGE = 500  # one line of a report


def find_fix(error: BaseException) -> str:
    """Find what a primer that ended with ``error`` lacks; "" where that is not the reason."""
    chain = list(_list_chain(error))
    if any(isinstance(cause, ModuleNotFoundError) and cause.name == "torch" for cause in chain):
        return f"Install torch for {sys.executable}, or name an interpreter that has it."
    # The gate's own words around them name a compiler, or CUDA, whatever it is that does not work.
    foreign = [cause for cause in chain if not isinstance(cause, GateError)]
    text = "\n".join(f"{type(cause).__name__}: {cause}" for cause in foreign)
    if "CppCompileError" in text and not all(map(is_one_word, _list_directories(("torch",)))):
        return PATH_FIX
    return next((fix for fix, pattern in _FIXES.items() if pattern.search(text)), "")


def _list_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def format_error(error: BaseException) -> str:
    """Format an exception and its causes with the frames that a reader can do something about."""
    traced, stack = _unwrap(error), choose_frames(getattr(error, "real_stack", ()))
    if traced is not error and stack:
        lines = (*StackSummary.from_list(stack).format(), *format_exception_only(traced))
        return f"Traceback (most recent call last):\n{''.join(lines)}"
    exception = TracebackException.from_exception(error)
    for cause in _walk_causes(exception):
        cause.stack = StackSummary.from_list(choose_frames(cause.stack))
    is_alone = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    if isinstance(error, GateError) and is_alone and not exception.stack:
        return f"{error}\n".removeprefix(f"{error.what}\n")  # the failure's own line has `what`
    return _BARE_HEADER.sub("", "".join(exception.format()))


def _unwrap(error: BaseException) -> BaseException:
    if type(error).__name__ != _TRACED:
        return error
    chain = (cause for cause in _list_chain(error) if not type(cause).__module__.startswith(_COMPILER))
    return next((cause for cause in chain if not _quotes_cause(cause)), error)


def _quotes_cause(error: BaseException) -> bool:
    return error.__cause__ is not None and repr(error.__cause__) in str(error)


def choose_frames(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    machinery, torch = _list_directories(_MACHINERY), _list_directories(("torch",))
    foreign = [frame for frame in frames if not _is_machinery(frame, machinery)]
    measured = [frame for frame in foreign if not frame.filename.startswith(torch)]
    if not measured:
        return foreign
    return [frame for frame in foreign if frame is foreign[-1] or not frame.filename.startswith(torch)]


def _walk_causes(exception: TracebackException) -> Iterator[TracebackException]:
    yield exception
    for inner in (exception.__cause__, exception.__context__, *(exception.exceptions or ())):
        if inner is not None:
            yield from _walk_causes(inner)


def _is_machinery(frame: FrameSummary, directories: tuple[str, ...]) -> bool:
    file = frame.filename
    if file.startswith(_GATE):
        return not file.startswith(_MEASURED)
    return file.startswith((_FROZEN, _CONTEXTS, *directories)) or (file, frame.name) == _GENERATED


def _list_directories(packages: Sequence[str]) -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in packages)
    return tuple(f"{Path(file).parent}{os.sep}" for file in files if file)


class NotFiniteError(Exception):
    """A NaN or an infinity where a number belongs: in an output, a gradient or a measurement."""


def make_worker_failure(error: BaseException) -> WorkerFailure:
    kind = FailureKind.NOT_FINITE if isinstance(error, NotFiniteError) else FailureKind.ERROR
    fact = Fact(code=Code.RAISED, names=name_words(message=describe_error(error)))
    # Around another error it may be something else that does not work.
    fix = error.fix if isinstance(error, GateError) and error.__cause__ is None else ""
    return WorkerFailure(kind=kind, fact=fact, traceback=format_error(error), fix=fix)


def describe_error(error: BaseException) -> str:
    if isinstance(error, (GateError, NotFiniteError)):
        return str(error.args[0])[:_MAX_MESSAGE]
    error = _unwrap(error)
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].endswith("raised:"):  # a compiler's name, and its message below it
        lines = [f"{lines[0]} {lines[1]}"]
    text = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    return text[:_MAX_MESSAGE]
