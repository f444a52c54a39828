"""Fixtures of the tests under act."""

import pytest
from fake.server import FakeGitHub

from act.hub import Hub
from act.project import MakeProject, Project, make_project
from act.runner import Runner


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A runner, and the repositories on disk that it knows."""
    directory = tmp_path_factory.mktemp("act")
    return Runner(Hub(directory), directory)


@pytest.fixture
def make(runner: Runner, github: FakeGitHub) -> MakeProject:
    """Make a repository of files, with a pull request's change and an interpreter of its own."""

    def make(
        files: dict[str, str] | None = None, change: dict[str, str] | None = None, python: str = ""
    ) -> Project:
        workflows = runner.hub.load_workflows("compile-gate.yml", "compile-gate-respond.yml")
        named = {
            path: text.replace("python: python3", f"python: {python or 'python3'}")
            for path, text in workflows.items()
        }
        return make_project(runner, github, named | (files or {}), change or {"actor.py": "x = 1\n"})

    return make


@pytest.fixture
def project(make: MakeProject) -> Project:
    """A repository whose pull request changes nothing that counts."""
    return make()
