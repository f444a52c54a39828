"""The workflows that a project begins with; they take the action from where this installation came."""

import importlib.metadata
import importlib.resources
import json
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlparse

from gate.errors import FileError, GateError, UsageError
from gate.files.yaml_in import parse_yaml
from gate.files.yaml_out import write_scalar
from gate.git import ask_git
from gate.installation import find_url
from gate.records.bounds import SHA
from gate.revisions import find_repository, name_repository
from gate.version import __version__

WORKFLOWS = ".github/workflows"
CHECK_WORKFLOWS = ("compile-gate.yml",)  # calls the check of this repository
RESPOND_WORKFLOWS = (*CHECK_WORKFLOWS, "compile-gate-respond.yml")
LONG_WORKFLOWS = (  # the same and its answers in full, for where nothing of another repository can be called
    "gate.yml",
    "gate-publish.yml",
    "gate-accept.yml",
    "gate-refresh.yml",
    "gate-retarget.yml",
)
_PLACEHOLDER = re.compile(r"OWNER/compile-gate(/\S+)?@0{40} # v\S+")
_RUNNER = "runs-on: [self-hosted, linux, gpu]"
_CALLED_WITH = ("runner", "python")  # what is asked of our own workflows
_CALLED_RUNNER = """runner: '["self-hosted", "linux", "gpu"]'"""
_LABEL = re.compile(r"[A-Za-z0-9_.-]+")
_TAG = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")  # of a release
_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}(?:[0-9a-f]{24})?")


def load_workflows(
    names: Iterable[str], action: str, runner: str, kept: str = "", directory: str = "."
) -> dict[str, str]:
    """Load example workflows, with the action pinned and the runner's labels: path -> text.

    The workflow ``kept``, if it calls this repository's, keeps its runner and interpreter. ``directory`` is
    where gate.yml lies, from the repository's top.

    Raises:
        FileError: This installation lacks them.
    """
    repository, _, pin = action.partition("@")
    pinned, source = rf"{repository}\g<1>@{pin}", get_workflows_directory()
    labels = parse_labels(runner)
    called = f"runner: '{json.dumps(labels)}'"
    kept_lines = {
        key: match[1].replace("\\", r"\\")
        for key in _CALLED_WITH
        if (match := re.search(rf"^ +({key}: .*)", kept, re.MULTILINE))
    }
    files = {}
    for name in names:
        try:
            text = (source / name).read_text(encoding="utf-8")
        except OSError as error:
            problem, fix = f"cannot be read: {error.strerror}", "Install compile-gate again."
            raise FileError(str(source / name), "", problem, fix) from error
        text = _PLACEHOLDER.sub(pinned, text).replace(_RUNNER, f"runs-on: [{', '.join(labels)}]")
        for key, line in kept_lines.items() if _CALLED_RUNNER in text else ():
            text = re.sub(rf"^( +){key}: .*", rf"\1{line}", text, flags=re.MULTILINE)
        if directory != ".":
            called_there = f"working-directory: {write_scalar(directory)}\n      {called}"
            text = text.replace(_CALLED_RUNNER, called_there)
        files[f"{WORKFLOWS}/{name}"] = text.replace(_CALLED_RUNNER, called)
    return files


def list_measured(workflow: str) -> list[str]:
    """The directories, from the repository's top, of calls of our check; none where nothing calls it."""
    calls = len(re.findall(r"^ +uses: \S+/check\.yml@", workflow, re.MULTILINE))
    named = re.findall(r"^ +working-directory: (.+)", workflow, re.MULTILINE) if calls else []
    directories = [posixpath.normpath(str(parse_yaml(text.encode(), "").value)) for text in named]
    return directories + ["."] * (calls > len(named))


def parse_labels(text: str) -> list[str]:
    """Parse ``self-hosted, gpu``, or the list of JSON that the workflow has.

    Raises:
        UsageError: One is no label; a job that asks for it would wait until GitHub gives up.
    """
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = re.split(r" *, *", text.strip())
    labels = parsed if isinstance(parsed, list) else [text.strip()]
    for label in labels or [""]:
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            fix = "Write letters, digits, `_`, `.` and `-`, joined by commas: --runner self-hosted,gpu."
            raise UsageError(f"--runner: {label!r} is no label of a runner", fix)
    return labels


def get_workflows_directory() -> Path:
    """The wheel brings it, a clone has it next to the package."""
    package = Path(str(importlib.resources.files("gate")))
    brought = package / "starter" / "workflows"
    return brought if brought.is_dir() else package.parent / "examples" / "workflows"


def parse_action(text: str) -> str:
    """Check ``OWNER/compile-gate@COMMIT``, with the whole commit id.

    Raises:
        UsageError: It is something else; a tag or a branch can be moved, a commit cannot.
    """
    if not _ACTION.fullmatch(text):
        fix = "Write OWNER/compile-gate@ and the 40 digits of a release's commit."
        raise UsageError(f"--action: {text!r} pins no commit of an action", fix)
    return text


def find_action(package: Path | None = None) -> str:
    """Find the repository and commit of this installation, with its tag as a comment of YAML.

    From a release's metadata, from what pip installed, or from a clone whose commit is on GitHub.
    """
    origin = _read_origin()
    vcs = origin.get("vcs_info")
    if released := _read_release():
        return released
    if isinstance(vcs, dict):
        action = f"{name_repository(str(origin.get('url', '')))}@{vcs.get('commit_id')}"
        return _add_tag(action, str(vcs.get("requested_revision"))) if _ACTION.fullmatch(action) else ""
    url = urlparse(str(origin.get("url", "")))
    clone = Path(unquote(url.path)) if url.scheme == "file" else package
    return _read_clone(clone) if clone and (clone / "action.yml").is_file() else ""


def _read_release() -> str:
    pattern = rf"https://github\.com/(?P<name>[^/]+/[^/]+)/tree/(?P<commit>{SHA})"
    match = re.fullmatch(pattern, find_url("Action"))
    return _add_tag(f"{match['name']}@{match['commit']}", f"v{__version__}") if match else ""


def _read_origin() -> dict[str, object]:
    try:
        text = importlib.metadata.distribution("compile-gate").read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _read_clone(clone: Path) -> str:
    try:
        repository = find_repository(clone)
        commit = ask_git(clone, "rev-parse", "HEAD")
        pushed = ask_git(clone, "branch", "--remotes", "--contains", "HEAD")
        tagged = ask_git(clone, "describe", "--exact-match", "--tags", "HEAD")
    except GateError:
        return ""
    return _add_tag(f"{repository}@{commit.said}", tagged.said) if repository and pushed.said else ""


def _add_tag(action: str, tag: str) -> str:
    return f"{action} # {tag}" if _TAG.fullmatch(tag) else action
