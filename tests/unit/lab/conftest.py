"""Fixtures of the lab's tests: a bench whose workers are actors, and a count of what they leave."""

import itertools
import sys
import tempfile
import uuid
import venv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from gate.lab.host.fitness import HostSample
from gate.lab.trials import opening as opening_module
from gate.lab.trials import trials as trials_module
from gate.lab.trials.bench import Bench, LabSettings
from gate.lab.trials.opening import Lab, open_base_bench
from gate.records.cases import Case
from gate.records.events import Observer, ignore_event
from gate.records.run import Arm, Conditions
from tests.hosts import CPU_HOST, PLACE

MARK = "LAB_TEST_MARK"
ACTOR = Path(__file__).with_name("acting_worker.py")

CountLeft = Callable[[], int]


@pytest.fixture
def count_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountLeft]:
    """Count the living processes that the test's workers started; ends them afterwards."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)

    def list_left() -> list[psutil.Process]:
        processes = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                    processes.append(process)
            except psutil.Error:
                continue
        return processes

    yield lambda: len(list_left())
    for process in list_left():
        process.kill()


@pytest.fixture
def scratch_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own temporary directory."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture
def settings(tmp_path: Path) -> LabSettings:
    return LabSettings(out=tmp_path / "out", trial_timeout_s=30.0, worker=("-P", "-S", str(ACTOR)))


@pytest.fixture
def arm(tmp_path: Path) -> Arm:
    """An arm in an empty directory."""
    directory = tmp_path / "tree"
    directory.mkdir()
    return Arm(name="head", python=sys.executable, directory=str(directory))


@pytest.fixture
def bench(arm: Arm, settings: LabSettings, tmp_path: Path) -> Bench:
    """A bench that is not primed."""
    scratch = tmp_path / "scratch"
    (scratch / "tmp").mkdir(parents=True)
    settings.out.mkdir()
    return Bench(arm=arm, settings=settings, scratch=scratch)


def make_lab(bench: Bench, observe: Observer = ignore_event, **changes: Any) -> Lab:
    """Make a lab of a bench whose base is the same tree."""
    bench = replace(bench, place=PLACE.name)
    base, _ = open_base_bench(bench, replace(bench.arm, name="base"))
    fields: dict[str, Any] = {"environment": CPU_HOST, "base_environment": CPU_HOST, "toolchain_s": 0.0}
    return Lab(bench=bench, base=base, place=PLACE, observe=observe, **(fields | changes))


def make_case(act: str = "ok", name: str = "actor", **arguments: object) -> Case:
    """Make a case that plays an act."""
    return Case(
        id=f"{name}/inference-float32-smoke-default",
        model=name,
        factory="actor:build",
        arguments={"act": act, **arguments},
        definition="0" * 16,
        expected_s=1.0,
    )


@pytest.fixture(scope="session")
def make_interpreter(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make another interpreter with packages of its own: ``make_interpreter(torch="__version__ = '9'")``."""

    def make(**modules: str) -> Path:
        directory = tmp_path_factory.mktemp("interpreter")
        venv.EnvBuilder(with_pip=False, symlinks=True).create(directory)
        (site,) = directory.glob("lib/python*/site-packages")
        for name, source in modules.items():
            (site / f"{name}.py").write_text(source, encoding="utf-8")
        return directory / "bin" / "python"

    return make


@pytest.fixture(autouse=True)
def _quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host on which nothing else happens, so that no trial is repeated because of the machine."""
    clock = itertools.count()
    monkeypatch.setattr(trials_module, "read_host", lambda: HostSample(at_s=next(clock)))
    monkeypatch.setattr(opening_module, "look_early", lambda _: Conditions())
