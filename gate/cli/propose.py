"""``propose``: refreshed baselines become a pull request."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from pathlib import Path

from gate.cli.checkout import find_checkout, to_repository_path
from gate.cli.publish import make_client
from gate.cli.setup import load_configured, load_policy
from gate.codec import RUN, decode_file
from gate.errors import ExitCode, UsageError
from gate.github.client import GitHubClient
from gate.github.context import JobContext, find_text, is_sha, load_context
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.github.log import write_annotations
from gate.github.propose import ProposalOutcome, RefreshRequest, propose_refresh
from gate.github.run_artifact import MAX_RUN_BYTES, fetch_run
from gate.hostile import load_bytes
from gate.records import Run

_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|//|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,244}")


def run_propose(options: Namespace) -> ExitCode:
    """Propose the baselines of a run; nothing that changed is no error, and opens nothing."""
    context = load_context(os.environ)
    config = load_configured(options)
    request = _make_request(options, context, config.baselines)
    client, _ = make_client(os.environ)
    outcome = propose_refresh(
        client, context, request, _load_run(options, client, context), load_policy(config)
    )
    _tell(outcome)
    return ExitCode.PASS


def _make_request(options: Namespace, context: JobContext, baselines: Path) -> RefreshRequest:
    if not is_sha(options.head_sha):
        raise UsageError("--head-sha is not a whole commit id", "Pass authorize-command's output head-sha.")
    if not _BRANCH.fullmatch(options.head_ref):
        raise UsageError("--head-ref is not a branch", "Pass authorize-command's output head-ref.")
    directory = to_repository_path(baselines, find_checkout(Path.cwd(), context.workspace))
    if not directory:
        fix = "Name a directory of the repository in gate.yml."
        raise UsageError(f"the baselines, {baselines}, lie outside the repository", fix)
    author = find_text(context.event, "comment.user.login") or find_text(context.event, "sender.login")
    return RefreshRequest(
        head_sha=options.head_sha,
        head_ref=options.head_ref,
        directory=directory,
        reason=" ".join(options.reason.split()),
        author=author,
        pr_number=options.pr_number or 0,
    )


def _load_run(options: Namespace, client: GitHubClient, context: JobContext) -> Run:
    if options.run_file:
        return decode_file(RUN, Run, load_bytes(Path(options.run_file), MAX_RUN_BYTES), options.run_file)
    run_id = options.run_id or int(context.run_id or 0)
    return fetch_run(client, context, run_id, options.artifact_name)


def _tell(outcome: ProposalOutcome) -> None:
    write_outputs(os.environ, {"pull-request-url": outcome.url})
    print(outcome.note)
    append_summary(os.environ, f"{outcome.note}\n\n{outcome.url}" if outcome.url else outcome.note)
    if outcome.url and not outcome.has_pull_request:
        write_annotations([render_annotation("warning", f"Open the pull request yourself: {outcome.url}")])
    if outcome.setbacks:
        text = f"{outcome.setbacks} metrics moved the wrong way: the pull request asks why."
        write_annotations([render_annotation("warning", text)])
