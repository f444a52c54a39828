"""``publish``: tell a finished run's verdict on GitHub. No torch, no measured code."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gate.cli.checkout import find_workspace_checkout, to_repository_path
from gate.cli.workflows import has_mode
from gate.decide.conclude.outcome import FailOn
from gate.errors import ExitCode, UsageError
from gate.github.client import GitHubClient, Patience
from gate.github.comment import find_author
from gate.github.context import load_context
from gate.github.job import append_summary, write_outputs
from gate.github.log import write_annotations
from gate.github.publish import Publication, PublishContext, Settings, publish
from gate.github.upgrade import UpgradeSettings, publish_upgrade
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.publish.ci_run import WORKFLOWS
from gate.publish.telling import CommentWhen
from gate.publish.trusted import Base
from gate.store.approvals import DEFAULT_KEY, name_gate
from gate.store.baselines import load_baselines
from gate.store.policies import load_policy

DEFAULT_API = "https://api.github.com"
# Modes of the action, in workflows that answer /accept-regression and /refresh-baselines.
ACCEPT_MODE = "accept-regression"
PROPOSE_MODE = "propose-baselines"


def run_publish(options: argparse.Namespace) -> int:
    """Publish a run's verdict and return 0: what was decided shows in what is published.

    Raises:
        UsageError: An option or the environment is unusable.
    """
    settings = Settings(
        run_id=options.run_id,
        workflow=options.workflow,
        artifact_name=options.artifact_name,
        comment=CommentWhen(options.comment),
        key=options.key,
        status=options.status,
        fail_on=FailOn(options.fail_on),
    )
    return _tell(options, lambda context: publish(context, settings))


def run_publish_upgrade(options: argparse.Namespace) -> int:
    """Publish an upgrade's verdict; returns and raises as :func:`run_publish`."""
    settings = UpgradeSettings(
        run_id=options.run_id,
        conclusion=options.conclusion,
        artifact_name=options.artifact_name,
        issue=CommentWhen(options.issue),
        key=options.key,
        fail_on=FailOn(options.fail_on),
    )
    return _tell(options, lambda context: publish_upgrade(context, settings))


def _tell(options: argparse.Namespace, publish_by: Callable[[PublishContext], Publication]) -> int:
    """Publish, and tell the runner what was published."""
    client, job = make_client(os.environ), load_context(os.environ)
    context = PublishContext(
        client=client,
        job=job,
        author=options.author or find_author(client, os.environ["GITHUB_TOKEN"]),
        base=load_base(Path(options.config) if options.config else None, job.workspace, options.key),
    )
    publication = publish_by(context)
    write_outputs(os.environ, publication.outputs)
    append_summary(os.environ, publication.summary)
    write_annotations(publication.lines)
    if not options.quiet:
        print(f"{client.request_count} requests, {client.waited_s:.0f} s waited as GitHub asked")
    return int(ExitCode.PASS)


def make_client(environ: Mapping[str, str], patience: Patience | None = None) -> GitHubClient:
    """Make a client of the API that the environment names.

    Raises:
        UsageError: There is no token, or the address is not https.
    """
    token = environ.get("GITHUB_TOKEN", "")
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(
            "there is no usable token in GITHUB_TOKEN", "Give the step `token: ${{ github.token }}`."
        )
    api_url = environ.get("GITHUB_API_URL") or DEFAULT_API
    if not api_url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise UsageError("GITHUB_API_URL is not an https address", "Run this in GitHub Actions, or fix it.")
    patience = patience or Patience(tell=lambda line: print(line, flush=True))
    return GitHubClient(api_url=api_url, token=token, patience=patience)


def load_base(path: Path | None, workspace: Path = Path(), key: str = DEFAULT_KEY) -> Base:
    """Load what the checked-out base commit says: registry, baselines, thresholds, acceptances.

    ``workspace`` is the job's directory, in which the repository was cloned.

    Raises:
        FileError: One of its files cannot be used.
    """
    config = load_config(path)
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
        is_configured=config.is_found,
        gate=name_gate(source, top, key),
    )
