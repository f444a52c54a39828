"""``python -m gate.worker.worker REQUEST.json``: one process that measures one thing, in pytest.

The exit status is 0 whenever the result file has what happened, failures included.
"""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gate.devices import is_target
from gate.errors import GateError
from gate.files.messages import load_plain
from gate.measure.checkout import check_source, set_search_path
from gate.measure.device.imitation import imitate_gpu
from gate.measure.failures import find_fix, make_worker_failure
from gate.measure.logbook import Logbook
from gate.programs import die_with_parent, end_process
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerRequest, WorkerRole
from gate.records.run import FailureKind
from gate.worker.imported import check_edits, check_imports, list_changed_imports, list_imported_packages

_BEGUN = time.perf_counter()
_SUITE = Path(__file__).resolve().parents[1] / "suite"

# What a registry model is shielded from: the project's pytest settings, conftests and plugins.
_ISOLATION = ("-c", str(_SUITE / "trial.ini"), "--rootdir", str(_SUITE), "--noconftest", "--assert=plain")
# pytest's default puts the directory of the package `gate`, most often site-packages, in front of
# sys.path, where it would shadow what PYTHONPATH names.
_IMPORT_MODE = ("--import-mode=importlib",)
# Captured output would be lost in a crash; the lab keeps what a worker prints.
_ALWAYS = ("-q", "--capture=no", "--tb=short")
# Settings of a project that cost time or leave files behind: these keys are pytest's own, so always known.
_QUIET = ("log_cli=false", "log_level=", "log_file=", "faulthandler_timeout=0")


def run_request(path: str, begun: float) -> None:
    """Carry out the request; ``begun`` is the ``time.perf_counter()`` of the process's start.

    Raises:
        FileError: The request is not one: nothing can be written then.
    """
    request = load_plain(WorkerRequest, Path(path))
    if request.parent:
        die_with_parent(request.parent)
    set_search_path(request)
    logbook = Logbook(Path(request.result), request.role, begun)
    if request.role == WorkerRole.PRIME:
        _prime(request, logbook)
    elif request.role == WorkerRole.IMPORT:
        _import_factories(request, logbook)
    else:
        _run_pytest(request, logbook)


def make_arguments(request: WorkerRequest, case: Case) -> list[str]:
    # Both make their stores even where nothing is saved: not in the project's directory.
    scratch = tempfile.gettempdir()
    arguments = [*_ALWAYS, f"--benchmark-storage=file://{scratch}"]
    if request.benchmark_json:
        arguments.append(f"--benchmark-json={request.benchmark_json}")
    if case.factory:
        return [
            *arguments,
            "-p",
            "no:cacheprovider",
            *_ISOLATION,
            *_IMPORT_MODE,
            str(_SUITE / "test_models.py"),
        ]
    settings = (*_QUIET, f"cache_dir={scratch}/pytest_cache")
    return [*arguments, *(f"--override-ini={setting}" for setting in settings), *case.pytest_args, case.node]


def _run_pytest(request: WorkerRequest, logbook: Logbook) -> None:
    case = request.case
    if case is None:
        raise ValueError(f"a {request.role} request needs a case")
    logbook.save()
    try:
        check_source(case.factory, request)
        if is_target(request.device):
            imitate_gpu(request.device)
    except GateError as error:
        logbook.enter(Stage.IMPORT)
        logbook.fail(error)
        return
    if case.factory:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of whatever else is installed
    import pytest  # noqa: PLC0415 - the primer needs none

    from gate.suite.trial_plugin import TrialPlugin  # noqa: PLC0415 - pytest

    plugin = TrialPlugin(request, case, logbook)
    try:
        status = int(pytest.main(make_arguments(request, case), plugins=[plugin]))
        ended = Fact(code=Code.PYTEST_ENDED, numbers={"status": status})
    except Exception as error:  # noqa: BLE001 - what another plugin raises at the end of the session
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        ended = Fact(code=Code.PYTEST_RAISED, names=name_words(message=message))
    _check_end(request, logbook, ended)


def _check_end(request: WorkerRequest, logbook: Logbook, ended: Fact) -> None:
    packages = list_imported_packages(request)
    logbook.record(changed_imports=list_changed_imports(request), packages=packages)
    if logbook.result.failure is None and logbook.result.stage != Stage.ENDED:
        logbook.record(failure=WorkerFailure(kind=FailureKind.ERROR, fact=ended))
    if logbook.result.failure is None:
        try:
            check_imports(request)
            check_edits(request)
            logbook.record(stage=Stage.DONE)
        except Exception as error:  # noqa: BLE001 - what was not looked at might be another checkout's
            logbook.fail(error)
    logbook.save()


def _import_factories(request: WorkerRequest, logbook: Logbook) -> None:
    logbook.enter(Stage.IMPORT)
    from gate.measure.workload.build import build_bare, build_workload, load_factory  # noqa: PLC0415 - torch

    def load(factory: str) -> None:
        check_source(factory, request)
        load_factory(factory)

    attempts: dict[str, Callable[[], object]] = {
        factory: partial(load, factory) for factory in request.factories
    }
    build: Callable[[Case], object] = build_bare if request.factories else build_workload
    attempts |= {case.id: partial(build, case) for case in request.builds}
    failures: dict[str, WorkerFailure] = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module does as it is imported
            traceback.print_exc()
            failures[name] = make_worker_failure(error)
    logbook.record(unimportable=failures)
    logbook.enter(Stage.DONE)


def _prime(request: WorkerRequest, logbook: Logbook) -> None:
    logbook.enter(Stage.IMPORT)
    try:
        if is_target(request.device):
            imitate_gpu(request.device)
        import torch  # noqa: PLC0415 - what is timed here

        from gate.measure.compile_options import keep_options  # noqa: PLC0415 - torch
        from gate.measure.device.choice import open_device  # noqa: PLC0415 - torch
        from gate.measure.environment import capture_environment  # noqa: PLC0415 - torch
        from gate.measure.toolchain import prime_toolchain  # noqa: PLC0415 - torch

        torch.set_num_threads(request.threads)
        logbook.enter(Stage.COMPILE)
        device = open_device(request.device)
        if request.warms_up:
            prime_toolchain(device)
            keep_options()
        logbook.leave()
        logbook.record(environment=capture_environment(device, request))
        logbook.enter(Stage.DONE)
    except Exception as error:  # noqa: BLE001 - all of it is what the primer is asked about
        traceback.print_exc()  # with every frame: what is shown leaves the gate's own out
        logbook.fail(error, find_fix(error))


if __name__ == "__main__":
    run_request(sys.argv[1], _BEGUN)
    end_process(0)
