"""Priming finds the environment, and names what the machine lacks with its fix."""

from dataclasses import replace
from typing import Any

import pytest

from gate.errors import MachineError
from gate.lab.trials.availability import try_imports
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import open_bench, prime_bench
from gate.lab.workers.server_pool import ServerPool
from gate.measure.failures import make_worker_failure
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import FailureKind
from gate.report.words.facts import advise_unprimed

from .conftest import make_case


def test_sends_the_environment(bench: Bench) -> None:
    """A primer that works returns the environment, and fills its cache."""
    environment = prime_bench(bench)
    assert (environment.torch, environment.cpu) == ("2.13.0", "acting")
    assert (bench.primer_cache / "inductor" / "prime.txt").is_file()


def test_a_target_is_compiled_for_where_no_gpu_is_looked_for(bench: Bench) -> None:
    """Its name has no device number."""
    with open_bench(bench.arm, replace(bench.settings, device="cuda:sm_90")) as opened:
        assert opened.gpu is None


def test_failure_is_the_machines_fault(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A primer without torch is a MachineError of two lines that names the interpreter."""
    monkeypatch.setenv("ACTING_PRIME", "no_torch")
    with pytest.raises(MachineError) as caught:
        prime_bench(bench)
    what = "torch.compile does not work here on cpu, at stage import: ModuleNotFoundError: "
    assert what + "No module named 'torch'" == caught.value.what
    assert f"Install torch for {bench.arm.python}." == caught.value.fix


def test_unknown_failure_leads_to_the_log(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unknown crash the error names the log, which exists."""
    monkeypatch.setenv("ACTING_PRIME", "segfault")
    with pytest.raises(MachineError, match="ended with SIGSEGV") as caught:
        prime_bench(bench)
    log = bench.settings.out / "logs" / "prime" / "0-prime.log"
    assert f"Read {log}, then try `compile-gate doctor`." == caught.value.fix
    assert log.is_file()


def test_primer_that_hangs_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A primer has a worker's time limit, and the error names its key."""
    monkeypatch.setenv("ACTING_PRIME", "hang")
    message = r"^warming up used 0\.\d CPU seconds in \d s in .*, and none at the end, on cpu, at stage "
    with pytest.raises(MachineError, match=message) as caught:
        prime_bench(replace(bench, settings=replace(bench.settings, trial_timeout_s=0.5)))
    assert "trial_timeout_s" in caught.value.fix


def test_what_the_primer_itself_advises_is_the_fix() -> None:
    """For a target and a torch built for CUDA, no log and no doctor names the package."""
    install = "Install a CPU build beside it."
    for cause, fix in (
        (None, install),
        (OSError("no space"), "Read prime.log, then try `compile-gate doctor`."),
    ):
        error = MachineError("this torch is built for CUDA", install)
        error.__cause__ = cause
        failure = make_worker_failure(error)
        assert advise_unprimed(FailureKind.ERROR, failure, "prime.log") == fix


@pytest.mark.parametrize(
    ("why_not", "workers"),
    [
        (Fact(code=Code.SERVER_SILENT, numbers={"wall_s": 400.0, "cpu_s": 300.0}), "forked"),
        (Fact(code=Code.SERVER_GONE), "forked"),
        (Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher")), ""),
        (Fact(code=Code.ENDS_UNANNOUNCED), ""),
    ],
)
def test_a_slow_server_names_no_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, why_not: Fact, workers: str
) -> None:
    """The primer runs by itself if the server is slow or nothing can be forked."""
    monkeypatch.setattr(
        ServerPool, "open", lambda _, jobs, *__: tuple(replace(j, why_not=why_not) for j in jobs)
    )
    assert prime_bench(bench).workers == workers


def test_the_check_of_imports_waits_for_its_server_as_all_others_do(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its short limit is its worker's alone; a slow server would be lost for the primer too."""
    waited: list[float] = []

    def open_slowly(_pool: ServerPool, jobs: Any, *_later: Any) -> Any:
        waited.extend(job.limit_s for job in jobs)
        return jobs

    monkeypatch.setattr(ServerPool, "open", open_slowly)
    monkeypatch.setattr("gate.lab.trials.availability.IMPORT_LIMIT_S", 0.0)
    assert try_imports(bench, [replace(make_case(), factory="actor:error")]) == ()
    assert waited == [bench.settings.trial_timeout_s]
