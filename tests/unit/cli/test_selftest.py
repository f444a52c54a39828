"""``selftest`` from end to end with the real lab and the real decision; only the workers are actors."""

import json
import os
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gate.cli import main
from gate.errors import ExitCode, MachineError, UsageError
from gate.files.codec import RUN
from gate.records.cases import Case, Mode, Task
from gate.records.run import Pairing
from gate.records.studies import FaultKind
from gate.selftest.attempts import Attempts
from gate.selftest.catalog import (
    Fault,
    FaultSize,
    Opinion,
    Result,
    choose_attempted,
    list_faults,
    schedule_faults,
)
from gate.selftest.scores import Attempt
from tests.unit.cli.conftest import stage

CASE_ID = "actor/inference-float32-smoke-default"
CONFIG = """\
version: 1
reference_models: false
sampling: {{super_blocks: 3}}
models:
  - name: actor
    factory: {factory}
    arguments: {{blind: {blind}}}
    cases: [{{tags: [smoke], expected_s: 1}}]
"""
Attempted = Mapping[str, Mapping[str, str]]  # what selftest.xml says of each test
RunSelftest = Callable[..., tuple[int, Attempted]]


def read_attempts(path: Path) -> Attempted:
    """The properties of each test, with pytest's result."""
    attempts = {}
    for test in ET.parse(path).getroot().iter("testcase"):  # noqa: S314 - ours
        properties = {entry.attrib["name"]: entry.attrib["value"] for entry in test.iter("property")}
        ends = [child.tag for child in test if child.tag != "properties"]
        name = test.get("name", "").removeprefix("test_fault[").removesuffix("]")  # "": it did not end
        attempts[name] = {**properties, "pytest": "".join(ends) or "passed"}
    return attempts


@pytest.fixture
def run_selftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSelftest:
    """Run the command in a project whose workers are actors, with a lock and scratch of its own."""
    (tmp_path / "project").mkdir()
    stage(tmp_path / "project", monkeypatch)

    def run(
        *options: str, blind: tuple[str, ...] = (), factory: str = "actor:build", config: str = CONFIG
    ) -> tuple[int, Attempted]:
        text = config.format(blind=json.dumps(blind), factory=factory)
        Path("gate.yml").write_text(text, encoding="utf-8")
        code = main(["selftest", "-q", *options])
        path = Path("out/selftest.xml")
        return code, read_attempts(path) if path.exists() else {}

    return run


def name_attempt(fault: str) -> str:
    """Name the first attempt at a fault, as pytest does."""
    return f"{fault}-{CASE_ID}-1"


def test_gate_that_sees_everything_passes(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """All planted faults are caught, no harmless change is red, and the evidence is kept."""
    code, attempts = run_selftest("--repeats", "1")
    assert [name_attempt(fault.name) for fault in list_faults("cpu")] == list(attempts)
    harmless = {name_attempt("nothing"), name_attempt("eager_faster-20%")}
    assert {"quiet"} == {attempts[name]["result"] for name in harmless}
    asked = [
        attempt
        for name, attempt in attempts.items()
        if attempt["is_asked"] == "True" and name not in harmless
    ]
    assert {("caught", "passed")} == {(attempt["result"], attempt["pytest"]) for attempt in asked}
    assert (ExitCode.PASS, "False") == (code, attempts[name_attempt("memory-2%")]["is_asked"])
    assert float(attempts[name_attempt("slowdown-30%")]["planted"]) == pytest.approx(0.30, abs=0.01)
    run = RUN.load(Path("out/selftest/slowdown-10%-1/run.json"))
    assert {Pairing.LIVE} == {trial.pairing for trial in run.trials}
    assert run.base is not None
    assert ["nothing", "slowdown"] == [case.arguments["fault"] for case in (*run.base.cases, *run.cases)]
    output = capsys.readouterr().out
    line = attempts[name_attempt("slowdown-30%")]["said"]
    assert line.startswith(f"caught        slowdown-30% in {CASE_ID}: compiled_latency +")
    assert f"{line}\n" in output
    assert "PASSED  19 of 19 faults and harmless changes tried in 19 attempts\n" in output


def test_gate_that_is_blind_fails(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """Missed faults are exit 10, and the report names them and no others."""
    code, attempts = run_selftest("--quick", blind=("memory", "hang", "low_precision"))
    failed = {name for name, attempt in attempts.items() if attempt["pytest"] == "failure"}
    assert (ExitCode.REGRESSION, {*map(name_attempt, ("memory-10%", "hang", "low_precision"))}) == (
        code,
        failed,
    )
    assert attempts[name_attempt("memory-2%")]["pytest"] == "skipped"  # less than the threshold
    output = capsys.readouterr().out
    assert "hang: 1 of 1 were missed\n" in output
    assert "FAILED  3 of 13 were not handled as they should be\n" in output


def test_time_that_is_up(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """Without time only the base is measured: untried faults are named, exit 12."""
    code, attempts = run_selftest("--minutes", "0.0001")
    assert (ExitCode.INCOMPLETE, {}) == (code, attempts)
    output = capsys.readouterr().out
    assert "0 of 19 faults and harmless changes tried; raise --minutes for vanished, crash, " in output


def test_what_needs_no_statistics_comes_before_all_pairs(
    run_selftest: RunSelftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair that cannot end in time is not begun; a crash or a graph break is still tried."""
    real = Attempts.estimate_s
    monkeypatch.setattr(
        Attempts,
        "estimate_s",
        lambda session, fault, case: real(session, fault, case) if fault.is_certain else 1e9,
    )
    code, attempts = run_selftest("--minutes", "9")
    certain = {name_attempt(fault.name) for fault in list_faults("cpu") if fault.is_certain}
    assert (ExitCode.INCOMPLETE, certain) == (code, set(attempts))


def catch(session: Attempts, fault: Fault, case: Case, number: int) -> Attempt:
    del session, number
    result = Result.QUIET if fault.is_harmless else Result.CAUGHT
    return Attempt(fault=fault, case_id=case.id, size=FaultSize(), opinion=Opinion(result=result))


def test_time_is_for_round_after_round(
    run_selftest: RunSelftest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --repeats pairs are tried as often as seconds allow: three times in 4.8 s."""
    monkeypatch.setattr(Attempts, "try_fault", catch)
    monkeypatch.setattr(Attempts, "estimate_s", lambda *_: 0.0)
    code, attempts = run_selftest("--faults", "slowdown-30%", "--minutes", "0.08")
    rounds = [f"{fault}-{CASE_ID}-{number}" for number in (1, 2, 3) for fault in ("nothing", "slowdown-30%")]
    assert (ExitCode.PASS, rounds) == (code, list(attempts))
    assert "2 of 2 faults and harmless changes tried in 6 attempts" in capsys.readouterr().out


def test_a_fault_that_stays_open_is_no_pass(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """A 5 % slowdown missed in its only attempt may be chance: no failure, but exit 12."""
    code, attempts = run_selftest("--faults", "slowdown-5%", "--repeats", "1", blind=("slowdown",))
    assert (ExitCode.INCOMPLETE, "missed") == (code, attempts[name_attempt("slowdown-5%")]["result"])
    output = capsys.readouterr().out
    assert "never caught, which may be chance: slowdown-5%; raise --minutes or --repeats" in output


def test_case_that_cannot_be_measured(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that is broken without any fault is exit 2, and no report."""
    assert run_selftest(factory="actor:it_is_gone") == (ExitCode.USAGE, {})
    assert "the factory does not exist" in capsys.readouterr().err


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def fail() -> None:
    """Fail as on a full disk."""
    raise MachineError("the disk is full", "Free some space.")


@pytest.mark.parametrize(("end", "code"), [(interrupt, ExitCode.INTERRUPTED), (fail, ExitCode.MACHINE)])
def test_what_ends_an_attempt_ends_the_command(
    run_selftest: RunSelftest, monkeypatch: pytest.MonkeyPatch, end: Callable[[], None], code: ExitCode
) -> None:
    """It is no result of the fault: the exit code is its own; earlier attempts are in the report."""
    real = Attempts.try_fault

    def try_fault(session: Attempts, fault: Fault, case: Case, number: int) -> object:
        if fault.kind is FaultKind.CRASH:
            end()
        return real(session, fault, case, number)

    monkeypatch.setattr(Attempts, "try_fault", try_fault)
    ended, attempts = run_selftest("--faults", "vanished,crash")
    assert (code, "caught") == (ended, attempts[name_attempt("vanished")]["result"])
    assert "result" not in attempts.get(name_attempt("crash"), {})


def test_nothing_of_the_projects_own_pytest_is_used(
    run_selftest: RunSelftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project's conftest.py, settings and variables are for its tests; the variables come back."""
    Path("conftest.py").write_text("raise RuntimeError\n", encoding="utf-8")
    Path("pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    code, _ = run_selftest("--faults", "vanished", "--repeats", "1")
    assert (ExitCode.PASS, "--no-such-option") == (code, os.environ["PYTEST_ADDOPTS"])


def make_case(name: str, *, expected_s: float = 1.0, **changes: object) -> Case:
    """Make a case that fits every fault."""
    fields: dict[str, object] = {"factory": "m:f", "expected_s": expected_s, **changes}
    return Case(id=f"{name}/x", model=name, **fields)  # type: ignore[arg-type] # the fields of a Case


def test_cheapest_case_is_the_default() -> None:
    """Without named cases; those that cannot have a fault are left out."""
    slow, fast = make_case("slow", expected_s=9.0), make_case("fast")
    graphs = make_case("graphs", expected_s=0.1, mode=Mode.REDUCE_OVERHEAD)
    assert (fast,) == choose_attempted((slow, graphs, fast), named=False)
    assert (fast, slow) == choose_attempted((slow, graphs, fast), named=True)
    with pytest.raises(UsageError, match="no selected case can carry a fault"):
        choose_attempted((graphs,), named=True)


def list_scheduled(
    faults: tuple[Fault, ...], cases: tuple[Case, ...], repeats: int
) -> list[tuple[FaultKind, str, int]]:
    scheduled = schedule_faults(faults, cases, repeats)
    return [(fault.kind, case.model, number) for fault, case, number in scheduled]


def test_cases_take_turns() -> None:
    """Faults without statistics come first, once; then each round moves to the next case."""
    faults = tuple(
        fault
        for fault in list_faults("cpu")
        if fault.kind in {FaultKind.CRASH, FaultKind.HANG, FaultKind.NOTHING}
        or (fault.kind, fault.size) == (FaultKind.SLOWDOWN, 0.30)
    )
    scheduled = list_scheduled(faults, (make_case("a"), make_case("b")), 2)
    assert [
        (FaultKind.CRASH, "a", 1),
        (FaultKind.HANG, "b", 1),
        (FaultKind.NOTHING, "a", 1),
        (FaultKind.SLOWDOWN, "a", 1),
        (FaultKind.NOTHING, "b", 2),
        (FaultKind.SLOWDOWN, "b", 2),
    ] == scheduled


def test_fault_that_fits_no_case_is_left_out() -> None:
    """Memory is not planted into a training step."""
    memory = tuple(fault for fault in list_faults("cpu") if fault.kind is FaultKind.MEMORY)
    assert all(fault.is_certain for fault in memory)
    assert [] == list_scheduled(memory, (make_case("a", task=Task.TRAINING),), 1)


def test_a_named_fault_that_fits_no_case_is_refused(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """More memory cannot be planted into training: trying nothing would be a PASS."""
    training = CONFIG.replace("tags: [smoke]", "task: training, tags: [smoke]")
    assert run_selftest("--faults", "memory-10%", config=training) == (ExitCode.USAGE, {})
    assert "no fault that fits the cases is called 'memory-10%'" in capsys.readouterr().err
