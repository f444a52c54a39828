"""``publish``: write a finished run's verdict on GitHub, from a job's clone. No torch, no measured code."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path

from gate.decide.conclude.outcome import FailOn
from gate.errors import ExitCode, UsageError
from gate.git import find_checkout
from gate.github.client import GitHubClient, Patience
from gate.github.finding import Settings
from gate.github.job import (
    append_summary,
    check_repository,
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

DEFAULT_API = "https://api.github.com"
# Modes of the action, in workflows that answer /accept-regression and /refresh-baselines.
ACCEPT_MODE = "accept-regression"
PROPOSE_MODE = "propose-baselines"
_RESPOND = "respond.yml"  # of this repository: has both


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


def has_mode(directory: Path, mode: str) -> bool:
    """Whether a workflow below ``directory`` (``.github``) uses a mode of the action, or calls ours."""
    used = rf"""\bmode['"]?: *['"]?{mode}(?![\w-])|/{_RESPOND}\b"""
    is_used = re.compile(f"^[^#\n]*(?:{used})", re.MULTILINE)
    paths = (path for path in directory.joinpath("workflows").glob("*.y*ml") if path.is_file())
    return any(is_used.search(path.read_text(encoding="utf-8", errors="replace")) for path in paths)


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
        author=find_author(client),
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
        patience=patience,
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
