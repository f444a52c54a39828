"""The environment of workers."""

from pathlib import Path

import pytest

from gate.lab.workers.worker_environment import (
    list_dropped_variables,
    make_worker_environment,
    note_dropped_variables,
)
from gate.records.protocol import WorkerRole
from tests.words import describe_measuring

PLACES = Path("/scratch/cache"), Path("/scratch/tmp")


def test_gives_what_the_measurement_needs() -> None:
    """From an empty environment a worker gets private caches and every fixed setting, and nothing else."""
    expected = {
        "TORCHINDUCTOR_CACHE_DIR": "/scratch/cache/inductor",
        "TRITON_CACHE_DIR": "/scratch/cache/triton",
        "CUDA_CACHE_PATH": "/scratch/cache/cuda",
        "TMPDIR": "/scratch/tmp",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "2",
        "MALLOC_ARENA_MAX": "1",
        "HF_HUB_OFFLINE": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert expected == make_worker_environment({}, *PLACES, 2)


def test_the_second_process_has_another_hash_seed() -> None:
    """The same one in each trial, and nothing else is different."""
    first, second = (
        make_worker_environment({}, *PLACES, 2, role) for role in (WorkerRole.COLD, WorkerRole.WARM)
    )
    assert second == {**first, "PYTHONHASHSEED": "1"}


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "CXX", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "TORCH_HOME", "TRITON_PTXAS_PATH"],
)
def test_keeps_where_things_are_found(name: str) -> None:
    """Variables of search paths are inherited as they are."""
    assert make_worker_environment({name: "value"}, *PLACES, 1)[name] == "value"


@pytest.mark.parametrize(
    "name",
    [
        *("TORCH_LOGS", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHDYNAMO_DISABLE", "TRITON_INTERPRET"),
        *(
            "PYTORCH_ALLOC_CONF",
            "KMP_BLOCKTIME",
            "COVERAGE_PROCESS_START",
            "PYTEST_ADDOPTS",
            "PYTHONOPTIMIZE",
        ),
    ],
)
def test_drops_what_would_change_the_measurement(name: str) -> None:
    """Settings of the measured stack and hooks into Python are not inherited, and are listed."""
    assert name not in make_worker_environment({name: "1"}, *PLACES, 1)
    assert (name,) == list_dropped_variables({name: "1", "PATH": "/bin"})


def test_what_is_not_inherited_is_described() -> None:
    """An allocator's settings concern every figure; an OpenMP variable only the log's reader."""
    inherited = dict.fromkeys(
        ("PYTORCH_ALLOC_CONF", "OMP_NUM_THREADS", "PYTHONPATH", "PYTHONOPTIMIZE", "TORCHINDUCTOR_CACHE_DIR"),
        "1",
    )
    (fact,) = note_dropped_variables(inherited)
    assert fact.names["variables"] == ("OMP_NUM_THREADS", "PYTORCH_ALLOC_CONF", "TORCHINDUCTOR_CACHE_DIR")
    (fact,) = note_dropped_variables(inherited, of_stack=True)
    assert describe_measuring(fact).startswith("workers do not inherit PYTORCH_ALLOC_CONF, which would")
    assert not note_dropped_variables({"PYTHONOPTIMIZE": "1", "PATH": "/bin"})


def test_fixed_settings_win() -> None:
    """The caller's own OpenMP and cache settings do not reach a worker."""
    inherited = {
        "OMP_NUM_THREADS": "64",
        "TORCHINDUCTOR_CACHE_DIR": "/mine",
        "TMPDIR": "/t",
        "PYTHONHASHSEED": "9",
    }
    assert make_worker_environment({}, *PLACES, 3) == make_worker_environment(inherited, *PLACES, 3)


def test_python_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative entries of PYTHONPATH mean the caller's directory; empty ones are left out."""
    monkeypatch.chdir(tmp_path)
    environ = make_worker_environment({"PYTHONPATH": "src::/opt/site"}, *PLACES, 1)
    assert f"{tmp_path}/src:/opt/site" == environ["PYTHONPATH"]
    assert "PYTHONPATH" not in make_worker_environment({"PYTHONPATH": ":"}, *PLACES, 1)
