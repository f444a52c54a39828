"""What one pytest session of the suite measures with, and how a trial's session ends."""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gate.errors import UsageError
from gate.files import codec
from gate.measure.process.logbook import Logbook
from gate.records import Case
from gate.records.protocol import Sampling, Stage, WorkerRequest, WorkerRole
from gate.suite.torch_imports import import_torch
from gate.units import count_noun, join_some

if TYPE_CHECKING:
    from gate.project.config import Config


@dataclass(frozen=True, kw_only=True)
class SuiteSession:
    """The settings of a session. ``request`` is None outside a trial."""

    device: str
    threads: int
    sampling: Sampling
    directory: str
    logbook: Logbook
    list_cases: Callable[[], tuple[Case, ...]]  # what the suite's own test is run for
    request: WorkerRequest | None = None
    source: str = ""  # of the settings, for the header
    opened: dict[str, Any] = field(default_factory=dict)  # device and turns, once something needs them

    @property
    def compiles(self) -> bool:
        """Whether anything is to be compiled."""
        return self.request is None or self.request.role != WorkerRole.TRY

    @property
    def measures(self) -> bool:
        """Whether anything is to be measured."""
        return self.compiles and (self.request is None or self.request.role != WorkerRole.TRACE)


_IDS_NAMED = 5  # tests to choose from, on the one line that a failure has

SESSION: pytest.StashKey[SuiteSession] = pytest.StashKey()


def make_trial_session(path: Path) -> SuiteSession:
    """Make the session of the trial that a request file asks for."""
    begun = time.perf_counter()
    request = codec.load_plain(WorkerRequest, path)
    case = request.case
    return SuiteSession(
        device=request.device,
        threads=request.threads,
        sampling=request.sampling,
        directory=request.directory,
        logbook=Logbook(Path(request.result), request.role, begun),
        request=request,
        list_cases=lambda: (case,) if case is not None else (),
    )


def make_plain_session(path: Path | None, *, select: str, device: str) -> SuiteSession:
    """Make the session of a person who runs the suite, from ``gate.yml`` and options, empty if not given.

    Factories are imported from the directory of ``gate.yml``, as in a trial.

    Raises:
        FileError: ``gate.yml`` cannot be used.
    """
    # A trial needs no configuration, and not its parsers.
    from gate.project.config import apply_options, load_config  # noqa: PLC0415

    config = apply_options(load_config(path), select=select or None)
    directory = str(config.directory.resolve())
    if directory not in sys.path:
        sys.path.append(directory)  # last: measured code must not shadow the gate
    return SuiteSession(
        device=device or config.device,
        threads=config.threads,
        sampling=config.sampling,
        directory=directory,
        source=config.source if config.is_found else f"no {config.source}, so the reference models",
        logbook=Logbook(None, WorkerRole.COLD),
        list_cases=lambda: list_factory_cases(config),
    )


def list_factory_cases(config: Config) -> tuple[Case, ...]:
    """List the selected registry models; warn of selected tests of one's own, which are run by their path.

    Raises:
        UsageError: The selection holds none.
    """
    from gate.project.choice import choose_cases  # noqa: PLC0415 - see make_plain_session
    from gate.project.registry import load_cases  # noqa: PLC0415 - see make_plain_session

    choice = choose_cases(config, load_cases(config))
    built = tuple(case for case in choice.cases if case.factory)
    if not built:
        fix = "Run your own tests by their path; the suite runs the registry's models."
        raise UsageError(f"{choice.selection!r} selects tests of your own only", fix)
    if own := [case.id for case in choice.cases if not case.factory]:
        _warn_of_own(own)
    return built


def _warn_of_own(case_ids: Sequence[str]) -> None:
    verb, path = ("are", "them by their paths") if len(case_ids) > 1 else ("is", "it by its path")
    counted, named = count_noun(len(case_ids), "test"), join_some(case_ids, _IDS_NAMED)
    with tolerate_warnings():
        told = f"{counted} of your own {verb} not run here: {named}; run {path}"
        warnings.warn(pytest.PytestWarning(told), stacklevel=1)


@contextmanager
def tolerate_warnings() -> Iterator[None]:
    """Show warnings within: a project that turns them into errors means its own, not torch's and ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


class TrialPlugin:
    """Watches a trial's session: whatever keeps the case from being measured is in the result file."""

    def __init__(self, session: SuiteSession) -> None:
        self._logbook = session.logbook
        self._measures = session.measures
        self._case = session.request.case if session.request else None

    def pytest_collection(self) -> None:
        """Import torch before any test module does, on its own account."""
        self._logbook.enter(Stage.IMPORT)
        with tolerate_warnings():
            import_torch()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a test module that cannot be imported."""
        if report.failed:
            self._fail(RuntimeError(_summarize(report)))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Refuse a ``node`` that names several tests: what each measures would stand for one case, unseen."""
        if self._case is not None and len(session.items) > 1:
            self._fail(_refuse_several(self._case, [item.nodeid for item in session.items]))
            session.items.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[Any]) -> None:
        """Record what a test or a fixture raised, a skip included."""
        if call.excinfo is None:
            return
        error = call.excinfo.value
        if isinstance(error, pytest.FixtureLookupError):  # its own text is for pytest's eyes
            error = LookupError(f"fixture {error.argname!r} not found")
        self._fail(error)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Finish the result; a session that measured nothing says so."""
        result = self._logbook.result
        # A workload is recorded when it is built: one that is only tried or traced has no samples.
        if not (result.samples if self._measures else result.workload):
            self._fail(RuntimeError(f"the test measured nothing ({_describe_end(exitstatus)})"))
        if self._logbook.result.failure is None:
            self._logbook.enter(Stage.ENDED)
        gc.freeze()  # pytest collects garbage five times as it ends: half a second with torch loaded

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_machine_info(self) -> dict[str, str]:
        """Return nothing: the run's environment says it, and asking the CPU takes seconds."""
        return {"see": "environment in run.json"}

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_commit_info(self) -> dict[str, str]:
        """Return nothing: the run's provenance says it."""
        return {"see": "provenance in run.json"}

    def _fail(self, error: BaseException) -> None:
        if self._logbook.result.failure is None:
            self._logbook.fail(error)


def _refuse_several(case: Case, node_ids: Sequence[str]) -> UsageError:
    """Make the error of a case that is several tests; the ids to choose from are as ``node`` has them."""
    file = case.node.partition("::")[0]  # from the directory of gate.yml, where pytest's may be from above
    found = [f"{file}::{node_id.partition('::')[2]}" for node_id in node_ids]
    return UsageError(
        f"gate.yml: tests: {case.model}: node: {case.node!r} names {len(found)} tests, and a case is one; "
        f"write an entry for each that is to be measured, with one of: {join_some(found, _IDS_NAMED)}",
        "`pytest --collect-only -q NODE` lists them all.",
    )


def _describe_end(exitstatus: int) -> str:
    """Describe how a session ended: pytest raises where it does not find the test that it was given."""
    error = sys.exc_info()[1]
    if isinstance(error, pytest.UsageError):
        return f"{' '.join(str(error).split())}; check its `node` in gate.yml"
    return f"pytest ended with status {int(exitstatus)}"


def _summarize(report: pytest.CollectReport) -> str:
    lines = [line.strip() for line in report.longreprtext.splitlines() if line.strip()]
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or ["the test cannot be collected"])[-1]
