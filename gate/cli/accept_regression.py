"""``accept-regression``: a comment becomes an approval of a commit, and its check runs again."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from gate.cli.authorize import make_answerer
from gate.cli.checkout import check_head_sha, find_workspace_checkout
from gate.cli.publish import make_client
from gate.cli.setup import load_configured
from gate.errors import ExitCode, UsageError
from gate.github.accept import accept_regression, authorize_acceptance, find_acceptance
from gate.github.answer import Reaction
from gate.github.context import load_context
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.github.log import write_annotations
from gate.project.registry import load_cases
from gate.publish.approval import Accepted, ApprovalTerms
from gate.publish.approval_text import render_accepted
from gate.publish.commands import AcceptRequest, CommandRefusedError
from gate.store.approvals import name_gate


def run_accept_regression(options: Namespace) -> ExitCode:
    """Check again who asks for what, store the approval, start the failed jobs again, answer."""
    check_head_sha(options.head_sha)
    context, client = load_context(os.environ), make_client(os.environ)
    config = load_configured(options)
    source = Path(config.source)
    terms = ApprovalTerms(
        cases=load_cases(config),
        workflow=options.workflow,
        artifact_name=options.artifact_name,
        today=datetime.now(UTC).date().isoformat(),
        gate=name_gate(source, find_workspace_checkout(source.parent, context.workspace), options.key),
    )
    command = find_acceptance(context)
    answerer = make_answerer(context, command)
    with answerer.answering():
        request = authorize_acceptance(client, context, command)
        if request is None:
            raise UsageError("this comment accepts nothing", "Run this after the mode authorize-command.")
        _check_authorized(request, options.head_sha)
        accepted = accept_regression(client, context, request, terms)
    answerer.react(Reaction.GOES_ON)
    answerer.comment(render_accepted(accepted))
    _tell(request, accepted)
    return ExitCode.PASS


def _check_authorized(request: AcceptRequest, head_sha: str) -> None:
    if request.head_sha != head_sha:
        raise CommandRefusedError(
            "somebody pushed to the pull request since it was asked",
            "Look at what was pushed, and ask again.",
        )


def _tell(request: AcceptRequest, accepted: Accepted) -> None:
    write_outputs(os.environ, {"head-sha": request.head_sha, "pr-number": request.pr_number})
    append_summary(os.environ, render_accepted(accepted))
    count = len(accepted.approval.accepted)
    print(f"{request.author} accepts {count} of what regressed at {request.head_sha}.")
    if accepted.trouble:
        text = f"Stored, but the check was not started again: {accepted.trouble}"
        write_annotations([render_annotation("warning", text)])
