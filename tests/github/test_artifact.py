"""Artifacts that anybody could have written are refused, or stripped of everything unknown."""

import json
import time
import tracemalloc
from dataclasses import replace

import pytest
from fake.faults import Fault
from fake.server import FakeGitHub
from hostile_archives import ARCHIVES, HONEST, INJECTED, make_edited, put
from hypothesis import given, settings
from hypothesis import strategies as st
from records import (
    CASES,
    GREEN,
    RUN,
    SHA,
    make_archive,
    make_base,
    make_failing,
    make_passing,
    make_regressed,
    make_unchanged,
    make_verdict,
    make_zip,
)

from gate.errors import UsageError
from gate.files.codec import SHOWN
from gate.files.invalid import MAX_INTEGER
from gate.github.client import GitHubClient
from gate.github.finding import MAX_VERDICT_ARCHIVE_BYTES, fetch_run, fetch_verdict, get_artifact
from gate.github.transport import GitHubError
from gate.publish import results, submitted
from gate.publish.body import make_marker, render_body
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.publish.submitted import CiRun, Refusal, RefusedError, parse_archive, parse_run
from gate.publish.trusted import make_trusted_verdict
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import CaseFailure, FailureKind
from gate.records.shown import UNKNOWN_STAGE, Shown
from gate.records.verdict import Cause, Reason, Status, Tally, Verdict
from gate.report.words.facts import describe_failure
from tests.make import make_failure

MIB = 1024 * 1024


RUN_REFUSALS = {
    *Refusal,
    "shown.json was written by a newer compile-gate than this job's",
    "shown.json is no run that this compile-gate reads",
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_corpus(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every archive of the corpus is refused, within 5 seconds of the processor and 200 MiB.

    Read as a verdict and as a run, the refusal is one of our own sentences: nothing of it is in a log.
    """
    archive = ARCHIVES[name]()
    assert len(archive) <= MAX_VERDICT_ARCHIVE_BYTES
    started = time.process_time()
    with pytest.raises(RefusedError) as refused:
        parse_archive(archive)
    assert time.process_time() - started < 5.0  # it takes about one
    tracemalloc.start()  # which makes it many times slower
    with pytest.raises(RefusedError):
        parse_archive(archive)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * MIB
    assert refused.value.args == (refused.value.refusal.value,)
    monkeypatch.setattr(submitted, "RUN_MEMBER", SHOWN_FILE)
    with pytest.raises(UsageError) as no_run:
        parse_run(archive)
    assert no_run.value.what in RUN_REFUSALS


@pytest.mark.parametrize("name", INJECTED)
def test_a_record_with_a_text_of_its_own_is_refused(name: str) -> None:
    """A case, a line, a commit and an enumeration are checked alike."""
    with pytest.raises(RefusedError):
        parse_archive(INJECTED[name]())


@pytest.mark.parametrize("verdict", [HONEST, make_failing(), make_verdict()])
def test_nothing_of_whoever_measured_is_written_down(verdict: Verdict) -> None:
    """The measuring job's verdict has no sentence, path or name of the measured code."""
    written = SHOWN.encode(make_shown(verdict))

    assert not any(word in written for word in ("whoever measured", "Mallory", "AMD", "print"))


def test_a_line_of_the_measured_code_is_kept_without_its_words() -> None:
    """Of a graph break its place, which has the form of one."""
    names = {"location": ("net/model.py:9",), "reason": ("whoever measured",)}
    cause = Cause(case_id=CASES[0].id, fact=Fact(code=Code.GRAPH_BREAK, names=names))
    (shown,) = make_shown(replace(make_failing(), causes=(cause,))).causes
    assert shown.fact.names == {"location": ("net/model.py:9",)}


def test_honest() -> None:
    """A verdict of the gate is read as it was written."""
    disturbed = Tally(trials=3, disturbed_trials=3, pairs=2, disturbed_pairs=2)
    at_bounds = make_passing(overhead_s=0.0, wall_s=float(MAX_INTEGER), tally=disturbed)
    for verdict in (make_passing(), make_failing(), make_verdict(), at_bounds):
        assert parse_archive(make_archive(verdict)) == make_shown(verdict)


def test_case_that_failed_keeps_what_it_measured() -> None:
    """A case that failed in its second trial has a FAILED row and the first trial's rows."""
    rows = make_unchanged(CASES[0])
    latency = next(row for row in rows if row.metric is Metric.COMPILED_LATENCY)
    failed = replace(latency, status=Status.FAILED, reason=Reason.CASE_FAILED, change=None)
    verdict = make_verdict(failed, *rows, *make_unchanged(CASES[1]), *make_unchanged(CASES[2]))
    assert parse_archive(make_archive(verdict)) == make_shown(verdict)
    doubled = replace(verdict, comparisons=(*verdict.comparisons, latency))
    with pytest.raises(RefusedError, match=Refusal.NOT_A_VERDICT):
        parse_archive(make_archive(doubled))


@pytest.mark.parametrize(("stage", "shown"), [("compile", "compile"), ("../evil @all", UNKNOWN_STAGE)])
def test_only_a_stage_of_a_worker_is_shown_of_a_failure(stage: str, shown: str) -> None:
    """Whoever measured may have written another."""
    verdict = replace(make_failing(), failures=(make_failure(CASES[0].id, stage=stage),))
    (failure,) = parse_archive(make_archive(verdict)).failures
    assert failure.stage == shown


@given(content=st.binary(max_size=2000))
def test_any_bytes(content: bytes) -> None:
    """No bytes crash the reader, as an archive or as a member of one."""
    for archive in (content, make_zip({SHOWN_FILE: content})):
        with pytest.raises(RefusedError):
            parse_archive(archive)


_HONEST = make_archive(make_failing())


@settings(max_examples=300)
@given(at=st.integers(0, len(_HONEST) - 1), byte=st.integers(0, 255))
def test_any_changed_byte(at: int, byte: int) -> None:
    """A changed byte leads to a refusal, or to the same verdict where it does not matter."""
    archive = bytearray(_HONEST)
    archive[at] = byte
    try:
        verdict = parse_archive(bytes(archive))
    except RefusedError:
        return
    assert verdict == make_shown(make_failing())


@given(
    path=st.sampled_from(
        ["comparisons.0.candidate.centre", "comparisons.0.change.low", "machine.canary", "wall_s"]
    ),
    number=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63) + 1, 2**63 - 1),
)
def test_any_number(path: str, number: float) -> None:
    """A verdict with any numbers is refused or becomes a comment within bounds."""
    try:
        verdict = parse_archive(make_edited(put(path, number)))
    except RefusedError:
        return
    body = render_body(make_marker("default", RUN), results.make_finding(verdict, make_base(), RUN))
    assert len(body) < 20_000


@given(names=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=3, unique=True))
def test_any_case_ids(names: list[str]) -> None:
    """Cases that the base commit does not know are counted and never named."""
    cases = tuple(Case(id=f"zz-{name}", model=name) for name in names)
    rows = (row for case in cases for row in make_regressed(case))
    try:
        verdict = parse_archive(make_archive(make_verdict(*rows, cases=cases)))
    except (RefusedError, UnicodeEncodeError):
        return
    body = render_body(make_marker("default", RUN), results.make_finding(verdict, make_base(), RUN))
    assert "zz-" not in body
    assert "REGRESSION" in body


def test_definition_of_a_known_case_is_the_base_s() -> None:
    """A known id with another factory is shown with the base commit's definition."""
    cases = (replace(CASES[0], factory="evil:run", tags=("evil",)), *CASES[1:])
    verdict = results.make_finding(make_shown(make_failing(cases=cases)), make_base(), RUN).verdict
    assert verdict is not None
    assert verdict.cases == CASES


def fetch(client: GitHubClient, run: CiRun = RUN) -> Shown:
    return fetch_verdict(client, run, get_artifact(client, RUN.id, "compile-gate"))


def test_fetch(github: FakeGitHub) -> None:
    """Of several artifacts of one name the newest is read, in three requests."""
    github.state.add_run(RUN.id, SHA)
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_passing()))
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_failing()))
    github.state.add_artifact(RUN.id, "other", b"x")
    assert fetch(github.client) == make_shown(make_failing())
    assert len(github.requests) == 3


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": "other"}, Refusal.NO_ARTIFACT),
        ({"expired": True}, Refusal.EXPIRED),
        ({"created_at": "2026-10-31T00:00:00Z"}, Refusal.OLD_ATTEMPT),
        ({"size_in_bytes": 16 * MIB + 1}, Refusal.TOO_LARGE),
    ],
)
def test_refused_unread(github: FakeGitHub, fields: dict[str, object], refusal: Refusal) -> None:
    """A missing, expired, earlier or too large artifact is not downloaded."""
    github.state.add_run(RUN.id, SHA)
    artifact = github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_passing()))
    artifact |= fields
    github.state.artifacts[artifact["id"]] = artifact
    with pytest.raises(RefusedError) as caught:
        fetch(github.client)
    assert caught.value.refusal is refusal
    assert len(github.requests) == 1


def test_finding_takes_an_artifact_of_16_mebibytes(github: FakeGitHub) -> None:
    """Logs and reports may lie next to the verdict."""
    github.state.add_run(RUN.id, SHA)
    artifact = github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_passing()))
    artifact["size_in_bytes"] = 16 * MIB
    assert fetch(github.client) == make_shown(make_passing())


@pytest.mark.parametrize(
    ("fields", "is_there"),
    [({}, True), ({"id": "5"}, False), ({"size_in_bytes": None}, False), ({"name": "other"}, False)],
)
def test_finding_an_artifact_needs_its_name_id_and_size(
    github: FakeGitHub, fields: dict[str, object], is_there: bool
) -> None:
    """One that GitHub does not describe is none."""
    github.state.add_run(RUN.id, SHA)
    made = github.state.add_artifact(RUN.id, "compile-gate", b"x")
    body = json.dumps({"total_count": 1, "artifacts": [made | fields]}).encode()
    github.fail("GET", "/artifacts$", Fault(status=200, body=body))
    if is_there:
        artifact = get_artifact(github.client, RUN.id, "compile-gate")
        assert (artifact.id, artifact.size_bytes, artifact.is_expired) == (made["id"], 1, False)
        return
    with pytest.raises(RefusedError) as caught:
        get_artifact(github.client, RUN.id, "compile-gate")
    assert caught.value.refusal is Refusal.NO_ARTIFACT


@pytest.mark.parametrize("size", [16 * MIB, 16 * MIB + 1])
def test_finding_fetches_a_run_of_16_mebibytes(github: FakeGitHub, size: int) -> None:
    """A larger archive is not read, and one that holds no run is an error of the job's."""
    github.state.add_run(RUN.id, SHA)
    github.state.add_artifact(RUN.id, "compile-gate-run", b"x" * size)
    error = UsageError if size == 16 * MIB else GitHubError
    with pytest.raises(error):
        fetch_run(github.client, RUN.id, "compile-gate-run")
    with pytest.raises(UsageError, match="there is no artifact other in run 100"):
        fetch_run(github.client, RUN.id, "other")


def test_earlier_artifact_of_success(github: FakeGitHub) -> None:
    """When only other jobs were run again and all succeeded, the gate's earlier artifact holds."""
    github.state.add_run(RUN.id, SHA)
    artifact = github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_passing()))
    artifact["created_at"] = "2026-10-31T00:00:00Z"
    assert fetch(github.client, GREEN) == make_shown(make_passing())


def test_a_failure_is_described_by_code_numbers_and_the_gates_own_words() -> None:
    """A process's role is one of ours; any other text is the measured side's."""
    case = CASES[0]
    ours = Fact(
        code=Code.NO_RESULT, numbers={"status": -11}, names={"role": ("warm",), "shortage": ("INJECTED",)}
    )
    foreign = Fact(code=Code.NO_END, numbers={"wall_s": 400, "cpu_s": 300}, names={"role": ("INJECTED",)})
    quoted = Fact(code=Code.RAISED, names={"message": ("INJECTED",)})
    failures = tuple(
        CaseFailure(
            case_id=case.id,
            trial=1,
            arm=arm,
            kind=FailureKind.ERROR,
            stage="INJECTED",
            fact=fact,
            log="INJECTED",
        )
        for fact, arm in ((ours, "base"), (foreign, "head"), (quoted, "INJECTED"))
    )
    record = make_shown(make_passing(failures=failures))
    shown = make_trusted_verdict(record, make_base(), RUN).failures
    assert [describe_failure(failure) for failure in shown] == [
        "ended with SIGSEGV, it left no result in the warm process",
        "did not end in 300.0 CPU seconds (400 s by the clock)",
        "an exception; see the run's log",
    ]
    assert [failure.arm for failure in shown] == ["base", "head", "head"]
    assert "INJECTED" not in str(shown)
