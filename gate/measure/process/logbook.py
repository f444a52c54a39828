"""The worker's result, kept on disk while it grows, so that a crash loses one stage only."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate.errors import GateError
from gate.files.codec import save_plain
from gate.measure.process.frames import format_error
from gate.records import Code, Fact, FailureKind, Metric, list_distinct, name_words
from gate.records.protocol import Prerequisite, Stage, WorkerFailure, WorkerResult, WorkerRole

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
        """Add what a reader should know, with its numbers and names; the same is told once."""
        self.add_warnings(Fact(code=code, numbers=number or {}, names=name_words(**words)))

    def add_warnings(self, *facts: Fact) -> None:
        """Add what a reader should know; the same is told once."""
        self.result = replace(self.result, warnings=list_distinct((*self.result.warnings, *facts)))

    def fail(self, error: BaseException, missing: Prerequisite | None = None) -> None:
        """Record why the case could not be measured; the stage stays where it happened."""
        self.result = replace(self.result, failure=replace(make_worker_failure(error), missing=missing))
        self.save()

    def save(self) -> None:
        """Write the result, atomically."""
        if self._path:
            save_plain(self.result, self._path)


def make_worker_failure(error: BaseException) -> WorkerFailure:
    """Tell an exception as a failure: its kind, one line, and the frames of measured code."""
    kind = FailureKind.NOT_FINITE if isinstance(error, NotFiniteError) else FailureKind.ERROR
    told = Fact(code=Code.RAISED, names=name_words(message=describe_error(error)))
    return WorkerFailure(kind=kind, told=told, traceback=format_error(error))


def describe_error(error: BaseException) -> str:
    """Describe an exception in one line: its type and the first line of what it says."""
    if isinstance(error, (GateError, NotFiniteError)):
        return str(error.args[0])[:_MAX_MESSAGE]
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].endswith("raised:"):  # a compiler's name, and below it what it said
        lines = [f"{lines[0]} {lines[1]}"]
    told = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    return told[:_MAX_MESSAGE]
