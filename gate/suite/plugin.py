"""The plugin of a person's session: an option and a fixture. Load it with ``-p gate.suite.plugin``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from gate.errors import UsageError
from gate.measure.logbook import Logbook
from gate.records.cases import Case
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.suite.session import SESSION, TIMER, SuiteSession, tolerate_warnings
from gate.units import format_noun

if TYPE_CHECKING:
    from gate.project.config import Config
    from gate.suite.fixture import CompileBenchmark


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the gate's option."""
    parser.getgroup("compile-gate").addoption(
        "--gate-select",
        default="",
        metavar="SELECTION",
        help="cases of the registry, as in `compile-gate check`",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    try:
        session = _make_session(config.getoption("--gate-select"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[SESSION] = session


def pytest_report_header(config: pytest.Config) -> str:
    session = config.stash[SESSION]
    where = f"device {session.request.device}, {format_noun(session.request.threads, 'thread')}"
    return f"compile-gate: {session.source}, {where}"


def pytest_itemcollected(item: pytest.Item) -> None:
    if "compile_benchmark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.benchmark(timer=TIMER, disable_gc=True))


@pytest.fixture
def compile_benchmark(request: pytest.FixtureRequest, benchmark: Any) -> CompileBenchmark:  # noqa: ANN401 - untyped there
    """Measure a module or function, eager and compiled: ``compile_benchmark(module, inputs)``."""
    with tolerate_warnings():
        from gate.suite.fixture import CompileBenchmark  # noqa: PLC0415 - torch

    return CompileBenchmark(request.config.stash[SESSION], request, benchmark)


def _make_session(select: str) -> SuiteSession:
    """Make the session of a person who runs the suite, from ``gate.yml``.

    Raises:
        FileError: ``gate.yml`` cannot be used.
    """
    # Here, since a project may load this plugin in all of its runs.
    from gate.project.config import apply_options, load_config  # noqa: PLC0415

    config = apply_options(load_config(None), select=select or None)
    directory = str(config.directory.resolve())
    if directory not in sys.path:
        sys.path.append(directory)  # last: measured code must not shadow the gate
    request = WorkerRequest(
        role=WorkerRole.ROUNDS,
        case=None,
        device=config.device,
        threads=config.threads,
        directory=directory,
        result="",
        sampling=config.sampling,
    )
    return SuiteSession(
        request=request,
        logbook=Logbook(None, request.role),
        list_cases=lambda: _list_factory_cases(config),
        source=config.source if config.is_found else f"no {config.source}, so the reference models",
    )


def _list_factory_cases(config: Config) -> tuple[Case, ...]:
    """List the selected registry models; tests of one's own are run by their path.

    Raises:
        UsageError: The selection holds none.
    """
    from gate.project.registry import load_cases  # noqa: PLC0415 - as above
    from gate.project.selection import choose_cases  # noqa: PLC0415 - as above

    choice = choose_cases(config, load_cases(config))
    built = tuple(case for case in choice.cases if case.factory)
    if not built:
        fix = "Run your own tests by their path; the suite runs the registry's models."
        raise UsageError(f"{choice.selection!r} selects tests of your own only", fix)
    return built
