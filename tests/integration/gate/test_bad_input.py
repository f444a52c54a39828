"""What a user gets wrong: two lines with file, key and fix, the right exit code, nothing written.

What is refused before anything is measured is refused in this process; the others run the real command in
a fresh one. None of them gets as far as a verdict on a model.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.cli import main
from gate.errors import ExitCode
from gate.lab.host.device_lock import lock_device
from gate.records.events import ignore_event

MODEL = """\
models:
  - name: tiny
    factory: tiny_model:build
    cases: [{size: smoke, tags: [pr]}]
    sizes: {smoke: {}}
"""
RUNNING = """\
import os, torch
from gate import Workload

def build():
    return Workload(forward=lambda x: BODY, inputs=(torch.ones(4),))
"""
HEADER = "version: 1\nreference_models: false\nselect: tag:pr\n"
VALID = HEADER + MODEL
BOMB = "version: 1\nselect: &a [x, x, x, x]\nregistry: &b [*a, *a, *a, *a]\nout: [*b, *b, *b, *b]\n"


def run_gate(
    directory: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command in ``directory``."""
    return subprocess.run(
        [sys.executable, "-m", "gate", *arguments],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,  # an interpreter imports torch for each factory; a busy machine takes ten times as long
    )


Refuse = Callable[..., list[str]]


@pytest.fixture
def refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run one command, which has to end with exit 2, and return the lines of standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> list[str]:
        assert main(arguments) == ExitCode.USAGE
        return capsys.readouterr().err.splitlines()

    return run


def list_files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param(VALID + "selct: x\n", ["gate.yml", "selct", "select"], id="unknown_key"),
        pytest.param(VALID + "trials: three\n", ["gate.yml", "trials"], id="wrong_type"),
        pytest.param(VALID + "trials: -1\n", ["gate.yml", "trials"], id="negative"),
        pytest.param(VALID + "trials: 1\ntrials: 2\n", ["gate.yml", "trials"], id="duplicate_key"),
        pytest.param("version: 1\n  models: [\n", ["gate.yml"], id="not_yaml"),
        pytest.param(BOMB, ["gate.yml"], id="yaml_bomb"),
        pytest.param("version: 99\n", ["gate.yml", "version"], id="newer"),
        pytest.param(
            VALID.replace("[{size: smoke, tags: [pr]}]", "[{size: smoke, tags: [pr]}, {size: smoke}]"),
            ["tiny/inference-float32-smoke-default"],
            id="duplicate_case",
        ),
        pytest.param(
            VALID.replace("tiny_model:build", "tiny_model.build"), ["factory"], id="factory_spelling"
        ),
        pytest.param(VALID, ["gate.yml", "factory", "tiny_model"], id="no_module"),
        pytest.param(
            VALID + "overrides: [{case: 'tinny/*', metric: drift, relative: 0, absolute: 1, reason: x}]\n",
            ["overrides[0]", "tinny/*"],
            id="override_matches_nothing",
        ),
        pytest.param(VALID + "thresholds: {latency: {relative: 0.1}}\n", ["latency"], id="unknown_metric"),
    ],
)
def test_wrong_configuration(tmp_path: Path, refuse: Refuse, config: str, words: list[str]) -> None:
    """A wrong gate.yml is exit 2 and two lines that name file, key and fix; nothing is written."""
    (tmp_path / "gate.yml").write_text(config)
    what, fix = refuse("check")
    assert [word for word in words if word not in what + fix] == []
    assert list_files(tmp_path) == ["gate.yml"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        pytest.param(["check", "--select", "tinny/*"], "tiny", id="unknown_model"),
        pytest.param(["check", "--select", "tag:prr"], "tag:pr", id="unknown_tag"),
        pytest.param(["check", "--select", "tiny,!tiny"], "leaves no case", id="empty"),
        pytest.param(["check", "--select", ""], "must not be empty", id="blank"),
        pytest.param(["check", "--trials", "0"], "--trials", id="no_trials"),
        pytest.param(["check", "--device", "tpu"], "tpu", id="unknown_device"),
        pytest.param(["check", "--config", "other.yml"], "other.yml", id="no_config"),
        pytest.param(["compare", "nothing.json", "nothing.json"], "nothing.json", id="no_run"),
        pytest.param(["report", "nothing.json"], "nothing.json", id="no_verdict"),
        pytest.param(["merge", "nothing.json", "--out", "out"], "nothing.json", id="no_shard"),
        pytest.param(["plan", "--shards", "0"], "shards", id="no_shards"),
    ],
)
def test_wrong_arguments(tmp_path: Path, refuse: Refuse, arguments: list[str], word: str) -> None:
    """A request that cannot be met is exit 2 and two lines that name it; nothing is written."""
    (tmp_path / "gate.yml").write_text(VALID)
    what, fix = refuse(*arguments)
    assert word in what + fix
    assert list_files(tmp_path) == ["gate.yml"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"schema": "compile-gate/run/1", "cases": [', id="truncated"),
        pytest.param(b'{"schema": "compile-gate/run/99", "cases": []}', id="newer"),
        pytest.param(b'{"schema": "compile-gate/verdict/1"}', id="other_kind"),
        pytest.param(b'{"schema": "compile-gate/run/1", "wall_s": NaN}', id="nan"),
        pytest.param(b'{"schema": "compile-gate/run/1", "wall_s": 1e999}', id="infinity"),
        pytest.param(b'{"schema": "compile-gate/run/1", "schema": "x"}', id="duplicate_key"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"schema": "compile-gate/run/1", "wall_s": ' + b"9" * 5000 + b"}", id="huge_integer"),
        pytest.param(b"\xff\xfe\x00", id="not_utf8"),
        pytest.param(b"", id="empty"),
    ],
)
def test_hostile_run_file(tmp_path: Path, refuse: Refuse, content: bytes) -> None:
    """A damaged, foreign, newer or hostile run.json is exit 2 and two lines that name the file."""
    (tmp_path / "gate.yml").write_text(VALID)
    (tmp_path / "run.json").write_bytes(content)
    what, fix = refuse("compare", "run.json", "run.json")
    assert "run.json" in what + fix
    assert list_files(tmp_path) == ["gate.yml", "run.json"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory whose configuration and model are sound."""
    (tmp_path / "gate.yml").write_text(VALID)
    (tmp_path / "tiny_model.py").write_text(RUNNING.replace("BODY", "x + 1"))
    return tmp_path


def test_hostile_baseline_stops_before_measuring(project: Path) -> None:
    """The error names a damaged baseline before minutes are spent, and no result is written."""
    (project / "baselines" / "somewhere").mkdir(parents=True)
    (project / "baselines" / "somewhere" / "tiny.json").write_text('{"schema": "compile-gate/baseline/1"')
    checked = run_gate(project, "check")
    assert (checked.returncode, len(checked.stderr.splitlines())) == (2, 2), checked.stderr
    assert "tiny.json" in checked.stderr
    assert not (project / "out").exists()


@pytest.mark.parametrize("environment", [{}, {"TORCHINDUCTOR_CACHE_DIR": "/elsewhere"}])
def test_output_in_the_way_of_a_file(project: Path, environment: dict[str, str]) -> None:
    """An output directory that cannot be made ends a check before the compiler is warmed up."""
    (project / "out").write_text("a file")
    checked = run_gate(project, "check", "--no-base", environment=environment)
    assert checked.returncode in {2, 4}
    note, error, fix = checked.stderr.splitlines()
    assert note.startswith("note: nothing will be judged")
    assert "out" in error
    assert fix.endswith(".")
    assert (project / "out").read_text() == "a file"


def test_held_lock_is_the_machines_fault(project: Path) -> None:
    """While another run holds the device, waiting too long is exit 4 and two lines, never a verdict."""
    with lock_device("cpu", 60.0, ignore_event):
        checked = run_gate(project, "check", "--lock-timeout", "0.5", "--quiet")
    assert (checked.returncode, len(checked.stderr.splitlines())) == (4, 2), checked.stderr
    assert "in use" in checked.stderr
    assert not (project / "out" / "verdict.json").exists()


@pytest.mark.slow
def test_no_compiler_is_the_machines_fault(project: Path) -> None:
    """Without a C++ compiler nothing can be judged: exit 4 and the package to install."""
    checked = run_gate(project, "check", "--quiet", environment={"CXX": "/no/such/compiler"})
    assert (checked.returncode, len(checked.stderr.splitlines())) == (4, 2), checked.stderr
    assert "compiler" in checked.stderr


@pytest.mark.slow
def test_no_such_device_is_the_machines_fault(project: Path) -> None:
    """A missing CUDA device is exit 4, not a failed case."""
    checked = run_gate(project, "check", "--quiet", "--device", "cuda:63")
    assert (checked.returncode, len(checked.stderr.splitlines())) == (4, 2), checked.stderr
    assert "cuda:63" in checked.stderr
