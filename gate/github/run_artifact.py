"""The run that a refresh left as an artifact: one member, bounded, strict; nothing is extracted."""

from __future__ import annotations

from gate.codec import RUN, NewerFileError, decode_file
from gate.errors import FileError
from gate.github.archive import ArchiveError, read_member
from gate.github.client import GitHubClient
from gate.github.context import JobContext, find_text, find_value
from gate.github.measured_run import RunRefusedError
from gate.records import Run

MEMBER = "run.json"
# A trial is about 3 kB: this is 10,000 of them, which is more than a refresh of 1,000 cases takes.
MAX_RUN_BYTES = 32 * 1024 * 1024
MAX_ARCHIVE_BYTES = 16 * 1024 * 1024  # it is compressed to about a tenth
_FIX = "Measure again, and upload nothing but run.json under that name."


def fetch_run(client: GitHubClient, context: JobContext, run_id: int, name: str) -> Run:
    """Fetch the ``run.json`` that a workflow run left in the artifact ``name``.

    Raises:
        RunRefusedError: There is none, or none that can be used.
        GitHubError: The API or the storage does not answer.
    """
    path = f"{context.path}/actions/runs/{run_id}/artifacts"
    found = [
        item
        for item in client.paginate(path, {"name": name}, key="artifacts")
        if find_text(item, "name") == name and find_value(item, "expired") is False
    ]
    ids = [number for item in found if isinstance(number := item.get("id"), int)]
    if not ids:
        what = f"there is no artifact {name} in run {run_id}"
        raise RunRefusedError(what, "Look at the job that measured.")
    archive = client.download(f"{context.path}/actions/artifacts/{max(ids)}/zip", MAX_ARCHIVE_BYTES)
    return parse_run(read_run_member(archive))


def read_run_member(archive: bytes) -> bytes:
    """Read ``run.json`` from a zip archive within bounds, extracting nothing.

    Raises:
        RunRefusedError: It is not there once, is no regular file, or is too large or broken.
    """
    try:
        return read_member(archive, MEMBER, MAX_RUN_BYTES)
    except ArchiveError as error:
        raise RunRefusedError(f"the artifact {error.fault.value}: {MEMBER}", _FIX) from None


def parse_run(content: bytes, name: str = MEMBER) -> Run:
    """Parse a ``run.json`` that measured code may have written; errors call it by ``name``.

    Raises:
        RunRefusedError: It is none; what is wrong with it is not told, since it would be its own words.
    """
    try:
        return decode_file(RUN, Run, content, MEMBER)
    except NewerFileError:
        what = f"{name} was written by a newer compile-gate than this job's"
        raise RunRefusedError(what, "Use one version in all jobs of gate-refresh.yml.") from None
    except FileError:
        raise RunRefusedError(f"{name} is no run that this compile-gate reads", _FIX) from None
