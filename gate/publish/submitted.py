"""A run of CI, and its artifact, which anybody could have written: a verdict, or a run to make baselines of.

One member of it is read, of limited size, as strict JSON; the archive is never extracted. A refusal is a
fixed sentence: it may name cases of the registry, and nothing else.
"""

import io
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any

from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.disturbed import collect_head, note_disturbed, note_kept_disturbed
from gate.errors import FileError, UsageError
from gate.files.codec import RUN, SHOWN, NewerFileError
from gate.files.invalid import MAX_INTEGER
from gate.files.record_checks import check_baseline
from gate.publish.shown import SHOWN_FILE
from gate.records.cases import Case
from gate.records.facts import Fact
from gate.records.protocol import Stage
from gate.records.run import Baseline, Provenance, Run
from gate.records.shown import Shown
from gate.sizes import MIB
from gate.store.baselines import MAX_BASELINE_BYTES, encode_baseline, get_min_trials, list_unfit
from gate.units import join_some

WORKFLOWS = ".github"  # what runs the gate is as much of a rule as what it judges by
MERGE_GROUP = "merge_group"
SCHEDULE = "schedule"
PULL_REQUEST_EVENTS = frozenset({"pull_request", "pull_request_target"})
MAX_MEMBERS = 1000
_CENTRAL_HEADER = b"PK\x01\x02"  # begins every entry of a zip's directory
# A case takes up to 14 kB: this is 2,700 of the largest.
MAX_MEMBER_BYTES = 36 * MIB
_LARGEST = float(MAX_INTEGER)  # of any number that is shown: as a text it stays short
MAX_CASES = 1000  # of one refresh: each is a file, and what is stored is read one by one
_NAMED = 6  # cases named in a refusal; the rest is counted
_AGAIN = "Measure again, with the same compile-gate as this job's and nothing else in the artifact."
# This job runs the default branch's gate, and has its reference models.
_MERGE_FIRST = (
    "Where the branch brings another version of the gate or of its reference models, merge it first and"
    " refresh the default branch; else measure again."
)
_STAGES = frozenset(stage.value for stage in Stage)
RUN_MEMBER = "run.json"
# A trial is about 3 kB: this is 10,000 of them, which is more than a refresh of 1,000 cases takes.
MAX_RUN_BYTES = 32 * MIB
_FIX = "Measure again, and upload nothing but run.json under that name."


@dataclass(frozen=True, kw_only=True, slots=True)
class CiRun:
    """``lost_jobs`` failed and left no verdict of their own."""

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
    lost_jobs: tuple[str, ...] = ()
    failed_step: str = ""  # of an upgrade without a verdict

    @property
    def is_of_pull_request(self) -> bool:
        return self.event in PULL_REQUEST_EVENTS

    @property
    def decides_merging(self) -> bool:
        return self.is_of_pull_request or self.event == MERGE_GROUP


def read_member(archive: bytes, name: str, limit_bytes: int) -> bytes:
    """Read one file of a zip archive.

    Raises:
        RefusedError: It is not there once, is no regular file, or is too large or broken.
    """
    if archive.count(_CENTRAL_HEADER) > MAX_MEMBERS:
        raise RefusedError(Refusal.TOO_LARGE)  # before zipfile makes an object of each
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            member = _get_member(opened, name, limit_bytes)
            with opened.open(member) as stream:
                return stream.read(limit_bytes)
    except RefusedError:
        raise
    except Exception:  # noqa: BLE001 - zipfile and zlib raise a dozen kinds, MemoryError among them
        raise RefusedError(Refusal.NOT_AN_ARCHIVE) from None


def _get_member(archive: zipfile.ZipFile, name: str, limit_bytes: int) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if member.filename == name]
    if len(members) != 1:
        raise RefusedError(Refusal.NO_MEMBER)
    (member,) = members
    kind = stat.S_IFMT(member.external_attr >> 16)  # 0 where the archive was not made on Unix
    if kind not in (0, stat.S_IFREG):
        raise RefusedError(Refusal.NO_MEMBER)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedError(Refusal.NOT_AN_ARCHIVE)
    if member.file_size > limit_bytes:
        raise RefusedError(Refusal.TOO_LARGE)
    return member


class Refusal(StrEnum):
    """Why there is no verdict; the value is shown."""

    NO_ARTIFACT = "the run left no artifact with a result"
    EXPIRED = "the artifact with the result has expired"
    OLD_ATTEMPT = "this attempt of the run left no artifact; the one that exists is of an earlier attempt"
    TOO_LARGE = "the artifact is larger than any result of compile-gate"
    NOT_AN_ARCHIVE = "the artifact is not a usable zip archive"
    NO_MEMBER = "the artifact does not hold exactly one regular file with the result (shown.json or run.json)"
    NOT_A_VERDICT = "the artifact's verdict is not one that this compile-gate writes"
    SKIPPED = "all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured"
    OTHER_BASE = (
        "the pull request got another base branch after the run began, so another change was measured"
    )
    NOT_FETCHED = "the result of the run could not be fetched from GitHub"
    NEWER = "the verdict was written by a newer compile-gate than the workflow that publishes it uses"


class RefusedError(Exception):
    """There is no usable verdict."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


def parse_archive(archive: bytes) -> Shown:
    """Raises RefusedError where it holds no usable verdict."""
    content = read_member(archive, SHOWN_FILE, MAX_MEMBER_BYTES)
    try:
        verdict = SHOWN.decode(content, SHOWN_FILE)
    except NewerFileError:
        raise RefusedError(Refusal.NEWER) from None
    except FileError:
        raise RefusedError(Refusal.NOT_A_VERDICT) from None
    _check_consistency(verdict)
    return verdict


def _check_consistency(verdict: Shown) -> None:
    planned = set(verdict.cases)
    # A case that failed in one trial, or lacks some, has a row of its own, next to the measured ones.
    rows = [(row.case_id, row.metric, row.is_of_whole_case) for row in verdict.comparisons]
    named = {case_id for case_id, _, _ in rows}
    named |= {failure.case_id for failure in verdict.failures} | {cause.case_id for cause in verdict.causes}
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


def _list_numbers(part: Any) -> Iterator[float]:  # noqa: ANN401 -- any part of a record
    """The decoder bounds whole ones."""
    if isinstance(part, float):
        yield part
        return
    if is_dataclass(part):
        part = tuple(getattr(part, field.name) for field in fields(part))
    inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, tuple) else ()
    for value in inner:
        yield from _list_numbers(value)


def parse_run(archive: bytes) -> Run:
    """Parse the ``run.json`` of a zip archive that measured code may have written.

    Raises:
        UsageError: There is no usable one. Details are left out: they would be its own words.
    """
    try:
        return RUN.decode(read_member(archive, RUN_MEMBER, MAX_RUN_BYTES), RUN_MEMBER)
    except RefusedError as error:
        raise UsageError(error.refusal.value, _FIX) from None
    except NewerFileError:
        what = f"{RUN_MEMBER} was written by a newer compile-gate than this job's"
        raise UsageError(what, "Use one version in all jobs that refresh.") from None
    except FileError:
        raise UsageError(f"{RUN_MEMBER} is no run that this compile-gate reads", _FIX) from None


def check_measured_run(run: Run, head_sha: str, cases: Sequence[Case]) -> None:
    """Raises UsageError where the run does not fit the commit, or the ``cases`` of its registry."""
    if run.provenance.commit != head_sha or run.provenance.dirty:
        raise UsageError(
            "the run did not measure the commit that was authorised, or measured it with changes",
            "Check out the output head-sha of authorize-command in the job that measures.",
        )
    planned = {case.id: case.definition for case in run.cases}
    if not 0 < len(planned) <= MAX_CASES:
        raise UsageError(f"the run's cases are none or more than {MAX_CASES}", _AGAIN)
    registered = {case.id: case.definition for case in cases}
    unknown = len(planned.keys() - registered.keys())
    if unknown:
        many = f"{unknown} of the run's {len(planned)} cases {'is' if unknown == 1 else 'are'}"
        raise UsageError(f"{many} none that the registry of {head_sha[:12]} makes", _MERGE_FIRST)
    changed = [
        case_id for case_id in registered if planned.get(case_id, registered[case_id]) != registered[case_id]
    ]
    if changed:
        problem = f"the run defines cases differently than the registry of {head_sha[:12]}"
        raise UsageError(f"{problem}: {join_some(changed, _NAMED)}", _MERGE_FIRST)
    if not run.finished:
        raise UsageError("the run was stopped before its end", _AGAIN)
    if unfit := list_unfit(run, lambda stage: stage if stage in _STAGES else "an unknown stage"):
        raise UsageError(
            f"not fit to be recorded: {join_some([*unfit.values()], _NAMED)}",
            "Fix them or measure more trials; to record the others, leave these out with select=!CASE.",
        )


def record_run(run: Run, provenance: Provenance) -> tuple[Baseline, ...]:
    """Raises UsageError where no measurement gives its numbers."""
    try:
        baselines = make_baselines(run, provenance)
        for baseline in baselines:
            check_baseline(baseline, "")  # what was written could not be read again
        largest = max(map(len, map(encode_baseline, baselines)))  # NaN and infinity have no text
    except (ArithmeticError, ValueError, FileError):
        raise UsageError("the run holds numbers that no measurement gives", _AGAIN) from None
    if largest > MAX_BASELINE_BYTES:
        raise UsageError("a case of the run would make a larger file than a baseline may be", _AGAIN)
    return baselines


def note_machine(run: Run) -> tuple[Fact, ...]:
    """Without names, which are the run's own words."""
    kept = note_kept_disturbed(run, get_min_trials(run.environment.device_kind))
    return tuple(replace(note, names={}) for note in (*note_disturbed(collect_head(run)), *kept))
