"""Runs git, without surprises from the caller's environment, and without code of a repository.

What could make git run a program is switched off: a directory of the tree that is laid out as a bare
repository, and ``.git/config`` of an earlier job. Filters stay (``filter.*``, as Git LFS has them): a
checkout needs them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gate.errors import GateError, MachineError, UsageError
from gate.programs import ask_program

GIT_LIMIT_S = 10.0  # CPU seconds; `git status` of a large tree takes some

# Of the caller's variables only those that say where git's settings are. A hook that calls us sets
# GIT_DIR and the like, which would point git at another repository.
GIT_SETTINGS = "GIT_CONFIG_GLOBAL"  # names the file with the user's settings
_KEPT = (GIT_SETTINGS, "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT")
_KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_FIXED = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",  # a path with a star or a bracket in it is that path
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit is what its id says, whatever `git replace` left here
}
_SETTINGS = (
    "core.fsmonitor=false",  # a program that `git status` starts
    f"core.hooksPath={os.devnull}",  # a hook of the user's must not run in a checkout they do not know of
    "color.ui=never",
    "column.ui=never",  # several names on one line
    "log.showSignature=false",
    "diff.relative=false",  # a directory's own changes alone
    "diff.suppressBlankEmpty=false",
    "safe.bareRepository=explicit",  # a directory of the tree that is laid out as a repository is ignored
)
# A user's settings and .gitmodules can hide a changed submodule, of which new files may be a build's.
ALL_SUBMODULES = "--ignore-submodules=untracked"
# What a commit holds, whatever a user's settings would leave out, sort, or have another program show.
DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-renames", f"-O{os.devnull}", ALL_SUBMODULES,
)  # fmt: skip
_NO_TRUST = ("dubious ownership", "unsafe repository", "safe.directory")


# The fix of a clone that left content with its remote.
_WHOLE = "Give actions/checkout `fetch-depth: 0`, and neither `filter:` nor `sparse-checkout:`."


class MissingContentError(UsageError):
    def __init__(self, commit: str, complaint: str = "") -> None:
        reason = f" ({complaint.removeprefix('fatal: ')})" if complaint else ""
        super().__init__(
            f"this clone lacks the content of a file of commit {commit[:12]}{reason}",
            _WHOLE,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class GitAnswer:
    """``status`` is -1 where git could not be run, or did not end."""

    status: int
    output: bytes = b""
    complaint: str = ""  # git's own reason: the line that begins with "fatal:", or the last one

    @property
    def is_good(self) -> bool:
        return self.status == 0

    @property
    def said(self) -> str:
        """Its output, stripped; a path that is no text still names its file."""
        return self.output.decode(errors="surrogateescape").strip()


def ask_git(directory: Path, *arguments: str, given: bytes = b"", limit_s: float = GIT_LIMIT_S) -> GitAnswer:
    """Run git within ``limit_s`` CPU seconds, with ``given`` as its standard input."""
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    answer = ask_program(
        ["git", "-C", str(directory), "--no-optional-locks", *settings, *arguments],
        limit_s=limit_s,
        given=given,
        variables={**_keep_variables(), **_FIXED},
    )
    if answer.problem:
        name = f"git {arguments[0]}" if answer.is_late else "git"
        return GitAnswer(status=-1, complaint=f"{name} {answer.problem}")
    return GitAnswer(status=answer.status, output=answer.raw, complaint=_find_complaint(answer.err))


def read_git(directory: Path, *arguments: str, given: bytes = b"", limit_s: float = GIT_LIMIT_S) -> bytes:
    """Return git's output.

    Raises:
        UsageError: git refuses; its own reason is quoted.
        MachineError: git cannot be run, or did not end in time.
    """
    answer = ask_git(directory, *arguments, given=given, limit_s=limit_s)
    if not answer.is_good:
        raise make_git_error(directory, answer, arguments[0])
    return answer.output


def is_true(directory: Path, *arguments: str, limit_s: float = GIT_LIMIT_S) -> bool:
    """Return whether git's exit status is 0.

    Raises:
        MachineError: git cannot be run, or did not end in time.
    """
    answer = ask_git(directory, *arguments, limit_s=limit_s)
    if answer.status == -1:
        raise make_git_error(directory, answer, arguments[0])
    return answer.is_good


def is_partial(directory: Path) -> bool:
    """Whether the clone left content with its remote, as `filter:` and `sparse-checkout:` do."""
    return ask_git(directory, "config", "--get-regexp", r"^remote\..*\.promisor$").is_good


def make_git_error(directory: Path, answer: GitAnswer, command: str) -> GateError:
    path, reason = directory.absolute(), answer.complaint.removeprefix("fatal: ")
    if answer.status == -1:
        fix = "Install git; where it is there, look at what it waits for: a disk, a lock, a network."
        return MachineError(answer.complaint, fix)
    if any(sign in reason for sign in _NO_TRUST):
        return UsageError(
            f"git does not trust {path}: it belongs to another user",
            f"Run `git config --global --add safe.directory {path}`.",
        )
    if "not a git repository" in reason:
        fix = "Run in a checkout; after actions/checkout, and below its `path:` if it has one."
        return UsageError(f"{path} is not in a git repository", fix)
    fix = _WHOLE if is_partial(directory) else "Check the clone."
    return UsageError(f"git {command} failed in {path}: {reason or 'no reason given'}", fix)


def find_distrust(directory: Path) -> GateError | None:
    """The error where git refuses the checkout, since another user owns it."""
    answer = ask_git(directory, "rev-parse", "--git-dir")
    is_distrust = any(sign in answer.complaint for sign in _NO_TRUST)
    return make_git_error(directory, answer, "rev-parse") if is_distrust else None


def trust_checkout(environ: Mapping[str, str], directory: Path, file: Path) -> dict[str, str]:
    """Make git trust the checkout: in a container it belongs to another user.

    ``file`` becomes git's global configuration, since git before 2.38 does not take ``safe.directory`` from
    its environment.
    """
    top = find_checkout(directory)
    if top is None:
        return dict(environ)
    sections = [f"[include]\n\tpath = {_quote(path)}\n" for path in _list_global_files(environ)]
    file.write_text("".join([*sections, f"[safe]\n\tdirectory = {_quote(str(top))}\n"]), encoding="utf-8")
    return {**environ, GIT_SETTINGS: str(file)}


def find_checkout(directory: Path) -> Path | None:
    """Without asking git."""
    start = directory.resolve()
    return next((above for above in (start, *start.parents) if (above / ".git").exists()), None)


def _list_global_files(environ: Mapping[str, str]) -> tuple[str, ...]:
    if named := environ.get(GIT_SETTINGS):
        return (named,)
    home = environ.get("HOME", "")
    settings = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    files = (f"{settings}/git/config" if settings else "", f"{home}/.gitconfig" if home else "")
    return tuple(file for file in files if file)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _keep_variables() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }


def _find_complaint(output: str) -> str:
    """Advice may stand before and after it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("fatal: ")]
    return next(iter(reasons), lines[-1] if lines else "")
