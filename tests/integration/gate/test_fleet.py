"""A fleet of two nodes, one of which is killed, finds the planted fault, and leaves nothing behind.

The nodes are Ray's on this host, with a core and a directory of locks each. The fault is a graph break, which
needs no generated code.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from gate.errors import ExitCode
from gate.files.codec import RUN, VERDICT
from gate.lab.host.device_lock import lock_device
from gate.metrics import SPECS, Family
from gate.records.cases import group_cases
from gate.records.codes import Code
from gate.records.events import ignore_event
from gate.records.run import Pairing
from gate.records.verdict import Status, Verdict
from tests.git import run_git

cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two nodes need a core each"),
]

CONFIG = """\
version: 1
reference_models: false
threads: 1
pair_budget_s: 600 # a break that two pairs show ends it
sampling: {super_blocks: 2, warmup_s: 0.05}
# Times end as soon as they may: they would take up to 16 pairs each.
thresholds:
  compiled_latency: {absolute: 1}
  cold_compile_time: {absolute: 60}
  warm_compile_time: {absolute: 60}
  warm_speedup: {absolute: 10}
models:
  - {name: sound, factory: "tiny:build_sound", cases: [{expected_s: 15, backend: eager}]}
  - {name: broken, factory: "tiny:build_broken", cases: [{expected_s: 15, backend: eager}]}
"""
MODELS = """\
import torch
from torch import nn

from gate import Workload


class Sound(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + 1


class Broken(nn.Module):
    def forward(self, x):
        x = torch.sin(x)
        # FAULT
        return x * 2


def build_sound():
    return Workload(forward=Sound(), inputs=(torch.randn(32, 32),))


def build_broken():
    return Workload(forward=Broken(), inputs=(torch.randn(32, 32),))
"""
SOUND, BROKEN = (f"{model}/inference-float32-smoke-default-eager" for model in ("sound", "broken"))
STORE_BYTES = 80 * 2**20


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository whose branch breaks the graph of one of two models; its scratch is the test's own."""
    top = tmp_path / "project"
    top.mkdir()
    (tmp_path / "scratch").mkdir()
    (top / "gate.yml").write_text(CONFIG, encoding="utf-8")
    (top / "tiny.py").write_text(MODELS, encoding="utf-8")
    (top / ".gitignore").write_text("/*-out\n__pycache__\n", encoding="utf-8")
    run_git(top, "init", "-qb", "main")
    run_git(top, "add", ".")
    run_git(top, "commit", "-qm", "base")
    (top / "tiny.py").write_text(MODELS.replace("# FAULT", "torch._dynamo.graph_break()"), encoding="utf-8")
    run_git(top, "checkout", "-qb", "topic")
    run_git(top, "commit", "-qam", "a break")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as directory:
        monkeypatch.setenv("RAY_TMPDIR", directory)  # of sockets, whose paths may have 107 bytes
        yield top


@contextmanager
def start_nodes(tmp_path: Path) -> Iterator[tuple[Any, list[Any]]]:
    """A head without processors, and two nodes with one each."""
    allowed, nodes = os.sched_getaffinity(0), []
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        for core in sorted(allowed)[:2]:
            locks = tmp_path / f"locks-{core}"
            locks.mkdir()
            os.sched_setaffinity(0, {core})  # what a node starts inherits it
            variables = {"COMPILE_GATE_LOCKS": str(locks)}
            nodes.append(cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, env_vars=variables))
        os.sched_setaffinity(0, allowed)
        yield cluster, nodes
    finally:
        os.sched_setaffinity(0, allowed)
        cluster.shutdown()


def check(project: Path, out: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gate", "check", "--base", "main", "--out", out, *options]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def list_exact(verdict: Verdict) -> dict[tuple[str, str], Status]:
    """The statuses that do not depend on time."""
    return {
        (row.case_id, row.metric): row.status
        for row in verdict.comparisons
        if row.decides and SPECS[row.metric].family is not Family.NOISY
    }


def list_processes(project: Path) -> list[str]:
    """The processes that work in the project, or on it."""
    commands = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        command = " ".join(process.info["cmdline"] or ())
        if str(project.parent) in f"{command} {process.info['cwd']}" and process.pid != os.getpid():
            commands.append(command)
    return commands


def test_a_node_is_killed_and_nothing_is_missed(project: Path, tmp_path: Path) -> None:
    """The kill comes after the first trial, while the other node is at work. Its lane ends with it.

    The next run removes what it left, and ends as soon as it has begun: the device is in use.
    """
    lines = []
    with start_nodes(tmp_path) as (cluster, nodes):
        with check(project, "fleet-out", "--lanes", f"ray:{cluster.address}") as running:
            assert running.stdout is not None
            for line in running.stdout:
                lines.append(line)
                if " trial 1: " in line and len(nodes) > 1:
                    cluster.remove_node(nodes.pop(), allow_graceful=False)
        assert running.returncode == 10, "".join(lines)
        assert list_processes(project) == []
    assert any("was lost" in line and "began anew elsewhere" in line for line in lines), "".join(lines)
    run = RUN.load(project / "fleet-out" / "run.json")
    (gone,) = (fact for fact in run.lanes if fact.code is Code.LANE_GONE)
    assert gone in VERDICT.load(project / "fleet-out" / "verdict.json").notes
    assert len(run.places) == 2
    assert {ran_on.cores for ran_on in run.places.values()} == {
        str(core) for core in sorted(os.sched_getaffinity(0))[:2]
    }
    for pairing in Pairing:
        of_kind = group_cases(trial for trial in run.trials if trial.pairing is pairing)
        assert all(len({trial.place for trial in trials}) == 1 for trials in of_kind.values())

    exact = list_exact(VERDICT.load(project / "fleet-out" / "verdict.json"))
    assert {case_id for case_id, _ in exact} == {SOUND, BROKEN}
    # Counts alone convict it, so its compiles get pairs: they take no longer, whatever they call.
    assert {row: status for row, status in exact.items() if status is not Status.UNCHANGED} == {
        (BROKEN, "graph_breaks"): Status.REGRESSED,
        (BROKEN, "unique_graphs"): Status.REGRESSED,
    }

    with lock_device("cpu", 60.0, ignore_event):
        begun = check(project, "next-out", "--lock-timeout", "0.1")
        output = begun.communicate()[0]
    assert begun.returncode == ExitCode.MACHINE, output
    assert len(run_git(project, "worktree", "list").splitlines()) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    assert list_processes(project) == []
