"""What a run of CI submits: the bounds of an archive, of a verdict, and of a run to record."""

import zipfile
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hostile_archives import make_with
from records import CASES, make_archive, make_failing, make_passing, make_zip
from records import RUN as CI_RUN
from refreshes import make_run

from gate.errors import FileError, UsageError
from gate.files.invalid import MAX_INTEGER
from gate.publish import submitted
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.publish.submitted import (
    Refusal,
    RefusedError,
    check_measured_run,
    parse_archive,
    parse_run,
    read_member,
    record_run,
)
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Baseline
from gate.records.shown import ShownCause
from gate.records.verdict import MachineShift, Tally
from gate.store.baselines import encode_baseline
from tests.make import make_failure

MIB = 1024 * 1024
RUN = make_run("a" * 40)


@pytest.mark.parametrize(("count", "is_read"), [(1000, True), (1001, False)])
def test_an_archive_of_more_than_1000_members_is_refused(count: int, is_read: bool) -> None:
    """What zipfile would make of each is never made."""
    archive = make_zip({"run.json": b"{}"} | {f"{index}.txt": b"" for index in range(count - 1)})

    if is_read:
        assert read_member(archive, "run.json", 2) == b"{}"
    else:
        with pytest.raises(RefusedError, match=Refusal.TOO_LARGE):
            read_member(archive, "run.json", 2)


@pytest.mark.parametrize("is_deflated", [True, False])
def test_a_member_of_exactly_the_limit_is_read(is_deflated: bool) -> None:
    """With one byte less room it is too large, compressed or not."""
    archive = make_with(b"12345", zipfile.ZIP_DEFLATED if is_deflated else zipfile.ZIP_STORED)

    assert read_member(archive, SHOWN_FILE, 5) == b"12345"
    with pytest.raises(RefusedError, match=Refusal.TOO_LARGE):
        read_member(archive, SHOWN_FILE, 4)


@pytest.mark.parametrize(
    ("size", "refusal"), [(36 * MIB, Refusal.NOT_A_VERDICT), (36 * MIB + 1, Refusal.TOO_LARGE)]
)
def test_a_verdict_of_more_than_36_mib_is_not_read(size: int, refusal: Refusal) -> None:
    """One byte less is read, and judged by what it holds."""
    with pytest.raises(RefusedError) as caught:
        parse_archive(make_with(b" " * size))
    assert caught.value.refusal is refusal


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            b'{"schema": "compile-gate/run/99"}',
            "run.json was written by a newer compile-gate than this job's",
        ),
        (b" " * 32 * MIB, "run.json is no run that this compile-gate reads"),
        (b" " * (32 * MIB + 1), Refusal.TOO_LARGE),
    ],
    ids=["newer", "as large as is read", "too large"],
)
def test_a_run_that_is_newer_or_larger_than_is_read_is_refused(content: bytes, what: str) -> None:
    """Each refusal has a sentence of its own; a run of 32 MiB is still read."""
    with pytest.raises(UsageError) as caught:
        parse_run(make_zip({"run.json": content}))
    assert caught.value.what == what


def test_a_verdict_that_took_no_time_of_the_gate_is_one() -> None:
    """Its seconds may be none, and not less."""
    verdict = replace(make_passing(), overhead_s=0.0)
    assert parse_archive(make_archive(verdict)).overhead_s == 0.0
    with pytest.raises(RefusedError, match=Refusal.NOT_A_VERDICT):
        parse_archive(make_archive(replace(verdict, overhead_s=-1e-9)))


def test_a_file_of_the_largest_size_is_read() -> None:
    """One byte more is refused, by its header already."""
    assert read_member(make_zip({"x": b"1234"}), "x", 4) == b"1234"
    with pytest.raises(RefusedError, match=Refusal.TOO_LARGE):
        read_member(make_zip({"x": b"12345"}), "x", 4)


@pytest.mark.parametrize(("count", "is_refused"), [(0, True), (1, False), (1000, False), (1001, True)])
def test_a_refresh_is_of_one_to_a_thousand_cases(count: int, is_refused: bool) -> None:
    """Each case is a file, and what is stored is read one by one."""
    run = make_run("c" * 40, cases=tuple(f"m/{index}" for index in range(count)))

    with pytest.raises(UsageError, match="none or more than 1000") if is_refused else nullcontext():
        check_measured_run(run, "c" * 40, run.cases)


@pytest.mark.parametrize(("room", "is_refused"), [(0, False), (-1, True)])
def test_a_baseline_that_would_be_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch, room: int, is_refused: bool
) -> None:
    """The largest case decides; one that just fits is recorded."""
    run = make_run("c" * 40, cases=("m/short", "m/" + "long" * 20))
    recorded = record_run(run, run.provenance)
    sizes = [len(encode_baseline(baseline)) for baseline in recorded]
    assert min(sizes) + 1 < max(sizes)

    monkeypatch.setattr(submitted, "MAX_BASELINE_BYTES", max(sizes) + room)
    with pytest.raises(UsageError, match="larger file than a baseline") if is_refused else nullcontext():
        assert record_run(run, run.provenance) == recorded


@pytest.mark.parametrize("count", [6, 7])
@pytest.mark.parametrize("is_changed", [True, False], ids=["defined otherwise", "not fit"])
def test_six_cases_are_named_in_a_refusal(count: int, is_changed: bool) -> None:
    """The rest is counted."""
    names = [f"m/{index}" for index in range(count)]
    run = make_run("a" * 40, cases=tuple(names))
    registered = tuple(replace(case, definition="other") for case in run.cases) if is_changed else run.cases
    words = names if is_changed else [f"{name} (0 of 3 trials)" for name in names]

    with pytest.raises(UsageError) as refused:
        check_measured_run(replace(run, trials=()), "a" * 40, registered)

    rest = " and 1 more" if count == 7 else ""
    assert refused.value.what.partition(": ")[2] == ", ".join(words[:6]) + rest


@pytest.mark.parametrize(
    ("commit", "dirty", "is_refused"),
    [("a" * 40, False, False), ("a" * 40, True, True), ("b" * 40, False, True)],
)
def test_a_run_must_have_measured_the_commit_as_it_is(commit: str, dirty: bool, is_refused: bool) -> None:
    """Changes that are not committed may be anything, as another commit may."""
    run = replace(RUN, provenance=replace(RUN.provenance, commit=commit, dirty=dirty))

    with pytest.raises(UsageError, match="did not measure the commit") if is_refused else nullcontext():
        check_measured_run(run, "a" * 40, run.cases)


@pytest.mark.parametrize(
    ("event", "is_of_pull_request", "decides_merging"),
    [
        ("pull_request", True, True),
        ("pull_request_target", True, True),
        ("merge_group", False, True),
        ("schedule", False, False),
        ("push", False, False),
    ],
)
def test_pull_requests_and_merge_groups_decide_about_merging(
    event: str, is_of_pull_request: bool, decides_merging: bool
) -> None:
    """A run by any other event is of what is merged already."""
    run = replace(CI_RUN, event=event)

    assert (run.is_of_pull_request, run.decides_merging) == (is_of_pull_request, decides_merging)


def test_a_baseline_that_could_not_be_read_again_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is checked as what is read."""
    checked: list[str] = []

    def check(baseline: Baseline, source: str) -> None:
        checked.append(baseline.case_id)
        raise FileError(source, "", "is broken", "Mend it.")

    monkeypatch.setattr(submitted, "check_baseline", check)

    with pytest.raises(UsageError, match="numbers that no measurement gives"):
        record_run(RUN, RUN.provenance)
    assert checked == [RUN.cases[0].id]


VERDICT = make_shown(make_failing())
CAUSE = ShownCause(case_id="gone/test", fact=Fact(code=Code.RECOMPILED, numbers={"count": 1}))
FAILURE = replace(
    make_shown(make_failing(failures=(make_failure(CASES[0].id),))).failures[0], case_id="gone/test"
)


@pytest.mark.parametrize(
    ("changes", "is_sound"),
    [
        ({}, True),
        ({"cases": (*VERDICT.cases, VERDICT.cases[0])}, False),
        ({"cases": VERDICT.cases[1:]}, False),
        ({"causes": (CAUSE,)}, False),
        ({"failures": (FAILURE,)}, False),
        ({"causes": (replace(CAUSE, case_id=CASES[0].id),)}, True),
        ({"comparisons": (*VERDICT.comparisons, VERDICT.comparisons[0])}, False),
        ({"tally": Tally(trials=3, disturbed_trials=3, pairs=2, disturbed_pairs=2)}, True),
        ({"tally": Tally(trials=3, disturbed_trials=4)}, False),
        ({"tally": Tally(pairs=3, disturbed_pairs=4)}, False),
        ({"overhead_s": 0.0}, True),
        ({"overhead_s": -0.1}, False),
        ({"wall_s": float(MAX_INTEGER)}, True),
        ({"wall_s": float(MAX_INTEGER) * 2}, False),
        ({"machine": MachineShift(canary=-float(MAX_INTEGER) * 2)}, False),
    ],
)
def test_a_verdict_that_contradicts_itself_is_refused(changes: dict[str, Any], is_sound: bool) -> None:
    """It names planned cases, each row once, and no number that would be long as a text."""
    verdict = replace(VERDICT, **changes)

    with nullcontext() if is_sound else pytest.raises(RefusedError, match=Refusal.NOT_A_VERDICT):
        submitted._check_consistency(verdict)


@pytest.mark.parametrize(
    ("rows", "is_sound"),
    [((0.0,), True), ((float(MAX_INTEGER) * 2,), False), ((0.0, float(MAX_INTEGER) * 2), False)],
)
def test_a_number_anywhere_in_a_row_is_bounded(rows: tuple[float, ...], is_sound: bool) -> None:
    """In its remarks, too, and not only in the first row."""
    facts = [Fact(code=Code.TRIALS_CAME, numbers={"came": number}) for number in rows]
    pairs = zip(VERDICT.comparisons, facts, strict=False)
    comparisons = tuple(replace(row, remarks=(fact,)) for row, fact in pairs)
    verdict = replace(VERDICT, comparisons=comparisons)

    with nullcontext() if is_sound else pytest.raises(RefusedError, match=Refusal.NOT_A_VERDICT):
        submitted._check_consistency(verdict)


@pytest.mark.parametrize(
    ("changes", "registered", "what"),
    [
        ({"finished": False}, RUN.cases, "the run was stopped before its end"),
        ({}, (), "1 of the run's 1 cases is none that the registry of aaaaaaaaaaaa makes"),
        (
            {"failures": (make_failure(RUN.cases[0].id, stage="compile"),)},
            RUN.cases,
            f"not fit to be recorded: {RUN.cases[0].id} (failed in compile)",
        ),
        (
            {"failures": (make_failure(RUN.cases[0].id, stage="evil"),)},
            RUN.cases,
            f"not fit to be recorded: {RUN.cases[0].id} (failed in an unknown stage)",
        ),
    ],
)
def test_a_measured_run_that_does_not_fit_is_refused_in_our_words(
    changes: dict[str, Any], registered: tuple[Case, ...], what: str
) -> None:
    """A stage is named where it is one of ours."""
    with pytest.raises(UsageError) as refused:
        check_measured_run(replace(RUN, **changes), "a" * 40, registered)

    assert refused.value.what == what
