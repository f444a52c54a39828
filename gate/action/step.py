"""The command of a step: its process, what it leaves, and what the runner and the log show of it."""

import os
import re
import secrets
import subprocess
import sys
import threading
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gate.action.base_commit import find_base
from gate.action.inputs import TRUSTED_MODES, ActionStep
from gate.action.launch import drop_hidden, make_command
from gate.action.rules import RuleSource
from gate.errors import ExitCode, GateError, UsageError
from gate.git import find_checkout
from gate.github.job import MAX_ANNOTATIONS, append_summary, render_annotation, write_outputs
from gate.programs import answer_signals
from gate.publish.shown import SHOWN_FILE
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.verdict import BROKEN, Cause, Comparison, Outcome, Status, Verdict
from gate.report import FORMATS
from gate.report.words.comparisons import describe_comparison
from gate.report.words.facts import describe_whole, find_failing_line
from gate.report.words.headline import write_opening
from gate.report.words.rules import list_rule_notes
from gate.sizes import KIB
from gate.units import join_some

RUN_FILE, VERDICT_FILE = "run.json", "verdict.json"
_CHUNK_BYTES = 64 * KIB  # a pipe's capacity on Linux
_KEPT_CHUNKS = 8  # of standard error: errors are a few lines, and come last
_STRAGGLER_S = 5.0  # something that it started may keep its standard error open
_KILLED = 128  # and the signal's number: the exit code of a shell
_ERROR = re.compile(r"compile-gate(?: [a-z-]+)*: (.+)")
# The facts with the line of what regressed.
_LOCATED = {
    Metric.GRAPH_BREAKS: Code.GRAPH_BREAK,
    Metric.RECOMPILES: Code.RECOMPILED,
    Metric.MEMORY_GROWTH: Code.MEMORY_KEPT,
}
_SHOWN = 5  # workflows that a warning names


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """``complaints`` are the errors of a command, each with its fix."""

    code: int
    complaints: tuple[str, ...] = ()


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Its standard error goes to our standard output: the runner may mix up the order of two streams."""
    sys.stdout.flush()
    with (
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, bufsize=0) as process,
        # To what asks this process to stop: the command ends its own and saves what it has.
        answer_signals(lambda number, _: process.send_signal(number)),
    ):
        tail: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        ended = threading.Event()
        reader = threading.Thread(target=_pass_on, args=(process.stderr, tail, ended), daemon=True)
        reader.start()
        code = process.wait()
        reader.join(_STRAGGLER_S)
        ended.set()
    complaints = list_complaints(b"".join(tail).decode(errors="replace"))
    return Ended(code=code if code >= 0 else _KILLED - code, complaints=complaints)


def list_complaints(written: str) -> tuple[str, ...]:
    """An error and its fix stand on lines of their own."""
    complaints: list[str] = []
    for line in map(str.strip, written.splitlines()):
        if error := _ERROR.fullmatch(line):
            complaints.append(error[1])
        elif complaints and line:
            complaints[-1] += f" {line}" if complaints[-1].endswith((".", "!", "?", ":")) else f". {line}"
    return tuple(complaints)


def _pass_on(source: IO[bytes], tail: deque[bytes], ended: threading.Event) -> None:
    decoder = getincrementaldecoder("utf-8")("replace")
    with suppress(OSError, ValueError):  # closed, by whoever no longer waits for a straggler
        while (chunk := os.read(source.fileno(), _CHUNK_BYTES)) and not ended.is_set():
            tail.append(chunk)
            sys.stdout.write(decoder.decode(chunk))
            sys.stdout.flush()


def make_child_environment(environ: Mapping[str, str], inputs: Mapping[str, str]) -> dict[str, str]:
    if inputs["mode"] not in TRUSTED_MODES:
        return drop_hidden(environ)
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return kept | {"GITHUB_TOKEN": inputs["token"]}


def run_command(step: ActionStep, arguments: tuple[str, ...]) -> Ended:
    """The runner reads no commands from its output, unless it holds a token: then it guards itself."""
    is_trusted = step.inputs["mode"] in TRUSTED_MODES
    environment = make_child_environment(step.environ, step.inputs)
    with nullcontext() if is_trusted else stop_commands():
        return run_child(make_command("gate", *arguments), environment)


@contextmanager
def stop_commands() -> Iterator[None]:
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")
    try:
        yield
    finally:
        print(f"::{token}::")


def clear_results(out: Path) -> None:
    """Raises UsageError where something else lies there, which a change can bring."""
    for name in (VERDICT_FILE, SHOWN_FILE, RUN_FILE, *(form.file for form in FORMATS.values() if form.file)):
        path = out.absolute() / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = f"{path} cannot be replaced: {error.strerror}"
            raise UsageError(
                what, "Remove it: results are written there, and none may be taken for new."
            ) from None


def list_annotations(verdict: Verdict, measured: Path, code: int) -> Iterator[str]:
    """The headline, then what failed or regressed, on its line if known.

    ``measured`` is where measured code was imported from. A verdict that does not fail the step is a warning:
    GitHub would show an error in a green job.
    """
    level = "error" if code else "notice" if verdict.outcome is Outcome.PASS else "warning"
    yield render_annotation(level, f"{verdict.outcome.value}: {write_opening(verdict)}")
    regressed = [row for row in verdict.comparisons if row.decides and row.status is Status.REGRESSED]
    shown = list(_list_failed(verdict, measured))
    for row in regressed:
        title = f"compile-gate: {row.case_id} {row.metric}"
        lines = (cause.fact.name("location") for cause in verdict.causes if _is_of_row(cause, row))
        location = next(filter(None, (_find_location(line, measured) for line in lines)), "")
        shown.append((describe_comparison(row), title, location))
    level = "error" if code in (ExitCode.REGRESSION, ExitCode.INCOMPLETE) else "warning"
    for text, title, location in shown[: MAX_ANNOTATIONS - 2]:
        yield render_annotation(level, text, title, location)
    if (left := len(shown) - (MAX_ANNOTATIONS - 2)) > 0:
        yield render_annotation(level, f"The job summary has {left} more.")


def _list_failed(verdict: Verdict, measured: Path) -> Iterator[tuple[str, str, str]]:
    """List the text, title and location of each failed case, by its first failure."""
    broken = {row.case_id for row in verdict.comparisons if row.decides and row.status in BROKEN}
    listed: set[str] = set()
    for failure in verdict.failures:
        if failure.case_id in broken - listed:
            listed.add(failure.case_id)
            location = _find_location(find_failing_line(failure), measured)
            yield describe_whole(failure), f"compile-gate: {failure.case_id}", location


def _is_of_row(cause: Cause, row: Comparison) -> bool:
    return cause.case_id == row.case_id and cause.fact.code is _LOCATED.get(row.metric)


def _find_location(location: str, measured: Path) -> str:
    """Find the path from the top of the checkout, as GitHub names its files; else empty."""
    top = (find_checkout(measured) or measured).resolve()
    file, _, line = location.rpartition(":")
    with suppress(OSError, ValueError):  # what a traceback names need not be a path, or one below the top
        path = (measured / file).resolve()
        if line.isdecimal() and path.is_file():
            return f"{path.relative_to(top).as_posix()}:{line}"
    return ""


def report_rules(step: ActionStep, source: RuleSource) -> None:
    if source.rules.sha:
        clause = f": {source.origin}" if source.origin else ""
        print(f"Configuration and baselines are those of commit {source.rules.sha}{clause}.")
    for note in (*source.accepted.notes, *([source.rules.mended] if source.rules.mended else [])):
        print(note)
    for warning in source.accepted.warnings:
        warn(step, warning)


def report_change(step: ActionStep, source: RuleSource) -> None:
    """For the change that brings the gate, and so its workflows, this is one notice."""
    for note in list_rule_notes(source.rules):
        warn(step, note, "notice" if source.rules.is_first else "warning")
    if source.workflows and not source.rules.is_first:
        what = f"This change touches {join_some(source.workflows, _SHOWN)}"
        text = "GitHub ran this check as the change has it. Review that before you trust the result."
        warn(step, f"{what}: {text}")


def report_failure(ended: Ended) -> int:
    if ended.code == ExitCode.PASS:
        return ended.code
    other = f"compile-gate ended with exit code {ended.code}; see the log."
    if ended.code == ExitCode.INCOMPLETE:
        other = "Not every case could be measured; the log names those that failed."
    for text in ended.complaints or (other,):
        print(render_annotation("error", text))
    return ended.code


def find_confirming_commit(step: ActionStep) -> str:
    """Empty, with a warning, where it is out of reach."""
    if step.inputs["confirm"] != "true":
        return ""
    try:
        base = find_base(step.event, Path.cwd())
    except UsageError as error:
        warn(step, f"What looks worse is not measured again side by side: {error.what}. {error.fix}")
        return ""
    return base.sha if base else ""


def warn(step: ActionStep, text: str, level: str = "warning") -> None:
    print(render_annotation(level, text))
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    add_summary(step.environ, f"> {safe}\n")


def set_outputs(environ: Mapping[str, str], outputs: Mapping[str, object]) -> None:
    """A file of the runner that cannot be written changes no exit code."""
    with _report_unwritten():
        write_outputs(environ, outputs)


def add_summary(environ: Mapping[str, str], markdown: str) -> None:
    """As :func:`set_outputs`."""
    with _report_unwritten():
        append_summary(environ, markdown)


@contextmanager
def _report_unwritten() -> Iterator[None]:
    try:
        yield
    except GateError as error:
        print(render_annotation("error", f"{error.what}. {error.fix}"))
