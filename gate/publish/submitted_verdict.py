"""A run of CI, and its artifact, which anybody could have written: one member, a few sizes, strict JSON.

The archive is never extracted. What comes out is a decoded record and nothing is shown of it here;
what of a record may be shown at all is :mod:`gate.publish.trusted`'s business.
"""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gate.errors import FileError
from gate.files.codec import VERDICT, NewerFileError
from gate.files.untrusted import MAX_INTEGER
from gate.records import OF_WHOLE_CASE, Verdict

WORKFLOWS = ".github"  # what runs the gate is as much of a rule as what it judges by
MERGE_GROUP = "merge_group"
SCHEDULE = "schedule"
PULL_REQUEST_EVENTS = frozenset({"pull_request", "pull_request_target"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CiRun:
    """One run of a workflow, as the API tells it."""

    id: int
    attempt: int
    event: str  # what started it: "pull_request", "merge_group", "schedule"
    conclusion: str  # "success", "failure", "cancelled", ...; "" while it is running
    head_sha: str
    head_branch: str
    head_owner: str  # "" where the head's repository is gone
    head_repository: int  # id; 0 where it is gone
    repository: int  # id
    started: str  # ISO 8601, UTC: when this attempt began
    created: str = ""  # when the first one did, with the event that all of them are for
    url: str
    path: str = ""  # of the workflow's file: ".github/workflows/gate.yml"

    @property
    def is_of_pull_request(self) -> bool:
        """Whether a pull request started it."""
        return self.event in PULL_REQUEST_EVENTS

    @property
    def decides_merging(self) -> bool:
        """Whether what it measured is what is to be merged: of a pull request, or of a merge queue."""
        return self.is_of_pull_request or self.event == MERGE_GROUP


MAX_MEMBERS = 1000
_CENTRAL_HEADER = b"PK\x01\x02"  # begins every entry of a zip's directory
_ENCRYPTED = 0x1
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression or a version that this Python lacks
    RuntimeError,
    OSError,
    ValueError,
    OverflowError,
    MemoryError,  # zlib asked for a window that a broken stream claims to need
)


def read_member(archive: bytes, name: str, limit_bytes: int) -> bytes:
    """Read the member ``name`` of at most ``limit_bytes``.

    Raises:
        RefusedError: It is not there once, is no regular file, or is too large or broken.
    """
    if archive.count(_CENTRAL_HEADER) > MAX_MEMBERS:
        raise RefusedError(Refusal.TOO_LARGE)  # before zipfile makes an object of each
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            member = _find_member(opened, name, limit_bytes)
            with opened.open(member) as stream:
                content = stream.read(limit_bytes + 1)
    except _UNREADABLE:
        raise RefusedError(Refusal.NOT_AN_ARCHIVE) from None
    if len(content) > limit_bytes:
        raise RefusedError(Refusal.TOO_LARGE)
    return content


def _find_member(archive: zipfile.ZipFile, name: str, limit_bytes: int) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if member.filename == name]
    if len(members) != 1:
        raise RefusedError(Refusal.NO_MEMBER)
    member = members[0]
    kind = stat.S_IFMT(member.external_attr >> 16)  # 0 where the archive was not made on Unix
    if kind not in (0, stat.S_IFREG) or member.flag_bits & _ENCRYPTED:
        raise RefusedError(Refusal.NO_MEMBER)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedError(Refusal.NOT_AN_ARCHIVE)
    if member.file_size > limit_bytes:
        raise RefusedError(Refusal.TOO_LARGE)
    return member


VERDICT_MEMBER = "verdict.json"
# A case takes 10 to 18 kB of a verdict: this is 2,700 of the largest. Reading so many takes four seconds and
# 400 MiB.
MAX_MEMBER_BYTES = 48 * 1024 * 1024
_LARGEST = float(MAX_INTEGER)  # of any number that is shown: as a text it stays short


class Refusal(StrEnum):
    """Why there is no verdict; the value is the sentence that is shown."""

    NO_ARTIFACT = "the run left no artifact with a result"
    EXPIRED = "the artifact with the result has expired"
    OLD_ATTEMPT = "this attempt of the run left no artifact; the one that exists is of an earlier attempt"
    TOO_LARGE = "the artifact is larger than any result of compile-gate"
    NOT_AN_ARCHIVE = "the artifact is not a usable zip archive"
    NO_MEMBER = (
        "the artifact does not hold exactly one regular file with the result (verdict.json or run.json)"
    )
    NOT_A_VERDICT = "the artifact's verdict is not one that this compile-gate writes"
    SKIPPED = "all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured"
    OTHER_BASE = (
        "the pull request got another base branch after the run began, so another change was measured"
    )
    NOT_FETCHED = "the result of the run could not be fetched from GitHub"
    NEWER = "the verdict was written by a newer compile-gate than the workflow that publishes it uses"


# What to do about it where that is not to look at the run.
NEXT_STEPS: Mapping[Refusal, str] = {
    Refusal.SKIPPED: (
        "A condition (`if:`) of the gate's workflow skipped it. Where that is meant, such as for a draft,"
        " let it run before this is merged. Otherwise take the condition out of the workflow: this change"
        " itself may have brought it."
    ),
    Refusal.OTHER_BASE: (
        "Push a commit, which may be an empty one, so that the change is measured against the new base."
    ),
    Refusal.TOO_LARGE: (
        "The check itself counts; its report is in its summary. To see its verdict here, let a pull request"
        " measure fewer cases: up to some 2,700 are published (`select` in gate.yml). If it measures"
        " fewer, look at what this change does to the workflow that uploads the artifact."
    ),
    Refusal.NOT_FETCHED: (
        "The check itself counts. To see its verdict here, run the workflow that comments on this run again."
    ),
    Refusal.NEWER: (
        "The check itself counts. To see verdicts here again, merge the new version of compile-gate into"
        " the workflow that comments, on the default branch, first."
    ),
}


class RefusedError(Exception):
    """There is no verdict to be had."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


def parse_archive(archive: bytes) -> Verdict:
    """Parse the archive that an artifact is downloaded as: strictly, and its parts against each other.

    Raises:
        RefusedError: It holds no verdict that can be used.
    """
    content = read_member(archive, VERDICT_MEMBER, MAX_MEMBER_BYTES)
    try:
        verdict = VERDICT.decode(content, VERDICT_MEMBER)
    except NewerFileError:
        raise RefusedError(Refusal.NEWER) from None
    except FileError:
        raise RefusedError(Refusal.NOT_A_VERDICT) from None
    _check_consistency(verdict)
    return verdict


def _check_consistency(verdict: Verdict) -> None:
    planned = {case.id for case in verdict.cases}
    # A case that failed in one trial, or lacks some, has a row of its own beside those of what was measured.
    rows = [(one.case_id, one.metric, one.reason in OF_WHOLE_CASE) for one in verdict.comparisons]
    named = {case_id for case_id, _, _ in rows}
    named |= {one.case_id for one in verdict.failures} | {one.case_id for one in verdict.causes}
    sound = (
        len(planned) == len(verdict.cases)
        and named <= planned
        and len(set(rows)) == len(rows)
        and verdict.tally.disturbed_trials <= verdict.tally.trials
        and verdict.tally.disturbed_pairs <= verdict.tally.pairs
        and verdict.overhead_s >= 0
        and all(abs(number) <= _LARGEST for number in _list_numbers(verdict))
    )
    if not sound:
        raise RefusedError(Refusal.NOT_A_VERDICT)


def _list_numbers(verdict: Verdict) -> Iterator[float]:
    """All numbers that may be shown, but for whole ones: the decoder bounds those."""
    yield from (verdict.wall_s, verdict.toolchain_s, verdict.overhead_s)
    yield from (verdict.machine.canary, verdict.machine.suite)
    facts = [*(one.fact for one in verdict.causes), *(one.fact for one in verdict.failures)]
    for one in verdict.comparisons:
        facts += one.remarks
        for estimate in filter(None, (one.baseline, one.candidate)):
            parts = (estimate.centre, estimate.low, estimate.high, estimate.noise)
            yield from (part for part in parts if part is not None)
        if one.change:
            yield from (one.change.centre, one.change.low, one.change.high, one.change.detectable)
        if one.threshold:
            yield from (one.threshold.relative, one.threshold.absolute)
    for fact in facts:
        yield from fact.numbers.values()
