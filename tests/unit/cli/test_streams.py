"""Whatever happens to standard output and error, the exit code is the verdict's."""

import os
import subprocess
from pathlib import Path

import pytest

from gate.errors import ExitCode
from gate.files.codec import VERDICT
from gate.records.verdict import Outcome
from gate.report import FORMATS
from tests.unit.cli.conftest import RunGate

COMPARE = ("compare", "old.json", "slow.json", "--out", "out")


def open_closed_pipe() -> int:
    """The end to write to of a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("report_format", FORMATS)
def test_a_reader_that_went_away_changes_no_verdict(run_gate: RunGate, report_format: str) -> None:
    """`compare ... | head -0` of a regression is exit 10, in every format, and the verdict is written."""
    done = run_gate(*COMPARE, "--format", report_format, capture_output=False, stdout=open_closed_pipe())
    assert done.returncode == ExitCode.REGRESSION
    assert VERDICT.load(Path("out/verdict.json")).outcome is Outcome.REGRESSION


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_goes_away_meanwhile_stops_no_measurement(run_gate: RunGate, stream: str) -> None:
    """A check whose progress or report nobody reads measures to its end and writes all files."""
    others = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    done = run_gate("check", capture_output=False, **{**others, stream: open_closed_pipe()})
    assert done.returncode == ExitCode.NOTHING_COMPARED
    written = {path.name for path in Path("out").iterdir()}
    assert {"run.json", "verdict.json", *(form.file for form in FORMATS.values() if form.file)} <= written


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_change_nothing(run_gate: RunGate, closed: str, tmp_path: Path) -> None:
    """Without a standard stream the command works, and no file of its own gets the stream's number."""
    script = tmp_path / "closed.sh"
    script.write_text(f'exec "$@" {closed}\n', encoding="utf-8")
    done = run_gate(*COMPARE, starter=("bash", str(script)))
    assert (done.returncode, done.stderr) == (ExitCode.REGRESSION, "")
    assert VERDICT.load(Path("out/verdict.json")).outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    "arguments", [("schema", "run"), ("config",), ("plan",), ("models",), ("baseline", "show")], ids=" ".join
)
def test_every_command_ends_the_same_without_an_output(
    run_gate: RunGate, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """With standard output closed, a command that only prints keeps its exit code."""
    script = tmp_path / "closed.sh"
    script.write_text('exec "$@" >&-\n', encoding="utf-8")
    done = run_gate(*arguments, starter=("bash", str(script)))
    assert (done.returncode, done.stderr) == (run_gate(*arguments).returncode, "")


@pytest.mark.parametrize(
    "arguments", [COMPARE, ("plan",), ("schema", "run"), ("--help",), ("check", "--help")]
)
def test_a_full_disk_behind_the_output_is_the_machines_fault(
    run_gate: RunGate, arguments: tuple[str, ...]
) -> None:
    """The lost report is exit 4 and two lines, never a traceback and never 0."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run_gate(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, len(done.stderr.splitlines())) == (ExitCode.MACHINE, 2), done.stderr
    assert "No space left" in done.stderr


def test_a_full_disk_behind_the_progress_changes_nothing(run_gate: RunGate) -> None:
    """Lost lines of progress are no lost result."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run_gate("check", capture_output=False, stdout=subprocess.DEVNULL, stderr=full)
    assert done.returncode == ExitCode.NOTHING_COMPARED


def test_help_may_be_cut_short(run_gate: RunGate) -> None:
    """By `--help | head -0`."""
    assert run_gate("--help", capture_output=False, stdout=open_closed_pipe()).returncode == ExitCode.PASS


@pytest.mark.parametrize("report_format", FORMATS)
def test_a_stream_that_lacks_a_character_gets_an_escape(run_gate: RunGate, report_format: str) -> None:
    """An emoji on an ASCII stream is no traceback and changes no verdict."""
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = run_gate(*COMPARE, "--format", report_format, environment=ascii_only)
    assert done.returncode == ExitCode.REGRESSION
    assert "Traceback" not in done.stderr
    assert "REGRESSION" in done.stdout
    assert done.stdout.isascii()
