"""The plugin of a person's session: an option and a fixture. Load it with ``-p gate.suite.plugin``.

The option is registered here and not in a ``conftest.py``, which pytest does not load for an installed
package in time.
"""

from typing import Any

import pytest

from gate.errors import UsageError
from gate.suite.fixture import CompileBenchmark
from gate.suite.session import SESSION, TIMER, make_plain_session


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
    """Make the session's settings."""
    try:
        session = make_plain_session(config.getoption("--gate-select"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[SESSION] = session


def pytest_report_header(config: pytest.Config) -> str:
    """Say where the suite measures."""
    session = config.stash[SESSION]
    source = f"{session.source}, " if session.source else ""
    return f"compile-gate: {source}device {session.device}, {session.threads} threads"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give tests that measure the synchronizing timer."""
    if "compile_benchmark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.benchmark(timer=TIMER, disable_gc=True))


@pytest.fixture
def compile_benchmark(request: pytest.FixtureRequest, benchmark: Any) -> CompileBenchmark:  # noqa: ANN401 - untyped there
    """Measure a module or function, eager and compiled: ``compile_benchmark(module, inputs)``."""
    return CompileBenchmark(request.config.stash[SESSION], request, benchmark)
