"""The job whose verdict an artifact holds: the one that was uploading when it was created."""

from dataclasses import replace

import pytest

from gate.github.run_jobs import RunJob, choose_conclusion, name_lost

MOMENT = "2026-11-01T12:10:00Z"


def make_job(name: str, conclusion: str, span: str = "00-20", upload: str = "", attempt: int = 1) -> RunJob:
    """A job with its minutes, and those of its upload; the artifact is of minute ten."""
    began, ended = (f"2026-11-01T12:{minute}:00Z" for minute in span.split("-"))
    first, last = ([f"2026-11-01T12:{minute}:00Z" for minute in upload.split("-")]) if upload else ("", "")
    return RunJob(
        name=name,
        attempt=attempt,
        began=began,
        ended=ended,
        conclusion=conclusion,
        uploads={0: (first, last)} if upload else {},
    )


A, B = make_job("a", "success", upload="10-11"), make_job("b", "failure", upload="14-15")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([A, B], "success"),  # side by side, and a was uploading
        ([A, make_job("lint", "failure")], "success"),
        ([make_job("a", "success", "05-10"), make_job("b", "failure", "11-20")], "success"),
        ([make_job("a", "success", "10-20"), make_job("b", "failure", "00-09")], "success"),
        ([replace(A, conclusion="failure"), B], "failure"),  # died after it uploaded
        ([replace(A, conclusion="cancelled"), replace(B, conclusion="success")], "cancelled"),
        ([A, make_job("a", "failure", "30-40", attempt=2)], "failure"),  # ran again, and left nothing
        ([A, make_job("a", "skipped", "30-30", attempt=2)], "skipped"),
        ([A, make_job("b", "failure", "30-40", attempt=2)], "success"),  # what succeeded is not run again
        ([make_job("a", "success"), make_job("b", "success")], "success"),  # whichever it was
        ([make_job("a", "success"), make_job("b", "failure")], ""),
        ([make_job("a", "success", "11-20")], ""),
        ([], ""),
    ],
)
def test_the_job_that_left_the_artifact_is_found(jobs: list[RunJob], expected: str) -> None:
    """If it is ambiguous no job is named, and the run's conclusion decides."""
    assert choose_conclusion(jobs, MOMENT) == expected


def test_a_job_uploads_each_of_several_artifacts() -> None:
    """Whichever of them its step made, both ends included; without an upload it made none."""
    moments = [f"2026-11-01T12:{minute}:00Z" for minute in ("09", "10", "12")]
    assert A.find_uploads(moments) == {0}
    assert A.find_uploads(moments[2:]) == A.find_uploads([]) == set()
    assert A.find_uploads(["2026-11-01T12:11:00Z"]) == {0}


GPU_A = make_job("check (gpu-a)", "failure", upload="04-06")
GPU_B, GPU_C = (make_job(f"check (gpu-{name})", "success", upload="10-11") for name in "bc")
LINT = make_job("lint", "success", upload="05-05")
WITH_LOG = replace(GPU_B, uploads={0: GPU_B.uploads[0], 1: LINT.uploads[0]})


@pytest.mark.parametrize(
    ("jobs", "others", "expected"),
    [
        ([GPU_A, GPU_B], [], ["check (gpu-a)"]),  # written over
        ([GPU_A, GPU_B], ["05"], []),  # it has one of another name
        ([GPU_A, GPU_B, LINT], ["05"], ["check (gpu-a)"]),  # that one is lint's
        ([GPU_A, GPU_B, LINT], ["05", "05"], []),  # one is lint's, one its own
        (
            [GPU_A, replace(GPU_B, uploads={0: GPU_B.uploads[0], 1: LINT.uploads[0]})],
            ["05"],
            ["check (gpu-a)"],
        ),
        ([replace(GPU_A, uploads=GPU_B.uploads), GPU_B, GPU_C], ["10", "10"], []),  # all in one minute
        ([replace(GPU_A, uploads=GPU_B.uploads), GPU_B, GPU_C], ["10"], ["check (gpu-a)"]),
        ([replace(GPU_A, conclusion=""), GPU_B], [], []),  # it has not ended
    ],
)
def test_a_job_that_left_nothing_is_lost(jobs: list[RunJob], others: list[str], expected: list[str]) -> None:
    """An artifact of its upload's time counts as its own only if no other job accounts for it."""
    assert list(name_lost(jobs, MOMENT, [f"2026-11-01T12:{minute}:00Z" for minute in others])) == expected
