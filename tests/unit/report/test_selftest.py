"""The report of selftest, and its file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gate.files.codec import SELFTEST
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Provenance
from gate.records.studies import Attempt, Fault, FaultKind, Result, SelftestReport
from gate.records.verdict import Change, Reason, Status
from gate.report.studies import describe_attempt, render_selftest
from gate.selftest.catalog import list_faults, score_faults
from tests.faults import find_fault
from tests.golden_files import check_golden
from tests.hosts import CPU_HOST
from tests.make import make_row

CASE = "stencil/inference-float32-smoke-default"
FAULTS = list_faults("cpu")
ROW = make_row(
    CASE,
    Metric.COMPILED_LATENCY,
    Status.INCONCLUSIVE,
    reason=Reason.UNSETTLED,
    change=Change(centre=0.011, low=-0.02, high=0.04, detectable=0.03),
)


def write_told(kind: str) -> Fact:
    """Make what is said of a failure of this kind that was not told of."""
    return Fact(code=Code.FAILURE_UNTOLD, names=name_words(kind=kind))


def make_attempts(fault: Fault, results: Sequence[Result], planted: float = 0.0) -> list[Attempt]:
    """Make attempts of one fault."""
    row = ROW if fault.metric is Metric.COMPILED_LATENCY else None
    return [
        Attempt(
            kind=fault.kind,
            size=fault.size,
            case_id=CASE,
            result=result,
            planted=planted or fault.size,
            is_asked=fault.size != 0.02,
            fact=None if row else write_told("hang"),
            comparison=row,
            wall_s=41.0,
        )
        for result in results
    ]


def make_report(attempts: Sequence[Attempt], untried: tuple[str, ...] = ()) -> SelftestReport:
    """Make a report with the scores of these attempts."""
    return SelftestReport(
        environment=CPU_HOST,
        provenance=Provenance(commit="1a2b3c4"),
        case_ids=(CASE,),
        attempts=tuple(attempts),
        scores=score_faults(FAULTS, attempts),
        untried=untried,
        wall_s=612.0,
    )


GOOD = [
    *make_attempts(find_fault(FaultKind.CRASH), [Result.CAUGHT]),
    *make_attempts(find_fault(FaultKind.GRAPH_BREAK), [Result.CAUGHT]),
    *make_attempts(find_fault(FaultKind.MEMORY, 0.02), [Result.MISSED]),
    *make_attempts(find_fault(FaultKind.MEMORY, 0.10), [Result.CAUGHT], 0.375),
    *make_attempts(find_fault(FaultKind.NOTHING), [Result.QUIET, Result.INCONCLUSIVE]),
    *make_attempts(find_fault(FaultKind.SLOWDOWN, 0.30), [Result.CAUGHT] * 3),
    *make_attempts(find_fault(FaultKind.SLOWDOWN, 0.05), [Result.CAUGHT, Result.INCONCLUSIVE]),
    *make_attempts(find_fault(FaultKind.EAGER_FASTER, 0.20), [Result.QUIET]),
]
BAD = [
    *GOOD,
    *make_attempts(find_fault(FaultKind.SLOWDOWN, 0.10), [Result.CAUGHT, Result.MISSED]),
    *make_attempts(find_fault(FaultKind.LOST_CACHE), [Result.BROKEN]),
    *make_attempts(find_fault(FaultKind.EAGER_FASTER, 0.20), [Result.FALSE_ALARM]),
]
OPEN = [*GOOD, *make_attempts(find_fault(FaultKind.SLOWDOWN, 0.10), [Result.INCONCLUSIVE])]


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("open", make_report(OPEN)),
        ("passed", make_report(GOOD)),
        (
            "incomplete",
            make_report(GOOD, untried=("compiled slower 10 %", "lost cache hit", "nothing (A/A)")),
        ),
        ("failed", make_report(BAD)),
    ],
)
def test_text(name: str, report: SelftestReport) -> None:
    """The report is what the golden file holds."""
    check_golden(f"selftest/{name}.txt", render_selftest(report))


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """``selftest.json`` carries its schema and comes back as the same record."""
    report, path = make_report(BAD), tmp_path / "selftest.json"
    SELFTEST.save(report, path)
    assert path.read_text(encoding="utf-8").startswith('{\n"schema": "compile-gate/selftest/1"')
    assert report == SELFTEST.load(path)


def test_attempt_in_a_line() -> None:
    """What was caught needs no reason; what was not says what the gate said."""
    (caught,) = make_attempts(find_fault(FaultKind.SLOWDOWN, 0.05), [Result.CAUGHT])
    told = f"compiled slower 5 % in {CASE}: caught, compiled_latency +1.1 %"
    assert told == describe_attempt(caught)
    missed = replace(
        caught, result=Result.MISSED, comparison=None, fact=write_told("it is\nunchanged\x1b[31m")
    )
    assert describe_attempt(missed).endswith("not caught (no failure of kind it is unchanged was reported)")
