"""Progress of a run: a bar with the time left on a terminal, one plain line a trial elsewhere.

The bar is redrawn once a second: more often would take CPU time from what is being measured.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TextIO

from gate.metrics import SPECS
from gate.records import events
from gate.records.cases import Metric
from gate.records.protocol import Stage
from gate.records.run import Trial
from gate.report.clean import clean_line, make_console, write_text
from gate.report.words.facts import describe_measuring, describe_whole
from gate.units import format_duration, format_noun, format_value

if TYPE_CHECKING:
    from rich.console import Console

REFRESH_HZ = 1.0
HEARTBEAT_S = 30.0  # no estimate that is shown is older
_MAX_MESSAGE = 200  # characters of a failure's message; the log has the rest
_FIGURES = (Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME)
_STAGE = re.compile(r'"stage": ?"([a-z]+)"')
_ENDED = {Stage.ENDED, Stage.DONE}


@contextmanager
def show_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Iterator[events.Observer]:
    target = stream or sys.stderr
    if quiet:
        yield events.ignore_event
    elif (console := make_console(target)).is_terminal:
        with _show_bar(console) as observe:
            yield observe
    else:
        with _show_lines(lambda line: write_text(target, f"{line}\n")) as observe:
            yield observe


def make_observer(write_line: Callable[[str], None]) -> events.Observer:
    def observe(event: events.Event) -> None:
        if line := render_event(event):
            write_line(line)

    return observe


def render_event(event: events.Event) -> str:
    """``""`` where it is only of passing interest."""
    line, progress = _describe_event(event), getattr(event, "progress", None)
    return f"{_render_count(progress)} {line}{_render_left(progress)}" if line and progress else line


def _describe_event(event: events.Event) -> str:
    line = ""
    match event:
        case events.TrialFinished():
            line = _describe_trial(event.trial)
        case events.CaseFailed():
            failure = event.failure
            message = clean_line(describe_whole(failure), _MAX_MESSAGE)
            log = f"; log: {clean_line(failure.log)}" if failure.log else ""
            line = f"{clean_line(failure.case_id)} trial {failure.trial} FAILED: {message}{log}"
        case events.PairFinished():
            line = _describe_pair(event.base, event.head)
        case events.TrialSkipped():
            what = f"{'pair' if event.paired else 'trial'} {event.index} of {clean_line(event.case_id)}"
            line = f"no time left for {what} (about {format_duration(event.expected_s)})"
        case events.Noted():
            line = f"note: {clean_line(describe_measuring(event.fact))}"
        case events.PrimeStarted():
            line = "warming up the compiler, up to a minute"
        case events.PrimeFinished():
            line = f"compiler warmed up in {format_duration(event.toolchain_s)}"
        case events.LockAwaited():
            used = f"{clean_line(event.device)} is in use by {clean_line(event.holder)}"
            line = f"waiting up to {format_duration(event.limit_s)}: {used}"
    return line


def _describe_trial(trial: Trial) -> str:
    measured = ((metric, trial.samples.get(metric)) for metric in _FIGURES)
    figures = [
        f"{SPECS[metric].column} {format_value(metric, median(values))}"
        for metric, values in measured
        if values
    ]
    line = f"{clean_line(trial.case_id)} trial {trial.index}"
    return f"{line}: {', '.join(figures)}" if figures else line


def _describe_pair(base: Trial, head: Trial) -> str:
    latencies = [trial.samples.get(Metric.COMPILED_LATENCY) for trial in (base, head)]
    medians = (median(values) for values in latencies if values)
    text = " -> ".join(format_value(Metric.COMPILED_LATENCY, value) for value in medians)
    line = f"{clean_line(head.case_id)} pair {head.index}"
    return f"{line}: compiled {text} (base -> head)" if text else line


def _render_count(progress: events.Progress) -> str:
    if progress.cases:  # how many pairs they need is not known before
        return f"[{progress.cases_done}/{format_noun(progress.cases, 'case')} done]"
    return f"[{progress.done:>{len(str(progress.total))}}/{progress.total}]"


def _render_left(progress: events.Progress) -> str:
    if progress.done >= progress.total:
        return ""
    if progress.left_s < 1:
        return "; longer than expected"
    left = format_duration(progress.left_s)
    if progress.cases:  # it may be more: who is open after these pairs gets others
        return f"; {left} before the time is up" if progress.is_limited else f"; about {left} more"
    return f"; about {left} left"


def _render_stage(results: Iterable[Path]) -> str:
    """The stage of the worker that wrote last."""
    written = []
    for path in results:
        with suppress(OSError):  # not there yet, or gone
            written.append((path.stat().st_mtime, path.read_text(encoding="utf-8")))
    at_s, text = max(written, default=(0.0, ""))
    stage = _STAGE.search(text)
    passed = format_duration(time.time() - at_s)
    return f" ({stage[1]}, {passed})" if stage and stage[1] not in _ENDED else ""


@dataclass(kw_only=True)
class Status:
    read_s: Callable[[], float] = time.monotonic
    what: str = "starting"
    since_s: float = field(init=False)
    progress: events.Progress | None = None
    estimated_s: float = 0.0
    results: list[Path] = field(default_factory=list)  # of the workers of what is at work

    def __post_init__(self) -> None:
        self.since_s = self.read_s()

    def update(self, event: events.Event) -> None:
        match event:
            case events.PrimeStarted():
                self._begin("warming up the compiler")
            case events.LockAwaited():
                self._begin("waiting for the device")
            case events.TrialStarted():
                what = "pair" if event.paired else "trial"
                self._begin(f"{clean_line(event.case_id)} {what} {event.index}")
            case events.WorkerPlanned():
                self.results = [*self.results, event.result]
        if progress := getattr(event, "progress", None):
            self.progress, self.estimated_s = progress, self.read_s()

    def _begin(self, what: str) -> None:
        self.what, self.since_s, self.results = what, self.read_s(), []

    def render(self) -> str:
        """``bert/x trial 1, 41 s (compile, 12 s); about 5 min 12 s left``."""
        now_s = self.read_s()
        text = f"{self.what}, {format_duration(now_s - self.since_s)}{_render_stage(self.results)}"
        if self.progress is None:
            return text
        left_s = self.progress.left_s - (now_s - self.estimated_s)
        return text + _render_left(replace(self.progress, left_s=left_s))

    def render_line(self) -> str:
        return f"{_render_count(self.progress)} {self.render()}" if self.progress else self.render()


@contextmanager
def _show_lines(write_line: Callable[[str], None]) -> Iterator[events.Observer]:
    """Also what is at work, where no event came for HEARTBEAT_S."""
    status, spoken, ended = Status(), threading.Event(), threading.Event()
    print_line = make_observer(write_line)

    def observe(event: events.Event) -> None:
        status.update(event)
        if render_event(event):
            spoken.set()
        print_line(event)

    def beat() -> None:
        while not ended.is_set():
            if not spoken.wait(HEARTBEAT_S):
                write_line(status.render_line())
            spoken.clear()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield observe
    finally:
        ended.set()
        spoken.set()
        thread.join()


@contextmanager
def _show_bar(console: Console) -> Iterator[events.Observer]:
    # Only for a terminal.
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    status = Status()

    class StatusColumn(ProgressColumn):
        def render(self, task: Task) -> str:
            del task
            return status.render()

    columns = (
        TextColumn("[{task.completed:.0f}/{task.total:.0f}]", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        StatusColumn(),
    )
    with Progress(*columns, console=console, refresh_per_second=REFRESH_HZ, transient=True) as bar:
        task = bar.add_task("starting", total=1)
        print_line = make_observer(lambda line: console.print(line, soft_wrap=True))

        def observe(event: events.Event) -> None:
            print_line(event)
            status.update(event)
            if status.progress:
                bar.update(task, completed=status.progress.done, total=status.progress.total)

        yield observe
