"""The plugin in pytest sessions of its own; nothing is compiled here."""

import pytest

from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.suite.fixture import import_compiler

# A pytester session forgets what was imported in it; torch and the YAML parser can be imported once only.
import_compiler()
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
    """``--gate-select`` chooses cases, ``-k`` chooses among their tests."""
    selected = collect(project, "--gate-select", "mlp/*bfloat16*")
    assert "float32" not in selected.stdout.str()
    narrowed = collect(project, "-k", "float32")
    narrowed.stdout.fnmatch_lines(["*1/2 tests collected*"])


def test_unknown_selection_is_a_usage_error(project: pytest.Pytester) -> None:
    """A selection that matches nothing ends the collection, and is named."""
    collected = collect(project, "--gate-select", "no_such_model")
    assert collected.ret == pytest.ExitCode.INTERRUPTED
    assert "no_such_model" in collected.stdout.str() + collected.stderr.str()


def test_selection_of_own_tests_only_is_noted(project: pytest.Pytester) -> None:
    """The suite's test runs registry models only."""
    collected = collect(project, "--gate-select", "tag:own")
    assert collected.ret == pytest.ExitCode.INTERRUPTED
    assert "selects tests of your own only" in collected.stdout.str() + collected.stderr.str()


def test_factories_are_imported_from_the_configurations_directory(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever pytest starts, after everything that is found without it."""
    project.makepyfile(project_model="NAME = 'beside'")
    below = project.mkdir("below")
    top = str(project.path.resolve())
    below.joinpath("test_import.py").write_text(
        "import sys\n"
        "from gate.suite.session import SESSION\n"
        "def test_import(request):\n"
        "    import project_model\n"
        "    assert project_model.NAME == 'beside'\n"
        f"    assert sys.path[-1] == request.config.stash[SESSION].request.directory == {top!r}\n"
    )
    monkeypatch.chdir(below)
    project.runpytest_inprocess(*PLUGIN, "test_import.py").assert_outcomes(passed=1)


def test_broken_configuration_is_a_usage_error(project: pytest.Pytester) -> None:
    """A wrong key in gate.yml stops the session with the file and the fix."""
    project.path.joinpath("gate.yml").write_text("version: 1\nthreds: 2\n")
    collected = collect(project)
    assert collected.ret == pytest.ExitCode.USAGE_ERROR
    assert "threads" in collected.stderr.str()


def test_header_names_where_is_measured(project: pytest.Pytester) -> None:
    """The device comes from the configuration."""
    project.path.joinpath("gate.yml").write_text(f"{CONFIG}device: cuda:1\n")
    run = project.runpytest_inprocess(*PLUGIN, "--collect-only")
    run.stdout.fnmatch_lines(["compile-gate: gate.yml, device cuda:1, 1 thread"])


def test_fixture_is_for_measuring_tests_only(project: pytest.Pytester) -> None:
    """Tests that do not measure run as without the plugin."""
    project.path.joinpath("test_other.py").write_text("def test_other():\n    assert True\n")
    project.runpytest_inprocess(*PLUGIN, "test_other.py").assert_outcomes(passed=1)
