"""Fixtures of the GitHub tests: the fake GitHub, a clock that never waits, a client of both."""

import functools
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that every test here can `import fake`

from action.samples import make_bare_python
from fake.clock import FakeClock
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from publishing import Publisher
from refreshes import GATE_YML, Topic
from rule_repository import CONFIG, MODELS, Repo, make_baseline
from token_job import TokenJob
from urllib3.util import retry

from gate.cli.parser import make_parser
from gate.github import client as client_module
from gate.github.client import GitHubClient

# What a client's trust depends on, all of which the tests of certificates set.
TRUSTED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(scope="session", autouse=True)
def trust() -> Iterator[None]:
    """Load what the system trusts once: it takes 40 ms, and each client of the fake does it twice."""
    make = ssl.create_default_context

    @functools.cache
    def load(*_: str | None) -> ssl.SSLContext:
        return make()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda: load(*map(os.environ.get, TRUSTED)))
        yield


@pytest.fixture(scope="session", autouse=True)
def parser() -> Iterator[None]:
    """Make the parser of all commands once: it takes 15 ms, and hundreds of tests run commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gate.cli.make_parser", functools.cache(make_parser))
        yield


@pytest.fixture(params=["api.github.com"])
def github(request: pytest.FixtureRequest) -> Iterator[FakeGitHub]:
    """A fake GitHub; every exchange must have kept GitHub's contract when the test ends."""
    with FakeGitHub(request.param) as fake:
        yield fake
    assert fake.violations == []


@pytest.fixture
def bare(github: FakeGitHub, tmp_path: Path) -> BareRepository:
    repository = BareRepository.create(tmp_path / "bare.git")
    github.state.git = repository
    return repository


@pytest.fixture
def git(bare: BareRepository) -> BareRepository:
    """The repository behind the fake GitHub: a default branch, and one that a pull request is for."""
    bare.commit({"gate.yml": "version: 1\nreference_models: false\n"}, branch="main")
    bare.commit({"gate.yml": GATE_YML, "src/model.py": "x = 1\n"}, branch="topic")
    return bare


@pytest.fixture
def topic(github: FakeGitHub, client: GitHubClient, git: BareRepository) -> Topic:
    """The branch that a pull request is for, whose baselines are proposed."""
    return Topic(github, client, git)


@pytest.fixture
def job(
    github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> TokenJob:
    """A job that holds a token, in which commands are run in this process."""
    return TokenJob(github, tmp_path / "job", monkeypatch, capfd)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has everything the gate needs, and neither torch nor the gate."""
    return make_bare_python(tmp_path_factory.mktemp("bare python"))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Time that passes only when a client sleeps."""
    fake = FakeClock()
    for module in (client_module, retry):
        monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def client(github: FakeGitHub) -> GitHubClient:
    return github.client


@pytest.fixture
def publisher(github: FakeGitHub, client: GitHubClient) -> Publisher:
    """A pull request with one finished run, whose verdict is published."""
    return Publisher(github, client)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Return a repository with a configuration, a registry and a baseline."""
    repo = Repo(tmp_path)
    stored = {"perf/baselines/x.json": make_baseline("base")}
    repo.write({"gate.yml": CONFIG, "models/cases.yml": MODELS} | stored)
    (repo.root / "README.md").write_text("hello")
    monkeypatch.chdir(repo.top)
    return repo
