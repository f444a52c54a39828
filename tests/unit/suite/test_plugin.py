"""The plugin in pytest sessions of its own; nothing is compiled here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gate.files import codec
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records import Case
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.suite.torch_imports import import_torch

# A pytester session forgets what was imported in it; torch and the YAML parser can be imported once only.
import_torch()
load_cases(load_config(None))

pytest_plugins = ["pytester"]

CONFIG = """\
version: 1
reference_models: false
select: tag:pr
threads: 1
models:
  - name: mlp
    factory: project_model:build
    cases: [{size: small, dtype: [float32, bfloat16], tags: [pr]}]
tests:
  - {name: mine, node: test_mine.py::test_mine, tags: [own]}
"""
PLUGIN = ("-p", "gate.suite.plugin", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a directory with a configuration of two registry cases and a test."""
    pytester.path.joinpath("gate.yml").write_text(CONFIG)
    return pytester


def collect(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Collect the suite's own test."""
    return project.runpytest_inprocess("--pyargs", "gate.suite", *PLUGIN, "--collect-only", "-q", *arguments)


def run_trial(
    project: pytest.Pytester,
    source: str,
    role: WorkerRole = WorkerRole.COLD,
    node: str = "test_mine.py::test_mine",
) -> dict[str, Any]:
    """Run a user's test in a trial's process; return the result file."""
    project.path.joinpath("test_mine.py").write_text(source)
    result = project.path / "result.json"
    request = WorkerRequest(
        role=role,
        case=Case(id="mine/test", model="mine", node=node),
        device="cpu",
        threads=1,
        directory=str(project.path),
        result=str(result),
    )
    path = project.path / "request.json"
    path.write_text(json.dumps(codec.encode(request)))
    project.runpytest_inprocess(*PLUGIN, "--gate-request", str(path), node)
    content: dict[str, Any] = json.loads(result.read_text())
    return content


def test_selected_cases_become_tests(project: pytest.Pytester) -> None:
    """Each selected registry case is one test with its id; the selection defaults to gate.yml's."""
    collected = collect(project)
    collected.stdout.fnmatch_lines(
        [
            "*::test_model[[]mlp/inference-float32-small-default[]]",
            "*[[]mlp/inference-bfloat16-small-default[]]",
        ]
    )


def test_select_and_k_narrow_down(project: pytest.Pytester) -> None:
    """``--select`` chooses cases, ``-k`` chooses among their tests."""
    selected = collect(project, "--select", "mlp/*bfloat16*")
    assert "float32" not in selected.stdout.str()
    narrowed = collect(project, "-k", "float32")
    narrowed.stdout.fnmatch_lines(["*1/2 tests collected*"])


def test_unknown_selection_is_a_usage_error(project: pytest.Pytester) -> None:
    """A selection that matches nothing ends with pytest's usage status and both lines."""
    collected = collect(project, "--select", "no_such_model")
    assert collected.ret != pytest.ExitCode.OK
    assert "no_such_model" in collected.stdout.str() + collected.stderr.str()


def test_selection_of_own_tests_only_says_so(project: pytest.Pytester) -> None:
    """The suite's test runs registry models: users' tests are not left out silently."""
    collected = collect(project, "--select", "tag:own")
    assert collected.ret != pytest.ExitCode.OK
    assert "selects tests of your own only" in collected.stdout.str() + collected.stderr.str()


def test_own_tests_beside_models_are_named(project: pytest.Pytester) -> None:
    """A selection of both runs the models, and a warning names what is not run."""
    collected = collect(project, "--select", "*")
    told = "*PytestWarning: 1 test of your own is not run here: mine/test; run it by its path"
    collected.stdout.fnmatch_lines(["*[[]mlp/inference-bfloat16-small-default[]]", told])
    assert "of your own" not in collect(project, "--select", "mlp").stdout.str()


def test_factories_are_imported_from_beside_the_configuration(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever pytest is started, a factory beside gate.yml is found, after all that is found without."""
    project.makepyfile(project_model="NAME = 'beside'")
    below = project.mkdir("below")
    top = str(project.path.resolve())
    below.joinpath("test_import.py").write_text(
        "import sys\n"
        "from gate.suite.session import SESSION\n"
        "def test_import(request):\n"
        "    import project_model\n"
        "    assert project_model.NAME == 'beside'\n"
        f"    assert sys.path[-1] == request.config.stash[SESSION].directory == {top!r}\n"
    )
    monkeypatch.chdir(below)
    project.runpytest_inprocess(*PLUGIN, "test_import.py").assert_outcomes(passed=1)


def test_broken_configuration_is_a_usage_error(project: pytest.Pytester) -> None:
    """A wrong key in gate.yml stops the session with the file and the fix."""
    project.path.joinpath("gate.yml").write_text("version: 1\nthreds: 2\n")
    collected = collect(project)
    assert collected.ret == pytest.ExitCode.USAGE_ERROR
    assert "threads" in collected.stderr.str()


def test_header_says_where_is_measured(project: pytest.Pytester) -> None:
    """The device comes from the configuration unless an option names it."""
    run = project.runpytest_inprocess(*PLUGIN, "--collect-only", "--gate-device", "cuda:1")
    run.stdout.fnmatch_lines(["compile-gate: gate.yml, device cuda:1, 1 threads"])


XFAIL = "import pytest\n@pytest.mark.xfail"


@pytest.mark.parametrize(
    ("source", "told"),
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
def test_test_that_measures_nothing_is_a_failure(project: pytest.Pytester, source: str, told: str) -> None:
    """Whatever keeps a test from measuring is in the result: nothing is skipped silently."""
    failure = run_trial(project, source)["failure"]
    assert failure["kind"] == "error"
    assert told in failure["told"]["names"]["message"][0]


def test_a_test_that_the_project_deselects_is_a_failure(project: pytest.Pytester) -> None:
    """A conftest that leaves tests out leaves a case out, which was planned."""
    project.makeconftest("def pytest_collection_modifyitems(items):\n    items.clear()\n")
    failure = run_trial(project, "def test_mine():\n    pass")["failure"]
    assert "measured nothing" in failure["told"]["names"]["message"][0]


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
    project: pytest.Pytester, source: str, node: str, ids: str, role: WorkerRole
) -> None:
    """One case cannot be two tests: none is run, and the failure names the key and the tests there are."""
    failure = run_trial(project, source, role, node)["failure"]
    told = (
        f"gate.yml: tests: mine: node: {node!r} names 2 tests, and a case is one; "
        f"write an entry for each that is to be measured, with one of: {ids}"
    )
    assert (failure["kind"], failure["told"]["names"]["message"]) == ("error", [told])
    assert not project.path.joinpath("ran").exists()


def test_one_of_several_tests_is_a_case(project: pytest.Pytester) -> None:
    """A node that names one set of parameters is one test, and is run."""
    source = f"import pytest\n@pytest.mark.parametrize('size', [8, 16])\ndef test_mine(size):\n{_BODY}"
    failure = run_trial(project, source, node="test_mine.py::test_mine[16]")["failure"]
    assert "measured nothing" in failure["told"]["names"]["message"][0]
    assert project.path.joinpath("ran").exists()


def test_fixture_is_for_measuring_tests_only(project: pytest.Pytester) -> None:
    """Tests that do not measure run as without the plugin."""
    project.path.joinpath("test_other.py").write_text("def test_other():\n    assert True\n")
    project.runpytest_inprocess(*PLUGIN, "test_other.py").assert_outcomes(passed=1)


def test_worker_needs_no_configuration(project: pytest.Pytester) -> None:
    """A trial's settings are its request's: a broken gate.yml does not matter to it."""
    project.path.joinpath("gate.yml").write_text("nonsense: 1\n")
    assert (
        "OSError"
        in run_trial(project, "def test_mine():\n    raise OSError('x')")["failure"]["told"]["names"][
            "message"
        ][0]
    )


def test_installed_suite_has_its_empty_settings() -> None:
    """The settings that shield registry models lie beside the suite."""
    import gate.suite  # noqa: PLC0415 - its place is what is asked

    assert Path(gate.suite.__path__[0], "trial.ini").read_text().endswith("[pytest]\n")


def test_trying_a_test_calls_it_and_compiles_nothing(project: pytest.Pytester) -> None:
    """What it measures is built and called eagerly: nothing is timed, and that is no failure."""
    source = (
        "import torch\n"
        "def test_mine(compile_benchmark):\n"
        "    def forward(x):\n"
        "        assert not torch.compiler.is_compiling()\n"
        "        return x + 1\n"
        "    compile_benchmark(forward, torch.ones(3))\n"
    )
    tried = run_trial(project, source, WorkerRole.TRY)
    assert (tried["stage"], tried["failure"], tried["samples"]) == ("ended", None, {})


def test_trying_a_test_that_measures_nothing_fails(project: pytest.Pytester) -> None:
    """A test that never calls the fixture would measure nothing either."""
    tried = run_trial(project, "def test_mine():\n    pass\n", WorkerRole.TRY)
    assert "the test measured nothing" in tried["failure"]["told"]["names"]["message"][0]


@pytest.mark.parametrize("role", [WorkerRole.TRY, WorkerRole.COLD])
def test_a_failure_that_a_test_catches_is_a_failure(project: pytest.Pytester, role: WorkerRole) -> None:
    """What could not be measured was not measured, whatever the test makes of it."""
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
    tried = run_trial(project, source, role)
    assert "OSError: no data" in tried["failure"]["told"]["names"]["message"][0]
    assert tried["stage"] == "eager"
