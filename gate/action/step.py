"""The command of a step: its process, what it leaves, and what the runner and a reader of the log are told.

What measures gets no way to the runner.
"""

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

from gate.action.base import find_base
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
from gate.report.words.facts import describe_whole, find_place
from gate.report.words.headline import write_opening
from gate.report.words.rules import list_rule_notes
from gate.units import join_some

RUN_FILE, VERDICT_FILE = "run.json", "verdict.json"
_CHUNK_BYTES = 64 * 1024  # a pipe's capacity on Linux
_KEPT_CHUNKS = 8  # of standard error: errors are a few lines, and come last
_STRAGGLER_S = 5.0  # something that it started may keep its standard error open
_KILLED = 128  # and the signal's number: the exit code that a shell tells
_ERROR = re.compile(r"compile-gate(?: [a-z-]+)*: (.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended. ``complaints`` are its errors, what is wrong and the fix in one text each."""

    code: int
    complaints: tuple[str, ...] = ()


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Run a command to its end. Signals that ask this process to stop are its to answer.

    Its standard error is passed on as it comes, to this process's standard output: the runner looks for
    commands in both, and may handle one stream's lines before an earlier line of the other. Its standard
    output is its own.
    """
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
    """List the errors that a command wrote to standard error: what, then the fix, on lines of their own."""
    found: list[str] = []
    for line in map(str.strip, written.splitlines()):
        if error := _ERROR.fullmatch(line):
            found.append(error[1])
        elif found and line:
            found[-1] += f" {line}" if found[-1].endswith((".", "!", "?", ":")) else f". {line}"
    return tuple(found)


def _pass_on(source: IO[bytes], tail: deque[bytes], ended: threading.Event) -> None:
    decoder = getincrementaldecoder("utf-8")("replace")
    with suppress(OSError, ValueError):  # closed, by whoever no longer waits for a straggler
        while (chunk := os.read(source.fileno(), _CHUNK_BYTES)) and not ended.is_set():
            tail.append(chunk)
            sys.stdout.write(decoder.decode(chunk))
            sys.stdout.flush()


def make_child_environment(environ: Mapping[str, str], inputs: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of the command: without any way to the runner, but for what holds a token."""
    if inputs["mode"] not in TRUSTED_MODES:
        return drop_hidden(environ)
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return kept | {"GITHUB_TOKEN": inputs["token"]}


def run_command(step: ActionStep, arguments: tuple[str, ...]) -> Ended:
    """Run ``compile-gate`` with the arguments.

    Nothing that it prints can be taken for a command to the runner, unless it holds a token: then it runs no
    measured code, and guards what it prints itself.
    """
    is_trusted = step.inputs["mode"] in TRUSTED_MODES
    environment = make_child_environment(step.environ, step.inputs)
    with nullcontext() if is_trusted else stop_commands():
        return run_child(make_command("gate", *arguments), environment)


@contextmanager
def stop_commands() -> Iterator[None]:
    """Let the runner take nothing that is printed meanwhile for a command to it."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)


def clear_results(out: Path) -> None:
    """Remove an earlier run's files from where a command will leave its own.

    Raises:
        UsageError: Something else lies there, which a change can bring.
    """
    for name in (VERDICT_FILE, SHOWN_FILE, RUN_FILE, *(one.file for one in FORMATS.values() if one.file)):
        path = out.absolute() / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = f"{path} cannot be replaced: {error.strerror}"
            raise UsageError(
                what, "Remove it: results are written there, and none may be taken for new."
            ) from None


def list_annotations(verdict: Verdict, measured: Path, code: int) -> Iterator[str]:
    """List what to show on the run's page: the headline, then what failed or regressed, on its line if known.

    ``measured`` is where measured code was imported from, ``code`` the step's exit code. A verdict that does
    not fail the step is a warning: GitHub would show an error in a green job.
    """
    level = "error" if code else "notice" if verdict.outcome is Outcome.PASS else "warning"
    yield render_annotation(level, f"{verdict.outcome.value}: {write_opening(verdict)}")
    regressed = [item for item in verdict.comparisons if item.decides and item.status is Status.REGRESSED]
    shown = list(_list_failed(verdict, measured))
    for item in regressed:
        title = f"compile-gate: {item.case_id} {item.metric}"
        locations = (one.fact.name("location") for one in verdict.causes if _is_place(one, item))
        place = next(filter(None, (_find_place(location, measured) for location in locations)), "")
        shown.append((describe_comparison(item), title, place))
    level = "error" if code in (ExitCode.REGRESSION, ExitCode.INCOMPLETE) else "warning"
    for text, title, place in shown[: MAX_ANNOTATIONS - 2]:
        yield render_annotation(level, text, title, place)
    if (left := len(shown) - (MAX_ANNOTATIONS - 2)) > 0:
        yield render_annotation(level, f"The job summary has {left} more.")


def _list_failed(verdict: Verdict, measured: Path) -> Iterator[tuple[str, str, str]]:
    """List the text, title and place of each case that failed, by its first failure."""
    broken = {item.case_id for item in verdict.comparisons if item.decides and item.status in BROKEN}
    failures = {one.case_id: one for one in reversed(verdict.failures)}
    for case_id in filter(broken.__contains__, dict.fromkeys(one.case_id for one in verdict.failures)):
        failure = failures[case_id]
        place = _find_place(find_place(failure), measured)
        yield describe_whole(failure), f"compile-gate: {case_id}", place


# The facts whose place is the line of what regressed.
_PLACED = {
    Metric.GRAPH_BREAKS: Code.GRAPH_BREAK,
    Metric.RECOMPILES: Code.RECOMPILED,
    Metric.MEMORY_GROWTH: Code.MEMORY_KEPT,
}


def _is_place(cause: Cause, item: Comparison) -> bool:
    return cause.case_id == item.case_id and cause.fact.code is _PLACED.get(item.metric)


def _find_place(location: str, measured: Path) -> str:
    """Find a line of measured code from the top of the checkout, as GitHub names its files."""
    top = (find_checkout(measured) or measured).resolve()
    file, _, line = location.rpartition(":")
    path = (measured / file).resolve()
    is_ours = file and line.isdecimal() and path.is_file() and path.is_relative_to(top)
    return f"{path.relative_to(top).as_posix()}:{line}" if is_ours else ""


def report_rules(step: ActionStep, source: RuleSource) -> None:
    """Say in the log whose rules hold, and what was accepted; warn of what of that does not count."""
    if source.rules.sha:
        clause = f": {source.origin}" if source.origin else ""
        print(f"Configuration and baselines are those of commit {source.rules.sha}{clause}.", flush=True)
    for note in (*source.accepted.notes, *([source.rules.mended] if source.rules.mended else [])):
        print(note, flush=True)
    for warning in source.accepted.warnings:
        warn(step, warning)


def report_change(step: ActionStep, source: RuleSource) -> None:
    """Say that the change touches what it is judged by; it was judged by the base's all the same.

    The change that brings the gate brings its workflows too: that is one notice.
    """
    for note in list_rule_notes(source.rules):
        warn(step, note, "notice" if source.rules.is_first else "warning")
    if source.workflows and not source.rules.is_first:
        what = f"This change touches {join_some(source.workflows, _SHOWN)}"
        text = "GitHub ran this check as the change has it. Review that before you trust the result."
        warn(step, f"{what}: {text}")


_SHOWN = 5  # workflows that a warning names


def report_failure(ended: Ended) -> int:
    """Say on the run's page why a command failed, in its own words, and return its exit code."""
    if ended.code == ExitCode.PASS:
        return ended.code
    other = f"compile-gate ended with exit code {ended.code}; see the log."
    if ended.code == ExitCode.INCOMPLETE:
        other = "Not every case could be measured; the log names those that failed."
    for text in ended.complaints or (other,):
        print(render_annotation("error", text), flush=True)
    return ended.code


def find_confirming_commit(step: ActionStep) -> str:
    """Find the commit to confirm suspects against; where it is out of reach that is said, and no error.

    Empty where the input ``confirm`` or the event asks for none.
    """
    if step.inputs["confirm"] != "true":
        return ""
    try:
        base = find_base(step.event, Path.cwd())
    except UsageError as error:
        warn(step, f"What looks worse is not measured again side by side: {error.what}. {error.fix}")
        return ""
    return base.sha if base else ""


def warn(step: ActionStep, text: str, level: str = "warning") -> None:
    """Warn on the run's page and in the summary."""
    print(render_annotation(level, text), flush=True)
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    add_summary(step.environ, f"> {safe}\n")


def set_outputs(environ: Mapping[str, str], outputs: Mapping[str, object]) -> None:
    """Set outputs of the step. A file of the runner's that cannot be written changes no exit code."""
    with _say_unwritten():
        write_outputs(environ, outputs)


def add_summary(environ: Mapping[str, str], markdown: str) -> None:
    """Append to the job summary, as :func:`set_outputs` sets outputs."""
    with _say_unwritten():
        append_summary(environ, markdown)


@contextmanager
def _say_unwritten() -> Iterator[None]:
    try:
        yield
    except GateError as error:
        print(render_annotation("error", f"{error.what}. {error.fix}"), flush=True)
