"""``selftest`` from end to end with the real lab and the real decision; only the workers are actors."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.cli import main
from gate.errors import ExitCode, UsageError
from gate.files.codec import RUN, SELFTEST
from gate.records.cases import Case, Mode, Task
from gate.records.run import Pairing
from gate.records.studies import Fault, FaultKind, FaultScore, Result, SelftestReport
from gate.selftest import command as selftest_module
from gate.selftest.catalog import Agenda, choose_attempted, list_faults, schedule_faults
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

RunSelftest = Callable[..., tuple[int, SelftestReport | None]]


@pytest.fixture
def run_selftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSelftest:
    """Run the command in a project whose workers are actors, with a lock and scratch of its own."""
    (tmp_path / "project").mkdir()
    stage(tmp_path / "project", monkeypatch)

    def run(
        *options: str, blind: tuple[str, ...] = (), factory: str = "actor:build", config: str = CONFIG
    ) -> tuple[int, SelftestReport | None]:
        text = config.format(blind=json.dumps(blind), factory=factory)
        Path("gate.yml").write_text(text, encoding="utf-8")
        code = main(["selftest", "-q", *options])
        path = Path("out/selftest.json")
        return code, SELFTEST.load(path) if path.exists() else None

    return run


def find_score(report: SelftestReport, kind: FaultKind, size: float = 0.0) -> FaultScore:
    """Find the score of one fault."""
    (found,) = [score for score in report.scores if (score.kind, score.size) == (kind, size)]
    return found


def test_gate_that_sees_everything_passes(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that is asked for is caught, what is harmless is not red, and the evidence is kept."""
    code, report = run_selftest("--repeats", "1")
    assert report is not None
    assert [] == [(score.kind, score.size, score.complaint) for score in report.scores if score.complaint]
    assert (ExitCode.PASS, ()) == (code, report.untried)
    asked = [score for score in report.scores if score.is_asked and score.demand.catch]
    assert {1} == {score.caught for score in asked}
    harmless = [attempt.result for attempt in report.attempts if attempt.kind is FaultKind.EAGER_FASTER]
    assert [Result.QUIET] == harmless
    assert not find_score(report, FaultKind.MEMORY, 0.02).is_asked
    (slowdown,) = [attempt for attempt in report.attempts if attempt.size == 0.30]
    assert (CASE_ID, pytest.approx(0.30, abs=0.01)) == (slowdown.case_id, slowdown.planted)
    assert slowdown.comparison is not None
    assert slowdown.comparison.change is not None
    assert slowdown.comparison.change.centre == pytest.approx(0.30, abs=0.02)
    run = RUN.load(Path("out/selftest/slowdown-10%-1/run.json"))
    assert {Pairing.LIVE} == {trial.pairing for trial in run.trials}
    assert run.base is not None
    assert ["nothing", "slowdown"] == [case.arguments["fault"] for case in (*run.base.cases, *run.cases)]
    assert "PASSED" in capsys.readouterr().out


def test_gate_that_is_blind_fails(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """Faults that do not show are missed: exit 10, and the report names them and no others."""
    blind = ("memory", "hang", "low_precision")
    code, report = run_selftest("--quick", blind=blind)
    assert report is not None
    complained = {score.kind.value for score in report.scores if score.complaint}
    assert (ExitCode.REGRESSION, set(blind)) == (code, complained)
    assert "hang: 1 of 1 were missed" in capsys.readouterr().out


def test_time_that_is_up(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """With no time to speak of only the base is measured: the first line says so, exit 12.

    Eleven faults need no statistics; five slowdowns and a longer compile do.
    """
    code, report = run_selftest("--minutes", "0.0001")
    assert report is not None
    assert (ExitCode.INCOMPLETE, ()) == (code, report.attempts)
    assert "compiled slower 10 %" in report.untried
    told = capsys.readouterr().out
    assert told.startswith("INCOMPLETE  0 of 17 faults tried\n")
    assert "Not tried: vanished factory" in told
    assert told.endswith("exit 12: 0 of 17 faults tried; raise --minutes or --repeats.\n")


def test_what_needs_no_statistics_comes_before_all_pairs(
    run_selftest: RunSelftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair that cannot end in time is not begun: a crash or a graph break is tried still."""
    real = selftest_module.estimate_attempt_s
    monkeypatch.setattr(
        selftest_module,
        "estimate_attempt_s",
        lambda fault, subject: real(fault, subject) if fault.is_certain else 1e9,
    )
    code, report = run_selftest("--minutes", "9")
    assert report is not None
    tried = [attempt.kind for attempt in report.attempts]
    assert code == ExitCode.INCOMPLETE
    assert {FaultKind.CRASH, FaultKind.NOT_A_NUMBER, FaultKind.GRAPH_BREAK, FaultKind.MEMORY} <= set(tried)
    assert FaultKind.NOTHING not in tried


def test_a_fault_that_stays_open_is_no_pass(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slowdown of 5 % that is missed in its only attempt may be chance: not told as a failure, exit 12."""
    code, report = run_selftest("--faults", "slowdown-5%", "--repeats", "1", blind=("slowdown",))
    assert report is not None
    score = find_score(report, FaultKind.SLOWDOWN, 0.05)
    assert (code, score.complaint, score.caught) == (ExitCode.INCOMPLETE, None, 0)
    told = capsys.readouterr().out
    assert told.startswith("INCONCLUSIVE  inconclusive for 1 fault that must be caught\n")
    last = "exit 12: inconclusive for 1 fault that must be caught; raise --minutes or --repeats.\n"
    assert told.endswith(last)


def test_case_that_cannot_be_measured(run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that is broken without any fault is the user's to fix: exit 2, and no report."""
    code, _ = run_selftest(factory="actor:it_is_gone")
    assert code == ExitCode.USAGE
    assert "the factory does not exist" in capsys.readouterr().err
    assert not Path("out/selftest.json").exists()


def make_case(name: str, *, expected_s: float = 1.0, **changes: object) -> Case:
    """Make a case that fits every fault."""
    fields: dict[str, object] = {"factory": "m:f", "expected_s": expected_s, **changes}
    return Case(id=f"{name}/x", model=name, **fields)  # type: ignore[arg-type] # the fields of a Case


def test_cheapest_case_is_the_default() -> None:
    """Unless cases are named; those that cannot carry a fault are left out."""
    slow, fast = make_case("slow", expected_s=9.0), make_case("fast")
    graphs = make_case("graphs", expected_s=0.1, mode=Mode.REDUCE_OVERHEAD)
    assert (fast,) == choose_attempted((slow, graphs, fast), named=False)
    assert (fast, slow) == choose_attempted((slow, graphs, fast), named=True)
    with pytest.raises(UsageError, match="no selected case can carry a fault"):
        choose_attempted((graphs,), named=True)


def list_scheduled(
    faults: tuple[Fault, ...], cases: tuple[Case, ...], repeats: int
) -> list[tuple[FaultKind, str, int]]:
    """Schedule faults on cases."""
    agenda = Agenda(faults=faults, cases=cases, repeats=repeats, limit_s=1.0)
    return [(fault.kind, case.model, number) for fault, case, number in schedule_faults(agenda)]


def test_cases_take_turns() -> None:
    """What needs no statistics comes first, once; then round after round, each on the next case."""
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


def test_help_tells_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    """The options of the contract are there."""
    assert main(["selftest", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(option in told for option in ("--minutes", "--repeats", "--quick", "--select"))


def test_a_named_fault_that_fits_no_case_is_refused(
    run_selftest: RunSelftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """More memory cannot be planted into training: to try nothing would be a PASS."""
    training = CONFIG.replace("tags: [smoke]", "task: training, tags: [smoke]")
    code, report = run_selftest("--faults", "memory-10%", config=training)
    assert (code, report) == (ExitCode.USAGE, None)
    assert "no fault that fits the cases is called 'memory-10%'" in capsys.readouterr().err
