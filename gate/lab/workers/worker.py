"""One worker process: its request, its run, and its result or failure."""

import signal
from dataclasses import dataclass, replace
from pathlib import Path

from gate.errors import FileError
from gate.files import codec
from gate.files.disk import describe_write_error
from gate.files.messages import save_plain
from gate.lab.workers.log_tail import clean_log_tail, name_shortage
from gate.lab.workers.process import ProcessCommand, ProcessExit, run_process
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerRequest, WorkerResult
from gate.records.run import CaseFailure, FailureKind
from gate.sizes import MIB

MAX_RESULT_BYTES = 64 * MIB  # a real one is some tens of kilobytes; more is not ours
JobOutcome = WorkerResult | CaseFailure


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerJob(ProcessCommand):
    request: WorkerRequest
    trial: int = 0
    arm: str = "head"
    opened_s: float = 0.0  # its share of the seconds that opening servers took
    why_not: Fact | None = None  # warns that it has no server, and why


def run_worker(job: WorkerJob) -> JobOutcome:
    """Run one worker on this machine to its end and judge it.

    Raises:
        MachineError: The interpreter cannot be started, or the disk is full.
        KeyboardInterrupt: Ctrl-C; nothing of the worker is left running.
    """
    result_path = Path(job.request.result)
    request_path = result_path.with_suffix(".request.json")
    result_path.unlink(missing_ok=True)
    if job.request.benchmark_json:
        make_directory(Path(job.request.benchmark_json).parent)
    save_plain(job.request, request_path)
    ended = run_process(replace(job, argv=(*job.argv, str(request_path))))
    return judge_exit(job, ended, load_result(result_path))


def make_directory(path: Path) -> None:
    """Raises as :func:`gate.files.disk.write_atomic`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise describe_write_error(path, error) from error


def load_result(path: Path) -> WorkerResult | Fact:
    try:
        if path.stat().st_size > MAX_RESULT_BYTES:
            return Fact(code=Code.RESULT_TOO_LARGE, numbers={"bytes": MAX_RESULT_BYTES})
        content = path.read_bytes()
    except FileNotFoundError:
        return Fact(code=Code.NO_RESULT)
    except OSError as error:
        names = name_words(message=error.strerror or "")
        return Fact(code=Code.RESULT_UNREADABLE, names=names)
    try:
        return codec.decode(WorkerResult, codec.parse_json(content, path.name), path.name)
    except FileError as error:
        return Fact(code=Code.RESULT_UNREADABLE, names=name_words(message=error.what))


def judge_exit(job: WorkerJob, ended: ProcessExit, left: WorkerResult | Fact) -> JobOutcome:
    checkout, role = job.request.checkout or job.request.directory, name_words(role=job.request.role)
    log_tail = _name_from_top(clean_log_tail(ended.log_tail, of_hang=ended.use is not None), checkout)
    result = left if isinstance(left, WorkerResult) else None
    problem = left if isinstance(left, Fact) else Fact(code=Code.RESULT_UNFINISHED)
    failure = CaseFailure(
        case_id=job.request.case.id if job.request.case else "",
        trial=job.trial,
        arm=job.arm,
        kind=FailureKind.CRASH,
        stage=result.stage if result else Stage.START,
        fact=problem,
        log_tail=log_tail,
        log=name_log(job.log),
    )
    if result and result.failure:
        return add_report(failure, result.failure, checkout)
    if ended.use:
        numbers = {"wall_s": ended.use.wall_s, "cpu_s": ended.use.cpu_s}
        late = (FailureKind.HANG, Code.HANGS) if ended.use.hangs else (FailureKind.TIMEOUT, Code.NO_END)
        return replace(failure, kind=late[0], fact=Fact(code=late[1], numbers=numbers, names=role))
    if result and _is_whole(result.stage, job.request):
        return _accept(job, result, ended.status)
    kind, fact = _judge_end(ended, problem)
    if shortage := name_shortage(log_tail):
        fact = replace(fact, names={**fact.names, "shortage": (shortage,)})
    return replace(
        failure, kind=kind, fact=_clean_words(replace(fact, names={**fact.names, **role}), checkout)
    )


def _is_whole(stage: Stage, request: WorkerRequest) -> bool:
    """Of the user's own checkout nothing is measured by mistake: a project may end its process by itself."""
    return stage == Stage.DONE or (stage == Stage.ENDED and not request.checkout)


def _clean_words(fact: Fact, checkout: str) -> Fact:
    cleaned = {
        name: tuple(" ".join(_clean(word, checkout).split()) for word in words)
        for name, words in fact.names.items()
    }
    return replace(fact, names=cleaned)


def _clean(text: str, checkout: str) -> str:
    return _name_from_top(clean_log_tail(text.encode(errors="replace")), checkout)


def _name_from_top(text: str, checkout: str) -> str:
    return text.replace(f"{checkout.rstrip('/')}/", "") if checkout.strip("/") else text


def add_report(failure: CaseFailure, reported: WorkerFailure, checkout: str) -> CaseFailure:
    """Nothing from measured code is trusted to be printable; ``checkout`` is the arm's."""
    traceback = _clean(reported.traceback, checkout)
    fact = _clean_words(reported.fact, checkout)
    return replace(failure, kind=reported.kind, fact=fact, log_tail=traceback or failure.log_tail)


def name_log(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _accept(job: WorkerJob, result: WorkerResult, status: int) -> WorkerResult:
    names = name_words(role=result.role)
    badly = Fact(code=Code.ENDED_BADLY, numbers={"status": status}, names=names) if status else None
    stages_s: dict[str, float] = {Stage.SERVER: job.opened_s} if job.opened_s else {}
    return replace(
        result,
        stages_s={**result.stages_s, **stages_s},
        warnings=(*result.warnings, *filter(None, (badly, job.why_not))),
    )


def _judge_end(ended: ProcessExit, problem: Fact) -> tuple[FailureKind, Fact]:
    if ended.status == -signal.SIGKILL:
        return FailureKind.KILLED, Fact(code=Code.SIGKILLED, numbers={"oom_kills": ended.oom_kills})
    return FailureKind.CRASH, replace(problem, numbers={**problem.numbers, "status": ended.status})
