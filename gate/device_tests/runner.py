"""``first-contact``: run the tests of a device, a process each, and pack what was seen. Torch-free."""

import os
import shutil
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gate.cli.setup import load_configured
from gate.errors import ExitCode, MachineError, UsageError
from gate.lab.host.gpu import look_up_gpu, show_alone
from gate.lab.host.mps import refuse_service
from gate.lab.host.scratch import open_scratch
from gate.lab.workers.process import ProcessCommand, ProcessExit, run_process
from gate.lab.workers.worker_environment import make_worker_environment
from gate.units import format_duration

_TESTS = Path(__file__).parent
# An empty configuration: no project's settings, conftest.py or plugins reach the tests.
_PYTEST = (
    sys.executable, "-P", "-m", "pytest", "-c", os.devnull, "--noconftest", "--import-mode=importlib",
    "-q", "-s", "-p", "no:cacheprovider", "-p", "gate.device_tests.plugin",
)  # fmt: skip
_RAN, _NOT_RUN = range(2), range(2, 6)  # pytest's statuses once a test has passed or failed, and its others
_TABLE_FILE = "table.txt"
_BUNDLE_FILE = "first-contact.zip"
_LABEL_CHARS = 8  # of the longest status, and a space


class ResultStatus(StrEnum):
    PASSED = "PASSED"
    FAILED = "FAILED"
    INFO = "INFO"  # a value for a person to look at: there is no range for it, or not on this device
    SKIPPED = "SKIPPED"  # there was no time


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceSession:
    device: str
    out: Path
    threads: int
    limit_s: float
    names: tuple[str, ...] = ()  # of tests or their files, or parts of these; none: all
    tests: Path = _TESTS


def run_first_contact(options: Namespace) -> ExitCode:
    """Run the tests, print each result as it comes, and leave a bundle; a failure is the machine's exit."""
    config = load_configured(options)
    out = Path(options.out or "first-contact")
    session = DeviceSession(
        device=config.device,
        out=out / "seen",
        threads=config.threads,
        limit_s=60 * options.minutes,
        names=tuple(name.strip() for name in (options.only or "").split(",") if name.strip()),
    )
    lines: list[str] = []
    for line in run_device_tests(session):
        print(line, flush=True)
        lines.append(line)
    (session.out / _TABLE_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    bundle = out / _BUNDLE_FILE
    shutil.make_archive(str(bundle.with_suffix("")), "zip", session.out)
    print(f"\n{count_results(lines)}. All that was seen is in {bundle}.")
    if has_status(lines, ResultStatus.FAILED):
        return ExitCode.MACHINE
    return ExitCode.INCOMPLETE if has_status(lines, ResultStatus.SKIPPED) else ExitCode.PASS


def run_device_tests(session: DeviceSession) -> Iterator[str]:
    """Yield the line of each result as soon as it is known, and of each test without time.

    Raises:
        MachineError: Tests cannot be collected, or the GPU is shared through MPS.
        UsageError: No test for this device has a given name.
    """
    refuse_service(session.device, os.environ)
    deadline = time.monotonic() + session.limit_s
    with open_scratch() as scratch:
        (scratch / "tmp").mkdir()
        collection_log = scratch / "collection.log"
        collected = _run_pytest(
            session, scratch, collection_log, session.limit_s, "--collect-only", str(session.tests)
        )
        lines = collection_log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        nodes = [] if collected.status else [line for line in lines if "::" in line]
        if nodes:
            _check_names(session, nodes)  # a slip of the finger leaves nothing behind
        session.out.mkdir(parents=True, exist_ok=True)
        log = Path(shutil.copy(collection_log, session.out))
        if collected.use:
            message = f"no test ran within {format_duration(session.limit_s)}; see {log}, or raise --minutes"
            yield render_line(ResultStatus.SKIPPED, "all", message)
            return
        if not nodes:
            what = f"pytest ended with status {collected.status}: {' '.join(lines[-1:])}"
            raise MachineError(what, f"See `compile-gate doctor`, and {log}.")
        for node in (node for node in nodes if any(name in node for name in session.names or ("",))):
            left_s = deadline - time.monotonic()
            if left_s > 0:
                yield from _run_test(session, scratch, node, left_s)
            else:
                yield render_line(ResultStatus.SKIPPED, _name_test(node), "no time was left")


def _check_names(session: DeviceSession, nodes: Sequence[str]) -> None:
    for name in session.names:
        if not any(name in node for node in nodes):
            what = f"there is no test {name!r} for {session.device}"
            raise UsageError(what, "A run without --only prints the names.")


def _name_test(node: str) -> str:
    return node.rpartition("::test_")[2]


def _run_test(session: DeviceSession, scratch: Path, node: str, left_s: float) -> Iterator[str]:
    name = _name_test(node)
    results, log = session.out / f"{name}.txt", session.out / f"{name}.log"
    results.unlink(missing_ok=True)
    ended = _run_pytest(session, scratch, log, left_s, str(session.tests / node))
    yield from read_lines(results)
    if ended.use:
        yield render_line(ResultStatus.SKIPPED, name, "no time was left for an answer")
    elif ended.status == -signal.SIGALRM:
        yield render_line(ResultStatus.FAILED, name, f"no answer in time; see {log}")
    elif ended.status not in _RAN:
        status = ResultStatus.SKIPPED if ended.status in _NOT_RUN else ResultStatus.FAILED
        yield render_line(status, name, f"the process ended with status {ended.status}; see {log}")


def _run_pytest(
    session: DeviceSession, scratch: Path, log: Path, limit_s: float, *arguments: str
) -> ProcessExit:
    cache, temporary = scratch / log.stem, scratch / "tmp"
    environment = make_worker_environment(os.environ, cache, temporary, session.threads)
    device, shown = show_alone(look_up_gpu(session.device, os.environ), session.device)
    options = ("--gate-device", device, "--gate-out", str(session.out.resolve()))
    return run_process(
        ProcessCommand(
            argv=(*_PYTEST, f"--rootdir={session.tests}", *options, *arguments),
            environment={**environment, **shown, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            directory=Path.cwd(),
            log=log,
            limit_s=limit_s,
            most_walls=1.0,  # it is a budget
        )
    )


def render_line(status: ResultStatus, name: str, value: object) -> str:
    return f"{status:<{_LABEL_CHARS}} {name}: {' '.join(str(value).split())}"


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def has_status(lines: Iterable[str], status: ResultStatus) -> bool:
    return any(line.startswith(status) for line in lines)


def count_results(lines: Sequence[str]) -> str:
    return ", ".join(f"{sum(line.startswith(status) for line in lines)} {status}" for status in ResultStatus)
