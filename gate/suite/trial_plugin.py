"""The pytest plugin of a trial: which settings of a project hold, and what kept its case from being measured.

A project's `addopts` serve its everyday runs. A trial runs the one test that gate.yml names, and keeps of
them only where code and settings are found.
"""

from __future__ import annotations

import copy
import gc
import sys
import threading
import tracemalloc
import types
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.utils import NameWrapper

from gate.errors import UsageError
from gate.measure.failures import describe_error
from gate.measure.logbook import Logbook
from gate.measure.turns import Turns
from gate.records.cases import Case
from gate.records.protocol import Stage, WorkerRequest, WorkerRole
from gate.suite.session import SESSION, TIMER, SuiteSession, tolerate_warnings
from gate.units import join_some

if TYPE_CHECKING:
    from gate.suite.fixture import CompileBenchmark

_IDS_NAMED = 5  # tests to choose from, on the one line that a failure has

# The part of `addopts` that holds, by where pytest keeps it. `-p` and `--disable-plugin-autoload` have taken
# effect before.
_KEPT_OPTIONS = {"importmode": "--import-mode", "confcutdir": "--confcutdir"}
_PLAIN_PLUGIN = "gate.suite.plugin"  # a person's session, which a project may load in all of its runs

Hook = Generator[None, Any, Any]
_TOOL_IDS = range(6)  # of sys.monitoring


class TrialPlugin:
    """Runs a trial's session: whatever keeps the case from being measured is in the result file."""

    def __init__(self, request: WorkerRequest, case: Case, logbook: Logbook) -> None:
        turns = Turns(request.channel) if request.channel >= 0 else None
        self._session = SuiteSession(
            request=request, logbook=logbook, list_cases=lambda: (case,), turns=turns
        )
        self._logbook = logbook
        self._case = case
        self._tracers = _list_tracers()
        self._everyday = ""  # the project's options that do not hold here
        self._left_out = ""  # who left the test out

    # The project's settings that hold.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: pytest.Config, parser: pytest.Parser, args: list[str]
    ) -> Hook:
        """Take the project's everyday options back, before a plugin or a conftest acts on one."""
        self._everyday = _leave_options(early_config, parser, args)
        early_config.pluginmanager.set_blocked(_PLAIN_PLUGIN)
        _load_benchmark(early_config.pluginmanager)
        return (yield)

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[SESSION] = self._session
        config.pluginmanager.register(TrialFixture(self._session), "gate-fixture")

    # How the test is run.

    def pytest_collection(self) -> None:
        """Import torch before any test module does, on its own account."""
        self._logbook.enter(Stage.IMPORT)
        with tolerate_warnings():
            from gate.suite.fixture import import_compiler  # noqa: PLC0415 - torch

            import_compiler()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the test as pytest alone does: once, in this process, with no other plugin around it.

        A plugin that would run it in a way of its own is removed: its other hooks count on that.
        """
        manager = session.config.pluginmanager
        for runner in list(session.config.hook.pytest_runtest_protocol.get_hookimpls()):
            if not _is_of_pytest(runner.plugin) and not runner.plugin_name.endswith("conftest.py"):
                manager.unregister(runner.plugin)
        foreign = [plugin for plugin in manager.get_plugins() if not _is_of_pytest(plugin)]
        run = manager.subset_hook_caller("pytest_runtest_protocol", foreign)
        for item in session.items:
            run(item=item, nextitem=None)
        return True

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self) -> bool:
        return True

    def pytest_runtest_setup(self) -> None:
        """Draw the same numbers in the project's fixtures each time, whatever another plugin has seeded."""
        _seed()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self) -> Hook:
        """Seed the test as well, and refuse what its fixtures have begun to trace."""
        _seed()
        _refuse_tracers(self._tracers)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_machine_info(self) -> dict[str, str]:
        """The run's environment has it, and asking the CPU takes seconds."""
        return {"see": "environment in run.json"}

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_commit_info(self) -> dict[str, str]:
        return {"see": "provenance in run.json"}

    # What kept the case from being measured.

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_parse(self) -> Hook:
        return (yield from self._watch())

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self) -> Hook:
        return (yield from self._watch())

    def _watch(self) -> Hook:
        try:
            return (yield)
        except (Exception, SystemExit) as error:
            if isinstance(error, pytest.UsageError):
                # Without the list of all options, which pytest puts before what is wrong with them.
                self._refuse(f"pytest: {str(error).rpartition('error: ')[2].splitlines()[0]}")
            self._fail(error.__cause__ or error)
            raise

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._fail(excinfo.value)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fail(RuntimeError(_summarize(report)))
        elif report.skipped and isinstance(report.longrepr, tuple):
            file, line, reason = report.longrepr
            self._refuse(f"{reason} ({file}:{line})")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> Hook:
        before = len(items)
        result = yield
        if before and not items:
            self._left_out = f"the test is left out by {_name_choosers(config)}"
        return result

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Refuse a ``node`` that names several tests: each would be measured as the one case."""
        if len(session.items) > 1:
            self._fail(_refuse_several(self._case, [item.nodeid for item in session.items]))
            session.items.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[Any]) -> None:
        if call.excinfo is None:
            return
        error = call.excinfo.value
        if isinstance(error, pytest.FixtureLookupError):  # its own text is for pytest's eyes
            self._refuse(f"fixture {error.argname!r} not found")
        elif isinstance(error, pytest.skip.Exception):
            self._refuse(describe_error(error))
        self._fail(error)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        result = self._logbook.result
        # A workload is recorded when it is built: one that is only tried or traced has no samples.
        is_unmeasured = result.role in {WorkerRole.TRY, WorkerRole.TRACE}
        if not (result.workload if is_unmeasured else result.samples):
            self._refuse(f"the test measured nothing ({self._left_out or _describe_end(exitstatus)})")
        if self._logbook.result.failure is None:
            self._logbook.enter(Stage.ENDED)
        gc.freeze()  # pytest collects garbage five times as it ends: half a second with torch loaded

    def _refuse(self, why: str) -> None:
        where = "go into `args` of its entry in gate.yml"
        if self._everyday:
            why += (
                f"; a trial does not take {self._everyday!r} of addopts: options that the test needs {where}"
            )
        elif "--" in why:
            why += f"; options that the test needs {where}"
        self._fail(UsageError(why, f"Options that the test needs {where}."))

    def _fail(self, error: BaseException) -> None:
        if self._logbook.result.failure is None:
            self._logbook.fail(error)


class TrialFixture:
    """The fixture of a trial. Registered last: pytest keeps that of a plugin which was blocked in time."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session

    @pytest.fixture
    def compile_benchmark(self, request: pytest.FixtureRequest) -> CompileBenchmark:
        from gate.suite.fixture import CompileBenchmark  # noqa: PLC0415 - torch, imported at collection

        session = request.config._benchmarksession  # type: ignore[attr-defined] # noqa: SLF001 - no public name
        benchmark = BenchmarkFixture(  # type: ignore[no-untyped-call] # untyped there
            request.node,
            add_stats=session.benchmarks.append,
            logger=session.logger,
            warner=request.node.warn,
            disabled=False,
            **{**session.options, "timer": NameWrapper(TIMER), "disable_gc": True},  # type: ignore[no-untyped-call]
        )
        return CompileBenchmark(self._session, request, benchmark)


def _leave_options(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> str:
    arguments, everyday = config.invocation_params.args, config.known_args_namespace
    text = " ".join(args[: len(args) - len(arguments)])
    kept = {option: getattr(everyday, name, None) for name, option in _KEPT_OPTIONS.items()}
    args[:] = [*(f"{option}={value}" for option, value in kept.items() if value), *map(str, arguments)]
    config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(config.option))
    return text


def _load_benchmark(manager: pytest.PytestPluginManager) -> None:
    from pytest_benchmark import plugin  # noqa: PLC0415 - pytest rewrites what it loads itself

    if manager.is_registered(plugin):
        return
    part = types.ModuleType(plugin.__name__)
    skipped = ("pytest_runtest_", "pytest_collection_", "benchmark")
    part.__dict__.update(
        (name, value) for name, value in vars(plugin).items() if not name.startswith(skipped)
    )
    manager.register(part, "gate-benchmark")


def _seed() -> None:
    from gate.measure.workload.build import SEED, seed_everything  # noqa: PLC0415 - torch

    seed_everything(SEED)


def _is_of_pytest(plugin: object) -> bool:
    module = getattr(plugin, "__module__", None) or getattr(plugin, "__name__", "")
    return str(module).startswith("_pytest.")


def _name_choosers(config: pytest.Config) -> str:
    hook = config.hook.pytest_collection_modifyitems
    names = [
        hook_impl.plugin_name
        for hook_impl in hook.get_hookimpls()
        if hook_impl.plugin_name.endswith("conftest.py")
    ]
    return (
        f"{hook.name} of {join_some(names, _IDS_NAMED)}" if names else "a plugin or an option of its `args`"
    )


def _refuse_several(case: Case, node_ids: Sequence[str]) -> UsageError:
    file = case.node.partition("::")[0]  # from the directory of gate.yml, where pytest's may be from above
    names = [f"{file}::{node_id.partition('::')[2]}" for node_id in node_ids]
    return UsageError(
        f"gate.yml: tests: {case.model}: node: {case.node!r} names {len(names)} tests, and a case is one; "
        f"write an entry for each that is to be measured, with one of: {join_some(names, _IDS_NAMED)}",
        "`pytest --collect-only -q NODE` lists them all.",
    )


def _describe_end(exitstatus: int) -> str:
    error = sys.exc_info()[1]
    if isinstance(error, pytest.UsageError):
        return f"{' '.join(str(error).split())}; check its `node` in gate.yml"
    return f"pytest ended with status {int(exitstatus)}"


def _summarize(report: pytest.CollectReport) -> str:
    lines = [line.strip() for line in report.longreprtext.splitlines() if line.strip()]
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or ["the test cannot be collected"])[-1]


def _list_tracers() -> frozenset[str]:
    """List what watches: `coverage (sys.settrace)`."""
    hooks = {
        "sys.settrace": sys.gettrace() or threading.gettrace(),
        "sys.setprofile": sys.getprofile() or threading.getprofile(),
    }
    tracers = {f"{_name_package(hook)} ({way})" for way, hook in hooks.items() if hook is not None}
    if sys.version_info >= (3, 12):
        tools = filter(None, map(sys.monitoring.get_tool, _TOOL_IDS))
        tracers |= {f"{tool} (sys.monitoring)" for tool in tools}
    if tracemalloc.is_tracing():
        tracers.add("tracemalloc")
    return frozenset(tracers)


def _refuse_tracers(before: frozenset[str]) -> None:
    """Refuse to measure what has begun to be watched since ``before``.

    Raises:
        UsageError: The watcher's time would be taken for the model's, and its calls for the compiler's.
    """
    if begun := sorted(_list_tracers() - before):
        raise UsageError(
            f"{', '.join(begun)} traces what is measured: times and calls would be its own; "
            "start it in no conftest.py, fixture or `args` of gate.yml",
            "Start it in no conftest.py, fixture or `args` of gate.yml.",
        )


def _name_package(hook: object) -> str:
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0]
