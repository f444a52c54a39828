"""Worker processes on a primed toolchain, as the lab runs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gate.files import codec
from gate.lab.workers.process import run_process
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import WorkerJob
from gate.lab.workers.worker_environment import keep_variables, make_worker_environment
from gate.records.cases import Case
from gate.records.protocol import WORKER_ARGUMENTS, Sampling, WorkerRequest, WorkerResult, WorkerRole

TIMEOUT_S = 300

MODELS = """\
import torch
from torch import nn

from gate.workload import Workload


class Layers(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)
        self.fault, self.calls = fault, 0
        self.order = [*{"edge", "tone", "grain", "depth", "flow", "hue", "mask"}]

    def forward(self, value):
        value = self.down(torch.nn.functional.gelu(self.up(value)))
        if self.fault == "break":
            torch._dynamo.graph_break()
        if self.fault == "recompile":
            self.calls += 1
            value = value * (1 + 0.001 * min(self.calls, 4))
        if self.fault == "order":
            for name in self.order:
                value = torch.tanh(value * (1.0 + len(name) / 64 + ord(name[0]) / 1024))
        return value.relu()


def build(fault=""):
    return Workload(
        forward=Layers(fault),
        inputs=(torch.randn(32, 64),),
        loss=lambda output: output.square().mean(),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-5),
    )


def build_lstm():
    return Workload(forward=nn.LSTM(16, 16), inputs=(torch.randn(4, 2, 16),))


def build_text():
    return Workload(forward=lambda: "text", inputs=())


def build_disabled():
    torch._dynamo.config.disable = True
    return Workload(forward=torch.sin, inputs=(torch.randn(64),))
"""


@dataclass(frozen=True)
class Workshop:
    """A directory of models with a primed toolchain; each case starts on a cache that holds nothing else.

    One thread leaves a core to other tests: two that wait for each other burn what others need.
    """

    directory: Path
    pool: ServerPool
    threads: int = 1
    super_blocks: int = 3

    @property
    def primer(self) -> Path:
        """The primer's cache directories."""
        return self.directory / "primer"

    @property
    def cache(self) -> Path:
        return self.directory / "cache"

    def seed_cache(self) -> None:
        """Give the current case the primer's toolchain and nothing else."""
        shutil.rmtree(self.cache, ignore_errors=True)
        shutil.copytree(self.primer, self.cache)

    @property
    def temporary(self) -> Path:
        """The directory of precompiled headers, below one of Inductor's."""
        return self.directory / "tmp"

    def make_request(self, role: WorkerRole, case: Case | None = None) -> WorkerRequest:
        return WorkerRequest(
            role=role,
            case=case,
            device="cpu",
            threads=self.threads,
            directory=str(self.directory),
            result=str(self.directory / f"{role}.json"),
            benchmark_json=str(self.directory / "benchmark.json") if role == WorkerRole.COLD else "",
            sampling=Sampling(super_blocks=self.super_blocks, warmup_s=0.05),
        )

    def run(
        self, role: WorkerRole, case: Case | None = None, *, is_forked: bool = True, **variables: str
    ) -> WorkerResult:
        """Run one worker, forked or a process of its own, and return its result."""
        job = WorkerJob(
            request=self.make_request(role, case),
            argv=(sys.executable, *WORKER_ARGUMENTS),
            directory=self.directory,
            environment={**self.make_environment(self.cache if case else self.primer, role), **variables},
            log=self.directory / f"{role}.log",
            limit_s=TIMEOUT_S,
        )
        (job,) = self.pool.open((job,)) if is_forked else (job,)
        path = self.directory / f"{role}.request.json"
        path.write_text(json.dumps(codec.encode(job.request)))
        ended = run_process(replace(job, argv=(*job.argv, str(path))))
        assert ended.status == 0, ended.log_tail.decode(errors="replace")
        result = Path(job.request.result).read_bytes()
        return codec.decode(WorkerResult, codec.parse_json(result, "result"), "result")

    def make_environment(self, cache: Path, role: WorkerRole = WorkerRole.COLD) -> dict[str, str]:
        return make_worker_environment(os.environ, cache, self.temporary, self.threads, role)

    def measure_cold(self, case: Case) -> WorkerResult:
        """Measure a case's cold process on the primer's toolchain."""
        self.seed_cache()
        return self.run(WorkerRole.COLD, case)

    def measure_warm(self, case: Case) -> WorkerResult:
        """Measure a case's warm process alone: it compiles what it does not find."""
        self.seed_cache()
        return self.run(WorkerRole.WARM, case)

    def measure_both(self, case: Case, *, is_forked: bool = True) -> tuple[WorkerResult, WorkerResult]:
        """Measure a case's cold and warm process on one cache."""
        self.seed_cache()
        cold = self.run(WorkerRole.COLD, case, is_forked=is_forked)
        return cold, self.run(WorkerRole.WARM, case, is_forked=is_forked)

    def run_python(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script as its user would, with the variables of caches and compilers."""
        self.seed_cache()
        given = self.make_environment(self.cache)
        compiling = {name: value for name, value in given.items() if name.startswith("TORCHINDUCTOR_")}
        return subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.directory,
            env={**keep_variables(os.environ), **compiling, "TMPDIR": given["TMPDIR"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT_S,
        )


OpenWorkshop = Callable[[str], Workshop]


@pytest.fixture(scope="session")
def pool() -> Iterator[ServerPool]:
    """Servers of all workshops."""
    with closing(ServerPool()) as opened:
        yield opened


@pytest.fixture(scope="session")
def open_workshop(tmp_path_factory: pytest.TempPathFactory, pool: ServerPool) -> OpenWorkshop:
    """Open a workshop in a directory of its own, not yet primed."""

    def make(name: str) -> Workshop:
        workshop = Workshop(tmp_path_factory.mktemp(name), pool)
        workshop.temporary.mkdir()
        (workshop.directory / "made_up.py").write_text(MODELS)
        return workshop

    return make


@pytest.fixture(scope="session")
def workshop(open_workshop: OpenWorkshop) -> Workshop:
    """A workshop whose toolchain is primed."""
    workshop = open_workshop("workshop")
    primed = workshop.run(WorkerRole.PRIME)
    assert primed.failure is None, primed.failure
    return workshop


@pytest.fixture(scope="session")
def project(workshop: Workshop) -> Path:
    """The directory of measured code."""
    return workshop.directory


@pytest.fixture(scope="session")
def primer(workshop: Workshop) -> Path:
    """The primer's cache directories."""
    return workshop.primer
