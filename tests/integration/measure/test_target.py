"""Compiling for GPUs that this machine lacks: the metrics that each planted change moves."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("targeted.py")
LIMIT_S = 300

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="needs triton: pip install '.[target]'"
    ),
]


def compile_programs(directory: Path, target: str, *names: str) -> dict[str, Any]:
    """Compile some of the programs in a process that has not imported torch yet, with its ``TMPDIR``."""
    command = [sys.executable, str(SCRIPT), target, *names]
    done = subprocess.run(
        command,
        env={**os.environ, "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    programs: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return programs


def list_changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The metrics that differ, except Python calls, which vary by a few."""
    names = (before.keys() | after.keys()) - {"compile_calls"}
    return {name for name in names if before.get(name) != after.get(name)}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for temporary files of all processes."""
    return tmp_path_factory.mktemp("targets")


@pytest.fixture(scope="module")
def hopper(directory: Path) -> dict[str, Any]:
    """All programs compiled for one target, in one process: most of its time is importing."""
    names = ("plain", "training", "constant", "break", "unfused", "tile", "value")
    return compile_programs(directory, "cuda:sm_90", *names)


def test_each_planted_change_moves_its_metric(hopper: dict[str, Any]) -> None:
    """A break, a lost fusion, a constant and a tile each show by name."""
    plain = hopper["plain"]
    assert (plain["graph_breaks"], plain["unique_graphs"], plain["code_launches"]) == (0, 1, 1)
    assert (hopper["training"]["unique_graphs"], hopper["training"]["eager_fallbacks"]) == (1, 0)
    assert hopper["training"]["generated_kernels"] > plain["generated_kernels"]  # those of the backward
    assert list_changed(plain, hopper["constant"]) == {"digest", "kernels"}
    assert set(plain["kernels"]) == set(hopper["constant"]["kernels"])
    assert {"graph_breaks", "unique_graphs", "code_launches"} <= list_changed(plain, hopper["break"])
    unfused = list_changed(plain, hopper["unfused"])
    assert {"generated_kernels", "code_launches"} <= unfused
    assert "graph_breaks" not in unfused
    tile = list_changed(plain, hopper["tile"])
    assert {"shared_memory", "registers", "digest"} & tile >= {"registers", "digest"}
    assert not {"graph_breaks", "unique_graphs", "code_launches", "captured_ops"} & tile


def test_another_target_has_other_binaries(directory: Path, hopper: dict[str, Any]) -> None:
    """Two processes compile a program for sm_80 to the same binaries, and to others than for sm_90."""
    first, second = (compile_programs(directory, "cuda:sm_80", "plain")["plain"] for _ in range(2))
    assert list_changed(first, second) == set()
    assert {"digest", "cubin_bytes"} <= list_changed(first, hopper["plain"])
    assert first["triton_configs"] >= 1
    assert first["compile_calls"] > first["captured_ops"]


def test_what_asks_for_a_value_cannot_be_traced(hopper: dict[str, Any]) -> None:
    """A program whose path depends on a tensor's value stops with the reason, and has no counts."""
    assert hopper["value"] == {"error": "DataDependentOutputException"}
