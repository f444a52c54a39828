"""The worker's result, kept on disk while it grows."""

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate.files.messages import save_plain
from gate.measure.failures import NotFiniteError, make_worker_failure
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, list_distinct, name_words
from gate.records.protocol import Stage, WorkerResult, WorkerRole


class Logbook:
    def __init__(self, path: Path | None, role: WorkerRole, begun: float | None = None) -> None:
        self._path = path
        self._entered = time.perf_counter() if begun is None else begun
        self._account = Stage.START
        self.result = WorkerResult(role=role, stage=Stage.START)

    def enter(self, stage: Stage) -> None:
        self._close_stage(stage)
        self.result = replace(self.result, stage=stage)
        self.save()

    def leave(self) -> None:
        self._close_stage(Stage.START)

    def charge(self, stage: Stage, seconds: float) -> None:
        stages_s = self.result.stages_s
        self.record(stages_s={**stages_s, stage: stages_s.get(stage, 0.0) + seconds})
        self._entered += seconds

    def _close_stage(self, following: Stage) -> None:
        now = time.perf_counter()
        self.charge(self._account, now - self._entered)
        self._entered, self._account = now, following

    def record(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of WorkerResult
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
        self.add_warnings(Fact(code=code, numbers=number or {}, names=name_words(**words)))

    def note_unmeasured(self, metric: Metric, why: str) -> None:
        self.add_warnings(Fact(code=Code.UNMEASURED, metrics=(metric,), names=name_words(why=why)))

    def add_warnings(self, *facts: Fact) -> None:
        self.result = replace(self.result, warnings=list_distinct((*self.result.warnings, *facts)))

    def hold_caches(self, caches: Mapping[str, str]) -> None:
        """Undo what measured code made of the cache directories: in its own, other compiles' graphs lie."""
        if changed := tuple(name for name, path in caches.items() if os.environ.get(name) != path):
            os.environ.update(caches)
            self.add_warnings(Fact(code=Code.CACHES_HELD, names={"variables": changed}))

    def fail(self, error: BaseException, fix: str = "") -> None:
        failure = make_worker_failure(error)
        self.result = replace(self.result, failure=replace(failure, fix=fix or failure.fix))
        self.save()

    def save(self) -> None:
        if self._path:
            save_plain(self.result, self._path)
