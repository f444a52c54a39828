"""Whose verdict a run left: by the job that was uploading when the artifact was made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gate.github.run_jobs import RunJob, choose_conclusion, list_lost

MOMENT = "2026-11-01T12:10:00Z"


def make_job(name: str, conclusion: str, span: str = "00-20", upload: str = "", attempt: int = 1) -> RunJob:
    """A job with its minutes, and those of its upload; the moment is the tenth."""
    began, ended = (f"2026-11-01T12:{minute}:00Z" for minute in span.split("-"))
    uploads = [tuple(f"2026-11-01T12:{minute}:00Z" for minute in upload.split("-"))] if upload else []
    return RunJob(
        name=name,
        attempt=attempt,
        began=began,
        ended=ended,
        conclusion=conclusion,
        uploads=tuple((one, other) for one, other in uploads),
    )


A, B = make_job("a", "success", upload="10-11"), make_job("b", "failure", upload="14-15")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([A, B], "success"),  # side by side, and a was uploading
        ([A, make_job("lint", "failure")], "success"),
        ([make_job("a", "success", "05-10"), make_job("b", "failure", "11-20")], "success"),
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
    """Not the run's conclusion, and where nobody can tell none: then the run's is all there is."""
    assert choose_conclusion(jobs, MOMENT) == expected


GPU_A = make_job("check (gpu-a)", "failure", upload="04-05")
GPU_B = make_job("check (gpu-b)", "success", upload="10-11")


@pytest.mark.parametrize(
    ("other", "made", "expected"),
    [
        (GPU_A, "", ["check (gpu-a)"]),  # its artifact was written over
        (GPU_A, "05", []),  # it left one of another name
        (replace(GPU_A, uploads=()), "", ["check (gpu-a)"]),  # it died before its upload
        (replace(GPU_A, conclusion="cancelled"), "", ["check (gpu-a)"]),
        (replace(GPU_A, name="gate on a"), "", ["gate on a"]),  # the workflow names its jobs
        (replace(GPU_A, conclusion="success"), "", []),
        (replace(GPU_A, conclusion="skipped"), "", []),
        (make_job("lint", "failure"), "", []),  # it leaves no result, whatever becomes of it
    ],
)
def test_a_failed_job_without_a_result_of_its_own_is_found(
    other: RunJob, made: str, expected: list[str]
) -> None:
    """Its neighbour in the matrix left the artifact, or another job that uploads."""
    times = [f"2026-11-01T12:{made}:00Z"] if made else []
    assert [job.name for job in list_lost([other, GPU_B], MOMENT, times)] == expected


def test_a_job_that_failed_and_passed_again_is_not_lost() -> None:
    """Of its attempts the last one counts."""
    again = make_job("check (gpu-a)", "success", "06-09", upload="08-09", attempt=2)
    assert list_lost([GPU_A, again, GPU_B], MOMENT, ()) == []
