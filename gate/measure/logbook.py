"""The worker's result, kept on disk while it grows, and what it says of an exception."""

import contextlib
import math
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, format_exception_only
from typing import Any

from gate.errors import GateError
from gate.files.messages import save_plain
from gate.installation import COMPILER_FIX, HEADERS_FIX
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, list_distinct, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerResult, WorkerRole
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


def find_fix(error: BaseException) -> str:
    """Find what gives a primer that ended with ``error`` what it lacks; "" where that is not the reason."""
    chain = list(_list_chain(error))
    if any(isinstance(one, ModuleNotFoundError) and one.name == "torch" for one in chain):
        return f"Install torch for {sys.executable}, or name an interpreter that has it."
    # The gate's own words around them name a compiler, or CUDA, whatever it is that does not work.
    foreign = [one for one in chain if not isinstance(one, GateError)]
    said = "\n".join(f"{type(one).__name__}: {one}" for one in foreign)
    return next((fix for fix, pattern in _FIXES.items() if pattern.search(said)), "")


def _list_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


_GATE = f"{Path(__file__).resolve().parents[1]}{os.sep}"
# Of the gate's own code these stand for a user's: a reference model, and a planted fault.
_MEASURED = (f"{_GATE}models{os.sep}", f"{_GATE}selftest{os.sep}planted.py")
# How the measured code was reached, which says nothing about it.
_MACHINERY = ("importlib", "_pytest", "pluggy", "pytest_benchmark")
_CONTEXTS = contextlib.__file__
_FROZEN = "<frozen "  # the import system, runpy
_GENERATED = ("<string>", "__init__")  # a dataclass's own
_COMPILER = "torch._dynamo"
_TRACED = "TorchRuntimeError"  # Dynamo's, of an operator that failed as it was traced
_BARE_HEADER = re.compile(r"^Traceback \(most recent call last\):\n(?! )", re.MULTILINE)


def format_error(error: BaseException) -> str:
    """Format an exception and its causes with the frames that a reader can do something about.

    Where measured code called torch, of torch's frames only the one that raised is kept. Of an operator that
    failed as Dynamo traced it, these are the lines that were traced.
    """
    traced, stack = _find_traced(error), choose_frames(getattr(error, "real_stack", ()))
    if traced is not error and stack:
        lines = (*StackSummary.from_list(stack).format(), *format_exception_only(traced))
        return f"Traceback (most recent call last):\n{''.join(lines)}"
    exception = TracebackException.from_exception(error)
    for one in _walk_causes(exception):
        one.stack = StackSummary.from_list(choose_frames(one.stack))
    is_alone = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    if isinstance(error, GateError) and is_alone and not exception.stack:
        return f"{error}\n".removeprefix(f"{error.what}\n")  # the failure's own line says what
    return _BARE_HEADER.sub("", "".join(exception.format()))


def _find_traced(error: BaseException) -> BaseException:
    """Find the operator's own error in one of Dynamo's, or in one that only quotes its cause."""
    if type(error).__name__ != _TRACED:
        return error
    chain = (one for one in _list_chain(error) if not type(one).__module__.startswith(_COMPILER))
    return next((one for one in chain if not (one.__cause__ and repr(one.__cause__) in str(one))), error)


def choose_frames(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    """Leave out the gate's, pytest's and importlib's frames, and torch's above and below measured code."""
    machinery, torch = _find_places(_MACHINERY), _find_places(("torch",))
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


def _is_machinery(frame: FrameSummary, places: tuple[str, ...]) -> bool:
    file = frame.filename
    if file.startswith(_GATE):
        return not file.startswith(_MEASURED)
    return file.startswith((_FROZEN, _CONTEXTS, *places)) or (file, frame.name) == _GENERATED


def _find_places(packages: Sequence[str]) -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in packages)
    return tuple(f"{Path(file).parent}{os.sep}" for file in files if file)


_MAX_MESSAGE = 500  # one line of a report


class NotFiniteError(Exception):
    """A NaN or an infinity where a number belongs: in an output, a gradient or a measurement."""


class Logbook:
    """Collects a :class:`WorkerResult`. Without a path nothing is written.

    ``enter`` closes the stage at hand and writes the result with the stage being entered.
    """

    def __init__(self, path: Path | None, role: WorkerRole, begun: float | None = None) -> None:
        """Begin at stage ``start``; ``begun`` is the ``time.perf_counter()`` it is counted from."""
        self._path = path
        self._entered = time.perf_counter() if begun is None else begun
        self._account = Stage.START
        self.result = WorkerResult(role=role, stage=Stage.START)

    def enter(self, stage: Stage) -> None:
        """Close the current stage, add its wall seconds to those it had, and enter ``stage``."""
        self._close_stage(stage)
        self.result = replace(self.result, stage=stage)
        self.save()

    def leave(self) -> None:
        """Close the current stage: the time from now on is the tool's own, as that of ``start``."""
        self._close_stage(Stage.START)

    def charge(self, stage: Stage, seconds: float) -> None:
        """Charge some of the current stage's seconds to another stage."""
        stages_s = self.result.stages_s
        self.record(stages_s={**stages_s, stage: stages_s.get(stage, 0.0) + seconds})
        self._entered += seconds

    def _close_stage(self, following: Stage) -> None:
        now = time.perf_counter()
        self.charge(self._account, now - self._entered)
        self._entered, self._account = now, following

    def record(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of WorkerResult
        """Set fields of the result."""
        self.result = replace(self.result, **changes)

    def add_samples(self, samples: Mapping[Metric, Iterable[float]]) -> None:
        """Add the samples of some metrics.

        Raises:
            NotFiniteError: A sample is NaN or infinite.
        """
        added = {metric: tuple(map(float, values)) for metric, values in samples.items()}
        for metric, values in added.items():
            if not all(map(math.isfinite, values)):
                raise NotFiniteError(f"a sample of {metric} is not finite")
        self.result = replace(self.result, samples={**self.result.samples, **added})

    def note(self, code: Code, number: Mapping[str, float] | None = None, **words: str) -> None:
        """Add what a reader should know, with its numbers and names; the same is noted once."""
        self.add_warnings(Fact(code=code, numbers=number or {}, names=name_words(**words)))

    def note_unmeasured(self, metric: Metric, why: str) -> None:
        """Add that a metric is not measured, and why."""
        self.add_warnings(Fact(code=Code.UNMEASURED, metrics=(metric,), names=name_words(why=why)))

    def add_warnings(self, *facts: Fact) -> None:
        """Add what a reader should know; the same is noted once."""
        self.result = replace(self.result, warnings=list_distinct((*self.result.warnings, *facts)))

    def fail(self, error: BaseException, fix: str = "") -> None:
        """Record why the case could not be measured; the stage stays where it happened."""
        failure = make_worker_failure(error)
        self.result = replace(self.result, failure=replace(failure, fix=fix or failure.fix))
        self.save()

    def save(self) -> None:
        """Write the result, atomically."""
        if self._path:
            save_plain(self.result, self._path)


def make_worker_failure(error: BaseException) -> WorkerFailure:
    """Tell an exception as a failure: its kind, one line, and the frames of measured code."""
    kind = FailureKind.NOT_FINITE if isinstance(error, NotFiniteError) else FailureKind.ERROR
    fact = Fact(code=Code.RAISED, names=name_words(message=describe_error(error)))
    # Around another error it may be something else that does not work.
    fix = error.fix if isinstance(error, GateError) and error.__cause__ is None else ""
    return WorkerFailure(kind=kind, fact=fact, traceback=format_error(error), fix=fix)


def describe_error(error: BaseException) -> str:
    """Describe an exception in one line: its type and the first line of what it says.

    Of an operator that failed as Dynamo traced it, that is the operator's.
    """
    if isinstance(error, (GateError, NotFiniteError)):
        return str(error.args[0])[:_MAX_MESSAGE]
    error = _find_traced(error)
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].endswith("raised:"):  # a compiler's name, and below it what it said
        lines = [f"{lines[0]} {lines[1]}"]
    text = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    return text[:_MAX_MESSAGE]
