"""A trial's sessions in a project; nothing is compiled here."""

import json
from pathlib import Path
from typing import Any

import pytest

from gate.measure.logbook import Logbook
from gate.records.cases import Case
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.suite.fixture import import_compiler
from gate.suite.trial_plugin import TrialPlugin
from gate.worker.worker import make_arguments

import_compiler()  # a pytester session forgets what was imported in it, and torch can be imported once only

pytest_plugins = ["pytester"]


def run_trial(
    project: pytest.Pytester,
    source: str,
    role: WorkerRole = WorkerRole.COLD,
    node: str = "test_mine.py::test_mine",
    args: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Run a user's test in a trial's process; return the result file."""
    project.path.joinpath("test_mine.py").write_text(source)
    result = project.path / "result.json"
    case = Case(id="mine/test", model="mine", node=node, pytest_args=args)
    request = WorkerRequest(
        role=role, case=case, device="cpu", threads=1, directory=str(project.path), result=str(result)
    )
    logbook = Logbook(result, role)
    project.inline_run(*make_arguments(request, case), plugins=[TrialPlugin(request, case, logbook)])
    content: dict[str, Any] = json.loads(result.read_text())
    return content


XFAIL = "import pytest\n@pytest.mark.xfail"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("import no_such_thing_at_all", "No module named 'no_such_thing_at_all'", id="import"),
        pytest.param("def test_mine():\n    pass", "measured nothing", id="no measurement"),
        pytest.param("import pytest\ndef test_mine():\n    pytest.skip('no')", "Skipped: no", id="skip"),
        pytest.param("def test_mine(missing):\n    pass", "fixture 'missing' not found", id="fixture"),
        pytest.param("def test_mine():\n    raise OSError('no data')", "OSError: no data", id="error"),
        pytest.param(
            "def test_other():\n    pass",
            "test_mine (no match in any of [<Module test_mine.py>]); check its `node`",
            id="no such test",
        ),
        pytest.param(
            f"{XFAIL}()\ndef test_mine():\n    raise OSError('known')", "OSError: known", id="xfail"
        ),
        pytest.param(f"{XFAIL}(run=False)\ndef test_mine():\n    pass", "NOTRUN", id="xfail not run"),
        pytest.param(
            "import pytest\ndef test_mine():\n    pytest.exit('enough', 0)", "measured nothing", id="exit 0"
        ),
        pytest.param("import sys\ndef test_mine():\n    sys.exit(0)", "SystemExit: 0", id="system exit"),
    ],
)
def test_test_that_measures_nothing_is_a_failure(pytester: pytest.Pytester, source: str, words: str) -> None:
    """Nothing is skipped silently, whatever keeps a test from measuring."""
    failure = run_trial(pytester, source)["failure"]
    assert failure["kind"] == "error"
    assert words in failure["fact"]["names"]["message"][0]


MEASURES = (
    "import torch\ndef test_mine(compile_benchmark):\n    compile_benchmark(torch.neg, torch.ones(3))\n"
)


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (
            "torch.nn.Linear(3, 3), torch.ones(3), loss=torch.sum",
            "task: the test passes a loss, and its entry's task is inference",
            "Write `task: training` into the entry, or pass no loss.",
        ),
        (
            "torch.nn.Linear(3, 3).bfloat16(), torch.ones(3)",
            "dtype: the test passes tensors of bfloat16, and its entry's dtype is float32",
            "Write `dtype: bfloat16` into the entry, or pass float32 alone.",
        ),
    ],
)
def test_what_an_entry_would_leave_out_is_refused(
    pytester: pytest.Pytester, arguments: str, message: str, fix: str
) -> None:
    """Else a training step, or a model of 16 bits, would be measured as inference in float32."""
    source = f"import torch\ndef test_mine(compile_benchmark):\n    compile_benchmark({arguments})\n"
    failure = run_trial(pytester, source, WorkerRole.TRY)["failure"]
    assert failure["fact"]["names"]["message"] == [f"gate.yml: tests: mine: {message}"]
    assert failure["fix"] == fix


# A plugin that nobody here knows, which takes the test over when its option is given, and without it too.
TAKES_OVER = """\
import random
import pytest

def pytest_addoption(parser):
    parser.addoption("--fork-it", action="store_true")
    parser.addini("strange", "a setting")

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    item.config.stash.setdefault("ran", []).append(item)
    return True

def pytest_runtest_setup():
    random.seed()

def pytest_runtest_call():
    random.seed()

def pytest_collection_modifyitems(config, items):
    if config.getoption("--fork-it"):
        items *= 3
"""


# One that counts in a report on what it did around the test, as pytest-retry does.
COUNTS_ON_ITS_RUN = """\
RAN = {}

def pytest_runtest_protocol(item):
    RAN[item] = True

def pytest_runtest_makereport(item):
    RAN[item]
"""


def try_plainly(pytester: pytest.Pytester, source: str = MEASURES, args: tuple[str, ...] = ()) -> str:
    """Try a test; return its failure, empty if it was built and called and left nothing behind."""
    before = set(pytester.path.iterdir())
    tried = run_trial(pytester, source, WorkerRole.TRY, args=args)
    left = {path.name for path in pytester.path.iterdir()} - {path.name for path in before}
    assert left <= {"__pycache__", "test_mine.py", "result.json"}
    if tried["failure"] is None:
        assert (tried["stage"], tried["workload"]["inputs"]) == ("ended", "float32[3]")
        return ""
    message: str = tried["failure"]["fact"]["names"]["message"][0]
    return message


@pytest.mark.parametrize(
    "options",
    [
        "-m 'not slow' -k other --deselect=test_mine.py::test_mine --ignore=test_mine.py",
        "--collect-only --lf --sw -x --setup-plan",
        "-n 2 --dist=loadfile --cov=. --cov-report=xml:cov.xml --timeout=0.001",
        "-p no:xdist -p no:benchmark -p no:terminal -p no:cacheprovider -p no:logging",
        "--disable-plugin-autoload -p pytest_benchmark.plugin --benchmark-skip",
        "--benchmark-only --benchmark-autosave --benchmark-compare --benchmark-histogram --benchmark-json=b",
        "--benchmark-disable --junitxml=j.xml --log-file=l.log --basetemp=b --durations=3 --no-such-option",
        "-p takes_over --fork-it",
        "-p counts_on_its_run",
        "-p gate.suite.plugin --gate-select=nothing",
        "-W error --strict-markers --strict-config --import-mode=importlib",
    ],
)
def test_everyday_options_do_not_matter(pytester: pytest.Pytester, options: str) -> None:
    """A test of gate.yml is called once, whatever `addopts` deselect, distribute, trace or repeat."""
    pytester.makepyfile(takes_over=TAKES_OVER, counts_on_its_run=COUNTS_ON_ITS_RUN)
    pytester.syspathinsert()
    pytester.makeini(f"[pytest]\nfilterwarnings = error\naddopts = {options}\n")
    assert try_plainly(pytester) == ""


def test_everyday_settings_do_not_matter(pytester: pytest.Pytester) -> None:
    """Nor a time limit for each test, nor pytest's logs and files in the project."""
    limits = "timeout = 0.001\ntimeout_func_only = true\nfaulthandler_timeout = 1\n"
    logs = "log_cli = true\nlog_level = DEBUG\nlog_file = tests.log\ncache_dir = kept\n"
    pytester.makeini(f"[pytest]\n{limits}{logs}addopts = --strict-config\n")
    assert try_plainly(pytester) == ""


def test_where_code_is_found_holds(pytester: pytest.Pytester) -> None:
    """A trial keeps the import options and fixture plugins of `addopts`."""
    pytester.makepyfile(our_fixtures="import pytest\n@pytest.fixture\ndef size():\n    return 3\n")
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib -m slow -p our_fixtures\npythonpath = .\n")
    source = (
        "import sys, torch\n"
        "def test_mine(compile_benchmark, size, request):\n"
        "    assert request.config.getoption('importmode') == 'importlib'\n"
        "    assert request.config.getoption('markexpr') == ''\n"
        "    compile_benchmark(torch.neg, torch.ones(size))\n"
    )
    assert try_plainly(pytester, source) == ""


@pytest.mark.parametrize("scope", ["function", "session"])
def test_names_that_the_project_has_too(pytester: pytest.Pytester, scope: str) -> None:
    """A conftest may have the gate's options and pytest-benchmark's fixture name."""
    pytester.makeini("[pytest]\naddopts = -p no:benchmark\n")
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_addoption(parser):\n"
        "    for name in ('--select', '--gate-select', '--gate-request'):\n"
        "        parser.addoption(name)\n"
        f"@pytest.fixture(autouse=True, scope={scope!r})\n"
        "def benchmark():\n"
        "    return print\n"
    )
    assert try_plainly(pytester) == ""


RUNSLOW = """\
import pytest
def pytest_addoption(parser):
    parser.addoption("--runslow", action="store_true")
def pytest_collection_modifyitems(config, items):
    if not config.getoption("--runslow"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason="need --runslow to run"))
"""


def test_an_entry_names_the_options_that_its_test_needs(pytester: pytest.Pytester) -> None:
    """They are `args`; the failure without them names the `addopts` that do not hold."""
    pytester.makeconftest(RUNSLOW)
    pytester.makeini("[pytest]\naddopts = --runslow\n")
    why = "a trial does not take '--runslow' of addopts: options that the test needs go into `args`"
    assert f"Skipped: need --runslow to run; {why} of its entry in gate.yml" in try_plainly(pytester)
    assert try_plainly(pytester, args=("--runslow",)) == ""


@pytest.mark.parametrize(
    ("conftest", "message"),
    [
        pytest.param(
            "def pytest_collection_modifyitems(items):\n    items.clear()",
            "measured nothing (the test is left out by pytest_collection_modifyitems of {}/conftest.py)",
            id="left out",
        ),
        pytest.param(
            "import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'", id="import"
        ),
        pytest.param(
            "import pytest\ndef pytest_configure():\n    raise pytest.UsageError('set DATA first')",
            "pytest: set DATA first",
            id="settings",
        ),
        pytest.param(
            "def pytest_collection_modifyitems():\n    raise OSError('no data')",
            "OSError: no data",
            id="hook",
        ),
        pytest.param(
            "import pytest, sys\n"
            "@pytest.fixture(autouse=True)\n"
            "def watch():\n"
            "    sys.setprofile(lambda *_: None)\n"
            "    yield\n"
            "    sys.setprofile(None)",
            "conftest (sys.setprofile) traces what is measured",
            id="profile",
        ),
    ],
)
def test_what_is_in_the_way_is_named(pytester: pytest.Pytester, conftest: str, message: str) -> None:
    """The failure names the code that skipped the test, broke the session or slows it."""
    pytester.makeconftest(conftest)
    assert message.format(pytester.path) in try_plainly(pytester)


def test_an_option_that_leaves_the_test_out_is_named(pytester: pytest.Pytester) -> None:
    """The entry itself deselects it."""
    message = try_plainly(pytester, args=("-k", "other"))
    assert "measured nothing (the test is left out by a plugin or an option of its `args`)" in message


def test_options_that_do_not_exist_are_named(pytester: pytest.Pytester) -> None:
    """The failure is the one line of the error, without pytest's list of options."""
    assert try_plainly(pytester, args=("--nope",)).startswith("pytest: unrecognized arguments: --nope")


def test_a_module_that_skips_itself_is_named(pytester: pytest.Pytester) -> None:
    """The failure has the reason and the line."""
    source = f"import pytest\npytest.importorskip('no_such_thing')\n{MEASURES}"
    message = (
        f"could not import 'no_such_thing': No module named 'no_such_thing' ({pytester.path}/test_mine.py:2)"
    )
    assert message in try_plainly(pytester, source)


def test_every_trial_draws_the_same_numbers(pytester: pytest.Pytester) -> None:
    """Fixtures and test ignore a plugin that seeds otherwise, as pytest-randomly does."""
    pytester.makepyfile(takes_over=TAKES_OVER)
    pytester.syspathinsert()
    pytester.makeini("[pytest]\naddopts = -p takes_over\n")
    source = (
        "import random, pytest\n"
        "@pytest.fixture\n"
        "def drawn():\n"
        "    return random.random()\n"
        "def test_mine(drawn):\n"
        "    raise OSError(f'{drawn} {random.random()}')\n"
    )
    assert "OSError: 0." in try_plainly(pytester, source) == try_plainly(pytester, source)


_BODY = "    open('ran', 'w').close()\n"


@pytest.mark.parametrize("role", [WorkerRole.COLD, WorkerRole.WARM, WorkerRole.TRY])
@pytest.mark.parametrize(
    ("source", "node", "ids"),
    [
        pytest.param(
            f"import pytest\n@pytest.mark.parametrize('size', [8, 16])\ndef test_mine(size):\n{_BODY}",
            "test_mine.py::test_mine",
            "test_mine.py::test_mine[8], test_mine.py::test_mine[16]",
            id="parametrized",
        ),
        pytest.param(
            f"class TestMine:\n    def test_one(self):\n    {_BODY}    def test_two(self):\n    {_BODY}",
            "test_mine.py::TestMine",
            "test_mine.py::TestMine::test_one, test_mine.py::TestMine::test_two",
            id="class",
        ),
    ],
)
def test_a_node_of_several_tests_is_refused(
    pytester: pytest.Pytester, source: str, node: str, ids: str, role: WorkerRole
) -> None:
    """One case cannot be two tests: the failure names the key and the tests."""
    failure = run_trial(pytester, source, role, node)["failure"]
    message = (
        f"gate.yml: tests: mine: node: {node!r} names 2 tests, and a case is one; "
        f"write an entry for each that is to be measured, with one of: {ids}"
    )
    assert (failure["kind"], failure["fact"]["names"]["message"]) == ("error", [message])
    assert not pytester.path.joinpath("ran").exists()


def test_one_of_several_tests_is_a_case(pytester: pytest.Pytester) -> None:
    """A node that names one set of parameters is one test, and is run."""
    source = f"import pytest\n@pytest.mark.parametrize('size', [8, 16])\ndef test_mine(size):\n{_BODY}"
    failure = run_trial(pytester, source, node="test_mine.py::test_mine[16]")["failure"]
    assert "measured nothing" in failure["fact"]["names"]["message"][0]
    assert pytester.path.joinpath("ran").exists()


def test_worker_needs_no_configuration(pytester: pytest.Pytester) -> None:
    """A trial's settings come from its request: a broken gate.yml does not matter."""
    pytester.path.joinpath("gate.yml").write_text("nonsense: 1\n")
    assert (
        "OSError"
        in run_trial(pytester, "def test_mine():\n    raise OSError('x')")["failure"]["fact"]["names"][
            "message"
        ][0]
    )


def test_installed_suite_has_its_empty_settings() -> None:
    """They shield registry models."""
    import gate.suite  # noqa: PLC0415 - its place is what is asked

    assert Path(gate.suite.__path__[0], "trial.ini").read_text().endswith("[pytest]\n")


def test_trying_a_test_calls_and_traces_it(pytester: pytest.Pytester) -> None:
    """No code is generated, nothing is timed."""
    source = (
        "import torch\n"
        "def test_mine(compile_benchmark):\n"
        "    compile_benchmark(lambda x: x + 1, torch.ones(3))\n"
        "    counters = torch._dynamo.utils.counters\n"
        "    assert (counters['stats']['unique_graphs'], len(counters['inductor'])) == (1, 0)\n"
    )
    tried = run_trial(pytester, source, WorkerRole.TRY)
    assert (tried["stage"], tried["failure"], tried["samples"]) == ("ended", None, {})


def test_trying_what_compiles_to_nothing_fails(pytester: pytest.Pytester) -> None:
    """Its check would compare eager with eager."""
    source = (
        "import torch\ndef test_mine(compile_benchmark):\n    compile_benchmark(lambda x: x, torch.ones(3))\n"
    )
    tried = run_trial(pytester, source, WorkerRole.TRY)
    assert "nothing was compiled, 0 graphs" in tried["failure"]["fact"]["names"]["message"][0]
    assert tried["stage"] == "compile"


def test_trying_a_test_that_measures_nothing_fails(pytester: pytest.Pytester) -> None:
    """A test that never calls the fixture would measure nothing either."""
    tried = run_trial(pytester, "def test_mine():\n    pass\n", WorkerRole.TRY)
    assert "the test measured nothing" in tried["failure"]["fact"]["names"]["message"][0]


@pytest.mark.parametrize("role", [WorkerRole.TRY, WorkerRole.COLD])
def test_a_failure_that_a_test_catches_is_a_failure(pytester: pytest.Pytester, role: WorkerRole) -> None:
    """The test was not measured, even if it passes."""
    source = (
        "import torch\n"
        "def forward(x):\n"
        "    raise OSError('no data')\n"
        "def test_mine(compile_benchmark):\n"
        "    try:\n"
        "        compile_benchmark(forward, torch.ones(3))\n"
        "    except OSError:\n"
        "        pass\n"
    )
    tried = run_trial(pytester, source, role)
    assert "OSError: no data" in tried["failure"]["fact"]["names"]["message"][0]
    assert tried["stage"] == "eager"
