"""Files, commits and branches through GitHub's Git data API: no clone, no credentials on disk.

Commits made this way, without an author, are by the token's owner and signed by GitHub.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gate.errors import UsageError
from gate.github.client import GitHubClient, quote_part
from gate.github.job import find_text, find_value
from gate.github.transport import GitHubError, MissingError, RejectedError, UncertainWriteError, get_text

_FILES_A_TREE = 100  # files in one request: GitHub ends a request after 10 s
_FILE, _EXECUTABLE, _DIRECTORY = "100644", "100755", "tree"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tip:
    sha: str
    tree: str
    message: str


class GitData:
    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def fetch_commit(self, sha: str) -> Tip:
        commit = self._client.get(f"git/commits/{sha}")
        tree, message = get_text(commit, "tree.sha"), find_text(commit, "message")
        return Tip(sha=get_text(commit, "sha"), tree=tree, message=message)

    def list_files(self, tree: str, directory: str) -> dict[str, str]:
        """Map paths from the top to blobs, below a directory; empty if there is none."""
        subtree = self._find_directory(tree, directory)
        entries = self._fetch_tree(subtree, {"recursive": 1}) if subtree else []
        files = (item for item in entries if item["mode"] in (_FILE, _EXECUTABLE))
        return {str(PurePosixPath(directory, str(item["path"]))): str(item["sha"]) for item in files}

    def _find_directory(self, tree: str, path: str) -> str:
        for part in PurePosixPath(path).parts:
            entries = self._fetch_tree(tree, {})
            below = [item for item in entries if item["path"] == part and item["type"] == _DIRECTORY]
            if not below:
                return ""
            tree = str(below[0]["sha"])
        return tree

    def _fetch_tree(self, sha: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        answer = self._client.get(f"git/trees/{sha}", params)
        entries = find_value(answer, "tree")
        if find_value(answer, "truncated") or not isinstance(entries, list):
            raise GitHubError(
                "GitHub does not list all files of a directory",
                "It lists some 100,000: remove baselines of old environments, if they are that many.",
            )
        return entries

    def fetch_blob(self, sha: str, limit_bytes: int) -> bytes:
        """Raises GitHubError where it is larger than ``limit_bytes``, or not of that id."""
        return _decode_content(self._client.get(f"git/blobs/{sha}"), sha, limit_bytes)

    def fetch_file(self, path: str, ref: str, limit_bytes: int) -> bytes | None:
        """``None`` where there is none; raises as :meth:`fetch_blob`."""
        try:
            file = self._client.get(f"contents/{quote_branch(path)}", {"ref": ref})
        except MissingError:
            return None
        if find_text(file, "type") != "file":
            return None
        return _decode_content(file, find_text(file, "sha"), limit_bytes)

    def write_tree(self, base_tree: str, directory: str, files: Mapping[str, str]) -> str:
        """Write ``base_tree``, which may be empty, with ``files`` (path from the top -> text) put in.

        Raises:
            UsageError: A path does not lie below ``directory``: nothing was written.
        """
        for path in files:
            _check_path(path, directory)
        tree, paths = base_tree, [*files]
        for start in range(0, len(paths), _FILES_A_TREE):
            entries = [
                {"path": path, "mode": _FILE, "type": "blob", "content": files[path]}
                for path in paths[start : start + _FILES_A_TREE]
            ]
            base = {"base_tree": tree} if tree else {}
            tree = get_text(self._post("trees", {**base, "tree": entries}), "sha")
        return tree

    def write_commit(self, tree: str, parent: str, message: str) -> str:
        """No branch points to it yet. ``parent`` may be empty."""
        parents = [parent] if parent else []
        return get_text(self._post("commits", {"message": message, "tree": tree, "parents": parents}), "sha")

    def _post(self, kind: str, body: object) -> Any:  # noqa: ANN401 -- JSON
        """A second copy of a tree or a commit does no harm."""
        try:
            return self._client.post(f"git/{kind}", body)
        except UncertainWriteError:
            return self._client.post(f"git/{kind}", body)

    def find_branch(self, branch: str) -> str:
        """Find the commit of a branch; empty where there is no such branch."""
        try:
            answer = self._client.get(f"git/ref/heads/{quote_branch(branch)}")
        except MissingError:
            return ""
        return find_text(answer, "object.sha") if find_text(answer, "ref") == f"refs/heads/{branch}" else ""

    def force_branch(self, branch: str, sha: str) -> None:
        self._client.patch(f"git/refs/heads/{quote_branch(branch)}", {"sha": sha, "force": True})

    def advance_branch(self, branch: str, old: str, new: str) -> bool:
        """An empty ``old`` makes the branch. False where it has moved on meanwhile: it is left alone."""
        try:
            if old:
                self._client.patch(f"git/refs/heads/{quote_branch(branch)}", {"sha": new, "force": False})
            else:
                self._client.post("git/refs", {"ref": f"refs/heads/{branch}", "sha": new})
        except (UncertainWriteError, RejectedError) as error:
            tip = self.find_branch(branch)
            if tip == old and isinstance(error, RejectedError):
                error.what = f"the branch {branch} cannot be made: {error.what}"
                error.fix = (
                    "Remove that branch, or let the rules of the repository allow the token to make it."
                )
                raise
            return tip == new
        return True


def _decode_content(value: object, sha: str, limit_bytes: int) -> bytes:
    try:
        content = base64.b64decode(find_text(value, "content"))
    except (binascii.Error, ValueError):
        content = b""
    if len(content) > limit_bytes or compute_blob_sha(content) != sha:
        raise GitHubError(f"GitHub's blob {sha[:12]} cannot be used", "Look at the stored file.")
    return content


def compute_blob_sha(content: bytes) -> str:
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def quote_branch(branch: str) -> str:
    return "/".join(quote_part(part) for part in branch.split("/"))


def _check_path(path: str, directory: str) -> None:
    parts = PurePosixPath(path).parts
    below = PurePosixPath(path).is_relative_to(directory) and path != directory
    if not directory or not below or ".." in parts:
        raise UsageError(
            f"{path!r} does not lie below {directory!r}", f"Only files of {directory!r} are written."
        )
