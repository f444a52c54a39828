"""Workers: every way to end is distinguished from every other."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from gate.errors import GateError
from gate.lab.trials.bench import Bench, make_job
from gate.lab.workers.process import ProcessExit
from gate.lab.workers.worker import MAX_RESULT_BYTES, judge_exit, load_result, make_directory, run_worker
from gate.programs import TimeUse
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerResult, WorkerRole
from gate.records.run import CaseFailure, FailureKind
from gate.report.words.facts import describe_failure, find_failing_line
from tests.words import describe_measuring

from .conftest import make_case

ENDINGS = {
    "error": (FailureKind.ERROR, "build", "ValueError: no such layer"),
    "segfault": (
        FailureKind.CRASH,
        "compile",
        "ended with SIGSEGV, its result is unfinished in the cold process",
    ),
    "truncated": (FailureKind.CRASH, "start", "its result cannot be read"),
    "exit_3": (
        FailureKind.CRASH,
        "start",
        "exit status 3, it left no result in the cold process; the log mentions memory",
    ),
    "silent": (
        FailureKind.CRASH,
        "start",
        "ended with exit status 0, it left no result in the cold process",
    ),
    "full_disk": (FailureKind.CRASH, "start", "the log mentions disk"),
    "killed": (FailureKind.KILLED, "eager", "killed by SIGKILL, which the gate did not send"),
}


@pytest.mark.parametrize("act", ENDINGS)
def test_endings(bench: Bench, act: str) -> None:
    """A real process that ends badly becomes a failure of the right kind, stage and message."""
    failure = run_worker(make_job(bench, WorkerRole.COLD, make_case(act), 1))
    kind, stage, message = ENDINGS[act]
    assert isinstance(failure, CaseFailure)
    assert (
        failure.case_id,
        failure.trial,
        failure.arm,
    ) == ("actor/inference-float32-smoke-default", 1, "head")
    assert (kind, stage) == (failure.kind, failure.stage)
    assert message in describe_failure(failure)
    assert "\n" not in describe_failure(failure)


def test_hang(bench: Bench, count_left: Callable[[], int]) -> None:
    """A hang with stubborn children is HANG, names limit and stage, and leaves no process."""
    job = make_job(bench, WorkerRole.COLD, make_case("hang"), 2)
    failure = run_worker(replace(job, limit_s=1.0))
    assert isinstance(failure, CaseFailure)
    assert (failure.kind, failure.stage) == (FailureKind.HANG, "rounds")
    words = r"used 0\.\d CPU seconds in \d s in the cold process, and none at the end"
    assert re.fullmatch(words, describe_failure(failure))
    frames = failure.log_tail.splitlines()
    assert frames[0] == "It was at (most recent call first):"
    assert frames[1].endswith("in play_hang")
    assert count_left() == 0


def test_children_left_behind_do_not_fail_a_case(bench: Bench, count_left: Callable[[], int]) -> None:
    """The result counts; the children are ended."""
    result = run_worker(make_job(bench, WorkerRole.COLD, make_case("leave_children"), 1))
    assert isinstance(result, WorkerResult)
    assert result.samples[Metric.COMPILED_LATENCY] == (0.010, 0.011)
    assert count_left() == 0


def test_flood(bench: Bench) -> None:
    """Fifty megabytes of log neither fail a worker nor fill the disk."""
    job = make_job(bench, WorkerRole.COLD, make_case("flood"), 1)
    assert isinstance(run_worker(job), WorkerResult)
    assert job.log.stat().st_size < 5 * 1024 * 1024
    assert "the last line" in job.log.read_bytes()[-200:].decode()


def test_crash_after_the_end_is_a_warning(bench: Bench) -> None:
    """A complete result counts although the interpreter crashed in its shutdown."""
    result = run_worker(make_job(bench, WorkerRole.COLD, make_case("late_crash"), 1))
    assert isinstance(result, WorkerResult)
    (warning,) = map(describe_measuring, result.warnings)
    assert warning == "the cold process ended with SIGABRT after its result was complete"


def test_earlier_result_is_not_taken_for_this_one(bench: Bench) -> None:
    """A worker without a result does not get the previous one's."""
    assert isinstance(run_worker(make_job(bench, WorkerRole.COLD, make_case("ok"), 1)), WorkerResult)
    assert isinstance(run_worker(make_job(bench, WorkerRole.COLD, make_case("silent"), 2)), CaseFailure)


def test_traceback_is_the_log_tail_of_an_error(bench: Bench) -> None:
    """A failure that the worker could report shows its traceback."""
    failure = run_worker(make_job(bench, WorkerRole.COLD, make_case("error"), 1))
    assert isinstance(failure, CaseFailure)
    assert failure.log_tail == "Traceback\n  line 3"
    assert failure.log == str(
        bench.settings.out / "logs" / "actor/inference-float32-smoke-default/1-cold.log"
    )


@pytest.mark.parametrize("says", [True, False], ids=["error", "crash"])
def test_a_line_of_a_commits_checkout_is_named_from_its_top(bench: Bench, says: bool) -> None:
    """The directory is gone after the run: the file has its name in the commit."""
    job = make_job(bench, WorkerRole.COLD, make_case(), 1)
    job = replace(job, request=replace(job.request, checkout="/scratch/base"))
    line = '  File "/scratch/base/nets/model.py", line 3, in forward'
    fact = Fact(code=Code.RAISED, names=name_words(message="OSError: /scratch/base/data is missing"))
    reported = WorkerFailure(kind=FailureKind.ERROR, fact=fact, traceback=line)
    left = WorkerResult(role=WorkerRole.COLD, stage=Stage.EAGER, failure=reported)
    ended = ProcessExit(status=1, log_tail=line.encode())
    failure = judge_exit(job, ended, left if says else Fact(code=Code.NO_RESULT))
    assert isinstance(failure, CaseFailure)
    assert failure.log_tail == '  File "nets/model.py", line 3, in forward'
    assert find_failing_line(failure) == "nets/model.py:3"
    assert not says or describe_failure(failure) == "OSError: data is missing"


def test_log_below_the_current_directory_is_named_from_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader can open the path where the run was started."""
    monkeypatch.chdir(bench.settings.out.parent)
    failure = run_worker(make_job(bench, WorkerRole.COLD, make_case("error"), 1))
    assert isinstance(failure, CaseFailure)
    assert failure.log == "out/logs/actor/inference-float32-smoke-default/1-cold.log"


@pytest.mark.parametrize(
    ("oom_kills", "words"),
    [
        (0, "most often the machine, or the container's limit, was out of memory"),
        (1, "the kernel's out-of-memory killer"),
    ],
)
def test_kill_names_the_likely_killer(bench: Bench, oom_kills: int, words: str) -> None:
    """A SIGKILL from outside is put down to memory, certainly if the kernel reports it."""
    ended = ProcessExit(status=-9, log_tail=b"", oom_kills=oom_kills)
    failure = judge_exit(make_job(bench, WorkerRole.WARM, make_case(), 1), ended, Fact(code=Code.NO_RESULT))
    assert isinstance(failure, CaseFailure)
    assert failure.kind == FailureKind.KILLED
    assert words in describe_failure(failure)


@pytest.mark.parametrize(("checkout", "counts"), [("", True), ("/worktree", False)])
def test_an_arms_result_counts_once_its_imports_were_looked_at(
    bench: Bench, checkout: str, counts: bool
) -> None:
    """A project's conftest may call ``os._exit`` before: code of another checkout may have run."""
    job = make_job(bench, WorkerRole.COLD, make_case(), 1)
    job = replace(job, request=replace(job.request, checkout=checkout))
    left = WorkerResult(role=WorkerRole.COLD, stage=Stage.ENDED)
    ended = ProcessExit(status=0, log_tail=b"")
    assert isinstance(judge_exit(job, ended, left), WorkerResult) is counts


def test_a_worker_at_work_beyond_its_limit_did_not_end(bench: Bench) -> None:
    """It is no hang; the message has its processor time."""
    ended = ProcessExit(status=-6, use=TimeUse(wall_s=431.0, cpu_s=300.2), log_tail=b"")
    failure = judge_exit(make_job(bench, WorkerRole.COLD, make_case(), 1), ended, Fact(code=Code.NO_RESULT))
    assert isinstance(failure, CaseFailure)
    assert failure.kind == FailureKind.TIMEOUT
    assert (
        describe_failure(failure)
        == "did not end in 300.2 CPU seconds (431 s by the clock) in the cold process"
    )


def test_reported_failure_beats_the_time_limit(bench: Bench) -> None:
    """A worker that reported its failure and then hung failed for that reason."""
    reported = WorkerFailure(
        kind=FailureKind.NOT_FINITE, fact=Fact(code=Code.RAISED, names=name_words(message="NaN in output 0"))
    )
    result = WorkerResult(role=WorkerRole.WARM, stage=Stage.DRIFT, failure=reported)
    ended = ProcessExit(status=-9, use=TimeUse(wall_s=9.0, cpu_s=1.0), log_tail=b"")
    failure = judge_exit(make_job(bench, WorkerRole.WARM, make_case(), 1), ended, result)
    assert isinstance(failure, CaseFailure)
    assert (
        failure.kind,
        failure.stage,
        describe_failure(failure),
    ) == (FailureKind.NOT_FINITE, "drift", "NaN in output 0")


def test_result_of_absurd_size_is_not_read(bench: Bench) -> None:
    """A result file beyond any real size is refused without reading it."""
    path = bench.scratch / "cold.json"
    with path.open("wb") as file:
        file.truncate(MAX_RESULT_BYTES + 1)
    too_large = Fact(code=Code.RESULT_TOO_LARGE, numbers={"bytes": MAX_RESULT_BYTES})
    assert too_large == load_result(path)
    os.truncate(path, MAX_RESULT_BYTES)
    assert load_result(path) != too_large


@pytest.mark.parametrize(
    ("status", "opened_s", "warned"),
    [(0, 0.0, []), (-6, 0.0, [Code.ENDED_BADLY]), (3, 2.0, [Code.ENDED_BADLY]), (0, 2.0, [])],
)
def test_a_whole_result_counts_with_what_its_server_took(
    bench: Bench, status: int, opened_s: float, warned: list[Code]
) -> None:
    """A bad end after it is a warning with the status; so is why there was no server."""
    job = replace(make_job(bench, WorkerRole.COLD, make_case(), 1), opened_s=opened_s)
    left = WorkerResult(role=WorkerRole.COLD, stage=Stage.DONE, stages_s={"build": 1.0})
    ended = ProcessExit(status=status, log_tail=b"")
    result = judge_exit(job, ended, left)
    assert isinstance(result, WorkerResult)
    assert result.stages_s == {"build": 1.0} | ({"server": 2.0} if opened_s else {})
    assert [fact.code for fact in result.warnings] == warned
    assert all(fact.numbers == {"status": status} and fact.name("role") == "cold" for fact in result.warnings)
    unforked = judge_exit(replace(job, why_not=Fact(code=Code.SERVER_GONE)), ended, left)
    assert isinstance(unforked, WorkerResult)
    assert [fact.code for fact in unforked.warnings] == [*warned, Code.SERVER_GONE]


LATE = TimeUse(wall_s=431.0, cpu_s=300.2)
HANGING = replace(LATE, hangs=True)
LATE_S = {"wall_s": 431.0, "cpu_s": 300.2}


@pytest.mark.parametrize(
    ("stage", "ended", "kind", "fact"),
    [
        (None, (3, None), FailureKind.CRASH, (Code.NO_RESULT, {"status": 3})),
        (Stage.BUILD, (-11, None), FailureKind.CRASH, (Code.RESULT_UNFINISHED, {"status": -11})),
        (Stage.BUILD, (-9, None), FailureKind.KILLED, (Code.SIGKILLED, {"oom_kills": 2})),
        (Stage.BUILD, (9, None), FailureKind.CRASH, (Code.RESULT_UNFINISHED, {"status": 9})),
        (Stage.BUILD, (-6, LATE), FailureKind.TIMEOUT, (Code.NO_END, LATE_S)),
        (Stage.BUILD, (-6, HANGING), FailureKind.HANG, (Code.HANGS, LATE_S)),
        (Stage.DONE, (-6, HANGING), FailureKind.HANG, (Code.HANGS, LATE_S)),
        (None, (-9, LATE), FailureKind.TIMEOUT, (Code.NO_END, LATE_S)),
    ],
)
def test_an_end_without_a_whole_result_is_a_failure(
    bench: Bench,
    stage: Stage | None,
    ended: tuple[int, TimeUse | None],
    kind: FailureKind,
    fact: tuple[Code, dict[str, float]],
) -> None:
    """Time that was up comes before how it ended; the role and what the log says was short are named."""
    job = make_job(bench, WorkerRole.WARM, make_case(), 4)
    left = WorkerResult(role=WorkerRole.WARM, stage=stage) if stage else Fact(code=Code.NO_RESULT)
    status, use = ended
    process_exit = ProcessExit(status=status, log_tail=b"CUDA out of memory", use=use, oom_kills=2)
    failure = judge_exit(job, process_exit, left)
    assert isinstance(failure, CaseFailure)
    assert (failure.kind, failure.stage, failure.trial) == (kind, stage or Stage.START, 4)
    assert (failure.fact.code, failure.fact.numbers) == fact
    assert (failure.fact.name("role"), failure.fact.name("shortage")) == ("warm", "" if use else "memory")
    assert failure.log_tail == "CUDA out of memory"


def test_a_process_without_a_case_fails_none(bench: Bench) -> None:
    """The primer's failure names no case."""
    failure = judge_exit(
        make_job(bench, WorkerRole.PRIME), ProcessExit(status=1, log_tail=b""), Fact(code=Code.NO_RESULT)
    )
    assert isinstance(failure, CaseFailure)
    assert (failure.case_id, failure.stage, failure.trial, failure.arm) == ("", Stage.START, 0, "head")


@pytest.mark.parametrize(
    ("directory", "checkout", "message"),
    [
        ("/repo/tree", "", "nets/a.py and /srv/b.py"),
        ("/repo/tree/nets", "/repo/tree/", "nets/a.py and /srv/b.py"),
        ("/", "", "/repo/tree/nets/a.py and /srv/b.py"),
    ],
)
def test_words_of_measured_code_are_printable_and_from_the_top(
    bench: Bench, directory: str, checkout: str, message: str
) -> None:
    """On one line, without escapes; of a process in the file system's root they stay as they are."""
    job = make_job(bench, WorkerRole.COLD, make_case())
    job = replace(job, request=replace(job.request, directory=directory, checkout=checkout))
    words = name_words(message="\x1b[31m/repo/tree/nets/a.py\x1b[0m\n  and /srv/b.py")
    reported = WorkerFailure(kind=FailureKind.ERROR, fact=Fact(code=Code.RAISED, names=words))
    left = WorkerResult(role=WorkerRole.COLD, stage=Stage.BUILD, failure=reported)
    failure = judge_exit(job, ProcessExit(status=1, log_tail=b"the log"), left)
    assert isinstance(failure, CaseFailure)
    assert failure.fact.name("message") == message
    assert failure.log_tail == "the log"  # for want of a traceback


@pytest.mark.parametrize(
    ("prepare", "code", "message"),
    [
        (Path.exists, Code.NO_RESULT, ""),
        (Path.mkdir, Code.RESULT_UNREADABLE, "Is a directory"),
        (
            lambda path: path.write_text("[]"),
            Code.RESULT_UNREADABLE,
            "cold.json: expected a mapping, got a list of 0",
        ),
    ],
)
def test_a_result_that_cannot_be_read_has_the_reason(
    tmp_path: Path, prepare: Callable[[Path], object], code: Code, message: str
) -> None:
    """None was left, the system refuses it, or it is no result."""
    path = tmp_path / "cold.json"
    prepare(path)
    left = load_result(path)
    assert isinstance(left, Fact)
    assert (left.code, left.name("message")) == (code, message)


def test_an_error_without_words_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of some file systems in user space."""
    monkeypatch.setattr(Path, "stat", Mock(side_effect=OSError()))
    assert load_result(tmp_path / "cold.json") == Fact(
        code=Code.RESULT_UNREADABLE, names=name_words(message="")
    )


def test_an_output_that_is_a_file_is_the_machines_fault(tmp_path: Path) -> None:
    """Nothing can be written below it, and the error names it."""
    (tmp_path / "out").write_text("a file")
    make_directory(tmp_path / "other" / "benchmark")
    make_directory(tmp_path / "other" / "benchmark")
    with pytest.raises(GateError, match="out"):
        make_directory(tmp_path / "out" / "benchmark")
