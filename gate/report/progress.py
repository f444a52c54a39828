"""Progress of a run: a bar with the time left on a terminal, one plain line a trial elsewhere.

It renders the lab's events and measures nothing. The bar is redrawn once a second: more often would
take CPU time from what is being measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, TextIO

from gate.metrics import SPECS
from gate.records import events
from gate.records.cases import Metric
from gate.report.clean import clean_line, make_console, write_text
from gate.report.words.facts import describe_measuring, describe_whole
from gate.units import count_noun, render_duration, render_value

if TYPE_CHECKING:
    from rich.console import Console

REFRESH_HZ = 1.0
_MAX_MESSAGE = 200  # characters of a failure's message; the log has the rest
_FIGURES = (Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME)


@contextmanager
def show_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Iterator[events.Observer]:
    """Give an observer for the lab that shows progress on ``stream`` (standard error) until the end."""
    target = stream or sys.stderr
    if quiet:
        yield events.ignore_event
    elif (console := make_console(target)).is_terminal:
        with _show_bar(console) as observe:
            yield observe
    else:
        yield make_observer(lambda line: write_text(target, f"{line}\n"))


def make_observer(write_line: Callable[[str], None]) -> events.Observer:
    """Make an observer that writes one line for each event worth one."""

    def observe(event: events.Event) -> None:
        if line := render_event(event):
            write_line(line)

    return observe


def render_event(event: events.Event) -> str:
    """Return an event as one line; "" where it is only of passing interest."""
    said, progress = "", None
    match event:
        case events.TrialFinished():
            said, progress = f"{clean_line(event.trial.case_id)} trial {event.trial.index}", event.progress
            taken = ((metric, event.trial.samples.get(metric)) for metric in _FIGURES)
            figures = [
                f"{SPECS[metric].column} {render_value(metric, median(values))}"
                for metric, values in taken
                if values
            ]
            said += f": {', '.join(figures)}" if figures else ""
        case events.CaseFailed():
            failure, progress = event.failure, event.progress
            message = clean_line(describe_whole(failure), _MAX_MESSAGE)
            log = f"; log: {clean_line(failure.log)}" if failure.log else ""
            said = f"{clean_line(failure.case_id)} trial {failure.trial} FAILED: {message}{log}"
        case events.PairFinished():
            said, progress = f"{clean_line(event.head.case_id)} pair {event.head.index}", event.progress
            values = [trial.samples.get(Metric.COMPILED_LATENCY, ()) for trial in (event.base, event.head)]
            text = " -> ".join(render_value(Metric.COMPILED_LATENCY, median(one)) for one in values if one)
            said += f": compiled {text} (base -> head)" if text else ""
        case events.TrialSkipped():
            what = f"{'pair' if event.paired else 'trial'} {event.index} of {clean_line(event.case_id)}"
            said = f"no time left for {what} (about {render_duration(event.expected_s)})"
        case events.Noted():
            said = f"note: {clean_line(describe_measuring(event.fact))}"
        case events.PrimeStarted():
            said = "warming up the compiler, up to a minute"
        case events.PrimeFinished():
            said = f"compiler warmed up in {render_duration(event.toolchain_s)}"
        case events.LockAwaited():
            used = f"{clean_line(event.device)} is in use by {clean_line(event.holder)}"
            said = f"waiting up to {render_duration(event.limit_s)}: {used}"
    return f"{_render_count(progress)} {said}{_render_left(progress)}" if progress else said


def _render_count(progress: events.Progress) -> str:
    if progress.cases:  # how many pairs they need is not known before
        return f"[{progress.cases_done}/{count_noun(progress.cases, 'case')} done]"
    return f"[{progress.done:>{len(str(progress.total))}}/{progress.total}]"


def _render_left(progress: events.Progress) -> str:
    if progress.done >= progress.total:
        return ""
    left = render_duration(progress.left_s)
    if progress.cases:  # it may be more: who is open after these pairs gets others
        return f"; {left} before the time is up" if progress.is_limited else f"; about {left} more"
    return f"; about {left} left"


@contextmanager
def _show_bar(console: Console) -> Iterator[events.Observer]:
    # Only for a terminal.
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("[{task.completed:.0f}/{task.total:.0f}]", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.description}{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console, refresh_per_second=REFRESH_HZ, transient=True) as bar:
        task = bar.add_task("starting", total=1, left="")
        print_line = make_observer(lambda line: console.print(line, soft_wrap=True))

        def observe(event: events.Event) -> None:
            print_line(event)
            if isinstance(event, events.PrimeStarted):
                bar.update(task, description="warming up the compiler")
            if isinstance(event, events.TrialStarted):
                what = f"{'pair' if event.paired else 'trial'} {event.index}"
                bar.update(task, description=f"{clean_line(event.case_id)} {what}")
            progress = getattr(event, "progress", None)
            if isinstance(progress, events.Progress):
                left = _render_left(progress)
                bar.update(task, completed=progress.done, total=progress.total, left=left)

        yield observe
