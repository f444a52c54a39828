"""``publish``: write a finished run's verdict on GitHub, from a job's clone. No torch, no measured code."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from gate.decide.conclude.outcome import FailOn
from gate.errors import ExitCode, FileError, UsageError
from gate.files.untrusted import format_value, load_bytes
from gate.files.yaml_in import MAX_YAML_BYTES, parse_yaml
from gate.git import find_checkout
from gate.github.client import GitHubClient, Patience
from gate.github.finding import Settings
from gate.github.job import (
    append_summary,
    check_repository,
    is_sha,
    load_context,
    write_annotations,
    write_outputs,
)
from gate.github.publish import publish
from gate.github.sticky import find_author
from gate.project.config import Config, load_config
from gate.project.registry import load_cases
from gate.publish.submitted_verdict import WORKFLOWS
from gate.publish.telling import CommentWhen
from gate.publish.trusted import Base
from gate.store.baselines import load_baselines
from gate.store.policy import DEFAULT_KEY, load_policy, name_gate

_HEAD_FIX = (
    "Pass the output `head-sha` of the step with `mode: authorize-command`, or what `git rev-parse` prints."
)


def find_workspace_checkout(directory: Path, workspace: Path) -> Path:
    """Find the top of the clone that ``directory`` lies in, or ``workspace`` where there is none.

    ``actions/checkout`` with ``path:`` clones to below the workspace. git itself is not asked: a trusted
    job needs none, and without git that action downloads the files alone.
    """
    return find_checkout(directory) or workspace.resolve()


def to_repository_path(path: Path, top: Path) -> str:
    """Write a path as git does, from the top of the repository; empty where it lies elsewhere."""
    absolute = path.resolve()
    is_inside = absolute != top and absolute.is_relative_to(top)
    return absolute.relative_to(top).as_posix() if is_inside else ""


def check_head_sha(text: str) -> None:
    """Check the value of ``--head-sha``.

    Raises:
        UsageError: It is no whole commit id.
    """
    if not is_sha(text):
        problem = (
            f"--head-sha: expected a whole commit id, 40 digits of 0-9 and a-f, got {format_value(text)}"
        )
        raise UsageError(problem, _HEAD_FIX)


_DIRECTORY = "workflows"
_RESPOND = "/.github/workflows/respond.yml"  # of this repository, which a workflow calls


def has_mode(directory: Path, mode: str) -> bool:
    """Whether a workflow below ``directory`` (``.github``) uses the action in a mode.

    The action is not recognized by its name, which is another one in a fork or a mirror: a step that uses
    anything with that ``mode`` counts. A file that our YAML refuses, as for an anchor, does not count, and
    stops nothing.
    """
    paths = sorted(directory.joinpath(_DIRECTORY).glob("*.y*ml"))
    return any(mode == given for path in paths for given in _list_modes(_load(path)))


def _load(path: Path) -> object:
    try:
        return parse_yaml(load_bytes(path, MAX_YAML_BYTES), str(path)).value
    except FileError:
        return None


def _list_modes(workflow: object) -> Iterator[object]:
    """List the input ``mode`` of each step, and of each job that calls a workflow; our own call has both."""
    for job in _get_mapping(workflow, "jobs").values():
        steps = job.get("steps") if isinstance(job, Mapping) else None
        for user in (job, *(steps if isinstance(steps, list) else ())):
            if isinstance(user, Mapping) and user.get("uses"):
                yield _get_mapping(user, "with").get("mode")
                if _RESPOND in str(user["uses"]):
                    yield from (ACCEPT_MODE, PROPOSE_MODE)


def _get_mapping(value: object, key: str) -> Mapping[str, object]:
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


DEFAULT_API = "https://api.github.com"
# Modes of the action, in workflows that answer /accept-regression and /refresh-baselines.
ACCEPT_MODE = "accept-regression"
PROPOSE_MODE = "propose-baselines"


def run_publish(options: argparse.Namespace) -> int:
    """Publish a run's verdict and return 0: what was decided shows in what is published.

    Raises:
        UsageError: An option or the environment is unusable.
    """
    usual = CommentWhen.ON_CHANGE if options.issue else CommentWhen.ALWAYS
    config, key = load_config(Path(options.config) if options.config else None), options.comment_key
    suffix = "" if key == DEFAULT_KEY or not config.status else f" ({key})"
    client, job = make_client(os.environ), load_context(os.environ)
    settings = Settings(
        run_id=options.run_id,
        base=load_base(config, job.workspace, key),
        author=options.comment_author or find_author(client, os.environ["GITHUB_TOKEN"]),
        issue=options.issue,
        conclusion=options.conclusion,
        workflow=options.workflow,
        artifact_name=options.artifact_name,
        comment=CommentWhen(options.comment or usual),
        key=key,
        status=f"{config.status}{suffix}",
        fail_on=config.fail_on or FailOn.REGRESSION,
    )
    publication = publish(client, job, settings)
    write_outputs(os.environ, publication.outputs)
    append_summary(os.environ, publication.summary)
    write_annotations(publication.lines)
    if not options.quiet:
        print(f"{client.request_count} requests, {client.waited_s:.0f} s waited as GitHub asked")
    return int(ExitCode.PASS)


def make_client(environ: Mapping[str, str], patience: Patience | None = None) -> GitHubClient:
    """Make a client of the API and the repository that the environment names.

    Raises:
        UsageError: There is no token or repository, or the address is not https.
    """
    token = environ.get("GITHUB_TOKEN", "")
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(
            "there is no usable token in GITHUB_TOKEN", "Give the step `token: ${{ github.token }}`."
        )
    api_url = environ.get("GITHUB_API_URL") or DEFAULT_API
    if not api_url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise UsageError("GITHUB_API_URL is not an https address", "Run this in GitHub Actions, or fix it.")
    return GitHubClient(
        api_url=api_url,
        token=token,
        repository=check_repository(environ.get("GITHUB_REPOSITORY", "")),
        patience=patience or Patience(tell=lambda line: print(line, flush=True)),
    )


def load_base(config: Config, workspace: Path = Path(), key: str = DEFAULT_KEY) -> Base:
    """Load what the checked-out base commit says: registry, baselines, thresholds, acceptances.

    ``workspace`` is the job's directory, in which the repository was cloned.

    Raises:
        FileError: One of its files cannot be used.
    """
    source = Path(config.source)
    top = find_workspace_checkout(source.parent, workspace)
    rules = (to_repository_path(rule, top) for rule in (source, *config.registry, config.baselines))
    return Base(
        cases=load_cases(config),
        baselines=load_baselines(config.baselines),
        policy=load_policy(config),
        rules=(*(rule for rule in rules if rule), WORKFLOWS),
        can_accept=has_mode(top / WORKFLOWS, ACCEPT_MODE),
        can_refresh=has_mode(top / WORKFLOWS, PROPOSE_MODE),
        gate=name_gate(source, top, key),
    )
