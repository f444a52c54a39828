"""Workers are not forked where a fork is unsafe; otherwise they equal processes of their own."""

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import WorkerJob, run_worker
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import WORKER_ARGUMENTS, Stage, WorkerResult, WorkerRole
from tests.integration.measure.conftest import OpenWorkshop, Workshop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only"),
]

THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), name="watcher", daemon=True).start()
"""
LOOP = "import torch\ntorch.set_num_threads(2)\ntorch.ones(1_000_000).sin()"  # the threads of OpenMP stay
ONE_THREAD = "import torch\ntorch.set_num_threads(torch.get_num_threads() + 1)"
HELPER = "import subprocess, sys\nsubprocess.Popen((sys.executable, '-c', 'import time; time.sleep(600)'))"


@pytest.fixture(scope="module")
def workshop(open_workshop: OpenWorkshop) -> Workshop:
    """A workshop that is not primed, as nothing is compiled, of two threads: OpenMP starts none for one."""
    return replace(open_workshop("forked"), threads=2)


def make_job(workshop: Workshop, role: WorkerRole, case: Case) -> WorkerJob:
    return WorkerJob(
        request=workshop.make_request(role, case),
        argv=(sys.executable, *WORKER_ARGUMENTS),
        directory=workshop.directory,
        environment=workshop.make_environment(workshop.cache, role),
        log=workshop.directory / "forked.log",
        limit_s=300.0,
    )


@pytest.mark.parametrize(
    ("name", "starts", "why_not"),
    [
        ("watched", THREAD, Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher"))),
        ("looped", LOOP, Fact(code=Code.IMPORT_STARTS_THREADS)),
        ("helped", HELPER, Fact(code=Code.IMPORT_STARTS_PROCESSES)),
        ("alone", ONE_THREAD, Fact(code=Code.IMPORT_SETS_THREADS)),
    ],
)
def test_a_module_that_starts_something_is_not_forked(
    workshop: Workshop, pool: ServerPool, name: str, starts: str, why_not: Fact
) -> None:
    """Its workers import everything themselves, with a note; other cases are still forked."""
    (workshop.directory / f"{name}.py").write_text(f"from made_up import build\n{starts}\n")
    case = Case(id=f"{name}/a", model=name, factory=f"{name}:build")
    job = make_job(workshop, WorkerRole.COLD, case)
    for _ in range(2):  # the second answer is remembered
        (opened,) = pool.open([job])
        assert (opened.why_not, opened.fork) == (why_not, None)
    plain = Case(id="layers/plain", model="layers", factory="made_up:build")
    assert pool.open([make_job(workshop, WorkerRole.COLD, plain)])[0].why_not is None


def test_a_forked_process_has_the_variables_that_a_module_sets(workshop: Workshop, pool: ServerPool) -> None:
    """Variables that an import sets and removes are the same for the factory, forked or not."""
    lines = "import os\nos.environ['MODEL_FLAG'] = '1'\nos.environ.pop('MODEL_OLD', None)\n"
    lines += "import made_up\ndef build(**kwargs):\n"
    lines += "    assert (os.environ['MODEL_FLAG'], os.environ.get('MODEL_OLD')) == ('1', None)\n"
    (workshop.directory / "flagged.py").write_text(f"{lines}    return made_up.build(**kwargs)\n")
    case = Case(id="flagged/a", model="flagged", factory="flagged:build")
    plain = make_job(workshop, WorkerRole.TRY, case)
    job = replace(plain, environment={**plain.environment, "MODEL_OLD": "1"})
    for started in (job, pool.open([job])[0]):
        result = run_worker(started)
        assert isinstance(result, WorkerResult), result
        assert (result.failure, result.stage) == (None, Stage.DONE)


def test_a_process_keeps_its_caches_whatever_a_module_sets(workshop: Workshop, pool: ServerPool) -> None:
    """Forked or not, it measures with its own, and notes which variable the module has set."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    lines = f"import os\nos.environ['{name}'] = 'elsewhere'\nfrom made_up import build\n"
    (workshop.directory / "cached.py").write_text(lines)
    plain = make_job(workshop, WorkerRole.TRY, Case(id="cached/a", model="cached", factory="cached:build"))
    job = replace(plain, request=replace(plain.request, caches={name: plain.environment[name]}))
    for started in (job, pool.open([job])[0]):
        result = run_worker(started)
        assert isinstance(result, WorkerResult), result
        assert (result.failure, result.stage) == (None, Stage.DONE)
        assert result.warnings == (Fact(code=Code.CACHES_HELD, names=name_words(variables=name)),)


def test_a_module_that_cannot_be_imported_is_not_forked(workshop: Workshop, pool: ServerPool) -> None:
    """The worker itself reports the error."""
    missing = Case(id="missing/a", model="missing", factory="missing_module:build")
    (opened,) = pool.open([make_job(workshop, WorkerRole.COLD, missing)])
    assert opened.why_not
    assert opened.why_not.code is Code.IMPORT_FAILED
    (message,) = opened.why_not.names["exception"]
    assert message.endswith("there is no module 'missing_module'")  # and no class of ours


def test_an_arm_with_its_own_copy_of_a_library_is_forked_from_a_root_of_its_own(
    open_workshop: OpenWorkshop, tmp_path: Path
) -> None:
    """What torch's imports may find in that arm's directory alone is not what the other's found."""
    without, copied = (replace(open_workshop(name), threads=2) for name in ("without", "copied"))
    (copied.directory / "mpmath").mkdir()
    (copied.directory / "mpmath" / "__init__.py").write_text("")
    plain = Case(id="layers/plain", model="layers", factory="made_up:build")
    with closing(ServerPool()) as pool:
        for workshop, roots in ((without, 1), (copied, 2)):
            job = make_job(workshop, WorkerRole.TRY, plain)
            job = replace(job, environment={**job.environment, "TMPDIR": str(tmp_path)})
            result = run_worker(pool.open([job])[0])
            assert isinstance(result, WorkerResult), result
            assert (result.failure, result.stage, len(pool._roots)) == (None, Stage.DONE, roots)
