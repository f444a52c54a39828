"""Progress of a run."""

import io
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gate.files.messages import save_plain
from gate.records.cases import Metric
from gate.records.events import (
    CaseFailed,
    Event,
    LockAwaited,
    Noted,
    PairFinished,
    PrimeFinished,
    PrimeStarted,
    Progress,
    TrialFinished,
    TrialSkipped,
    TrialStarted,
    WorkerPlanned,
)
from gate.records.facts import make_text
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import FailureKind, Trial
from gate.report import progress
from gate.report.progress import Status, render_event, show_progress
from tests.make import make_failure

HALF = Progress(done=3, total=24, left_s=312.0)
PAIRED = Progress(done=3, total=9, left_s=2.0, cases=3, cases_done=2)
LAST = Progress(done=24, total=24, left_s=0.0)
TRIAL = Trial(
    case_id="a/x",
    index=2,
    samples={
        Metric.COMPILED_LATENCY: (0.011, 0.0121, 0.2),
        Metric.COLD_COMPILE_TIME: (11.24,),
    },
)
BARE = Trial(case_id="a", index=1)
FAILURE = make_failure("bert/x", "no\nresult", kind=FailureKind.HANG, stage="rounds")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            TrialFinished(trial=TRIAL, progress=replace(HALF, left_s=42.0)),
            "[ 3/24] a/x trial 2: compiled 12.1 ms, cold compile 11.2 s; about 42 s left",
        ),
        (TrialFinished(trial=Trial(case_id="a", index=1), progress=LAST), "[24/24] a trial 1"),
        (
            PairFinished(base=BARE, head=BARE, progress=PAIRED),
            "[2/3 cases done] a pair 1; about 2.0 s more",
        ),
        (
            PairFinished(base=BARE, head=BARE, progress=replace(PAIRED, is_limited=True)),
            "[2/3 cases done] a pair 1; 2.0 s before the time is up",
        ),
        (
            CaseFailed(failure=FAILURE, progress=HALF),
            "[ 3/24] bert/x trial 1 FAILED: hang in stage rounds: no result; about 5 min 12 s left",
        ),
        (
            CaseFailed(failure=replace(FAILURE, log="out/logs/bert/x/1-cold.log"), progress=LAST),
            "[24/24] bert/x trial 1 FAILED: hang in stage rounds: no result; log: out/logs/bert/x/1-cold.log",
        ),
        (TrialStarted(case_id="a", index=1, progress=HALF, paired=False), ""),
        (
            TrialSkipped(case_id="a", index=2, expected_s=31.0, paired=False),
            "no time left for trial 2 of a (about 31 s)",
        ),
        (
            TrialSkipped(case_id="a", index=2, expected_s=31.0, paired=True),
            "no time left for pair 2 of a (about 31 s)",
        ),
        (PrimeStarted(), "warming up the compiler, up to a minute"),
        (PrimeFinished(toolchain_s=9.3), "compiler warmed up in 9.3 s"),
        (
            LockAwaited(device="cpu", holder="process 7 of ada", limit_s=60.0),
            "waiting up to 1 min 00 s: cpu is in use by process 7 of ada",
        ),
        (Noted(fact=make_text("a\x1b[31m b")), "note: a b"),
    ],
)
def test_an_event_is_one_line(event: Event, expected: str) -> None:
    """Every event is one line, except the start of a trial."""
    assert expected == render_event(event)


def test_a_log_gets_one_line_a_trial() -> None:
    """Without a terminal nothing is drawn over."""
    stream = io.StringIO()
    with show_progress(stream=stream) as observe:
        observe(TrialStarted(case_id="a", index=1, progress=HALF, paired=False))
        observe(TrialFinished(trial=Trial(case_id="a", index=1), progress=LAST))

    assert stream.getvalue() == "[24/24] a trial 1\n"


def test_quiet_says_nothing() -> None:
    stream = io.StringIO()
    with show_progress(quiet=True, stream=stream) as observe:
        observe(PrimeStarted())

    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal has a bar with the current case and the time left, and a line for each trial."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with show_progress(stream=stream) as observe:
        observe(PrimeStarted())
        observe(TrialFinished(trial=TRIAL, progress=HALF))
        observe(TrialStarted(case_id="lstm/y", index=1, progress=HALF, paired=False))
    shown = stream.getvalue()

    assert "a/x trial 2: compiled 12.1 ms" in shown
    assert re.search(r"lstm/y trial 1, [0-9.]+ s; about 5 min 1[0-2] s left", shown)


def test_a_log_gets_a_line_while_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a heartbeat of 20 ms a long trial has a line."""
    monkeypatch.setattr(progress, "HEARTBEAT_S", 0.02)
    stream = io.StringIO()
    with show_progress(stream=stream) as observe:
        observe(PrimeStarted())
        observe(TrialStarted(case_id="a", index=1, progress=HALF, paired=False))
        time.sleep(0.2)
    assert re.search(
        r"^\[ 3/24\] a trial 1, 0.[0-9] s; about 5 min 12 s left$", stream.getvalue(), re.MULTILINE
    )


def test_an_estimate_gets_older_as_time_passes() -> None:
    """Of 312 s, 12 are left after 300 s; after 320 s it takes longer than expected."""
    clock = iter((0.0, 10.0, 10.0, 10.0, 310.0, 330.0, 340.0))
    status = Status(read_s=lambda: next(clock))
    assert status.render() == "starting, 10 s"
    status.update(TrialStarted(case_id="a", index=2, progress=HALF, paired=True))
    assert status.render() == "a pair 2, 5 min 00 s; about 12 s left"
    assert status.render_line() == "[ 3/24] a pair 2, 5 min 20 s; longer than expected"
    status.update(TrialFinished(trial=TRIAL, progress=LAST))
    assert next(clock, None) is None


def test_the_stage_is_that_of_the_worker_that_wrote_last(tmp_path: Path) -> None:
    """The warm worker compiles for 12 s after the cold one is done; before, the stage is unknown."""
    now_s = time.time()
    for name, stage, age_s in (("cold", Stage.DONE, 20.0), ("warm", Stage.COMPILE, 12.0)):
        result = tmp_path / f"{name}.json"
        save_plain(WorkerResult(role=WorkerRole.WARM, stage=stage), result)
        os.utime(result, (now_s - age_s, now_s - age_s))
    status = Status(read_s=lambda: 0.0)
    for name in ("cold", "warm", "missing"):
        status.update(WorkerPlanned(result=tmp_path / f"{name}.json"))
    assert re.fullmatch(r"starting, 0.0 s \(compile, 1[2-9] s\)", status.render())
    (tmp_path / "warm.json").unlink()
    assert status.render() == "starting, 0.0 s"
    status.update(WorkerPlanned(result=tmp_path / "warm.json"))
    status.update(PrimeStarted())
    assert status.results == []
