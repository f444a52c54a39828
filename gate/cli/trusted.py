"""``authorize``, ``propose``, ``accept-regression``: what a comment asks for, by jobs with a token."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from gate.cli.publish import find_workspace_checkout, make_client, to_repository_path
from gate.cli.setup import load_configured
from gate.errors import ExitCode, UsageError
from gate.files.untrusted import format_value
from gate.github.accept import accept_regression
from gate.github.artifact import fetch_run
from gate.github.client import GitHubClient
from gate.github.command import (
    ANSWERING,
    Answerer,
    CommentCommand,
    Reaction,
    authorize,
    describe_protection,
    find_command,
    make_outputs,
)
from gate.github.errors import GitHubError, find_text
from gate.github.job import (
    JobContext,
    append_summary,
    load_context,
    make_line,
    render_annotation,
    write_annotations,
    write_outputs,
)
from gate.github.proposal_branch import ProposalOutcome, RefreshRequest
from gate.github.propose import propose_refresh
from gate.project.config import Config
from gate.project.registry import load_cases
from gate.publish.acceptance import Accepted, AcceptTerms, render_accepted
from gate.publish.commands import ACCEPT_COMMAND, REFRESH_COMMAND, AuthorizedCommand, CommandRefusedError
from gate.records import Run
from gate.report.markdown import escape_text
from gate.store.policy import load_policy, name_gate
from gate.units import count_noun


def run_authorize(options: Namespace) -> ExitCode:
    """Write the output ``authorized``, and what the following jobs need of what was asked.

    A comment that is no command is not an error: ``authorized`` is then false, as it is whenever
    this fails. The author of the command gets an answer.
    """
    context, client, name = load_context(os.environ), make_client(os.environ), f"/{options.asked}"
    command = find_command(context, name)
    answerer = make_answerer(context, command)
    try:
        with answerer.answering():
            request = authorize(client, context, name, command)
    except (UsageError, GitHubError):
        write_outputs(os.environ, make_outputs(name, None))
        append_summary(os.environ, "Nothing goes on; the log of the step says why.")
        raise
    write_outputs(os.environ, make_outputs(name, request))
    if request is None:
        print(f"Nobody asked for it: {options.asked}.")
        return ExitCode.PASS
    print(f"{request.author} may ask for it: {options.asked} at {request.head_sha}.")
    if name == REFRESH_COMMAND:
        # Of an acceptance the rocket is for the job that accepts: it may still find nothing to accept.
        answerer.react(Reaction.GOES_ON)
        _warn_of_environment(client)
    return ExitCode.PASS


def make_answerer(context: JobContext, command: CommentCommand | None) -> Answerer:
    """Make what answers a comment, by a client that waits little."""
    return Answerer(make_client(os.environ, ANSWERING), context, command)


def _warn_of_environment(client: GitHubClient) -> None:
    try:
        lack = describe_protection(client)
    except GitHubError as error:
        print(f"Could not find out whether somebody must approve the refresh: {error.what}. {error.fix}")
        return
    if lack:
        write_annotations([render_annotation("warning", lack)])
        append_summary(os.environ, lack)


_LINK = re.compile(r"https?://[A-Za-z0-9./:_~%@?=&+-]+")
_MEASURED = "success"  # how the job that measures ends where it did
# The log is linked below an answer; nothing of what it says is repeated in the repository's name.
_NOT_MEASURED = "The baselines could not be measured: the log of the job that measures says why."
_REFUSED = "No baselines are proposed: the log of the job that proposes says why."
_UNCHANGED = "Nothing changed: the stored baselines are the same, and no pull request is needed."


def run_propose(options: Namespace) -> ExitCode:
    """Propose the baselines of a run; nothing that changed is no error, and opens nothing.

    A comment that asked for them is answered with what came of it.
    """
    context = load_context(os.environ)
    answerer = make_answerer(context, find_command(context, REFRESH_COMMAND))
    if options.conclusion not in ("", _MEASURED):
        answerer.comment(_NOT_MEASURED)
        raise UsageError(
            f"nothing is proposed: the job that measures ended with {options.conclusion}",
            "See its log, and ask for the refresh again.",
        )
    try:
        outcome = _propose(options, context)
    except (UsageError, GitHubError):
        answerer.comment(_REFUSED)
        raise
    _print_proposal(outcome)
    answerer.comment(_describe_answer(outcome))
    return ExitCode.PASS


def _propose(options: Namespace, context: JobContext) -> ProposalOutcome:
    config = load_configured(options)
    request = _make_request(options, context, config)
    client = make_client(os.environ)
    run = _load_run(options, client, context)
    return propose_refresh(client, context, request, run, load_policy(config))


def _describe_answer(outcome: ProposalOutcome) -> str:
    """Say what came of a refresh, in a sentence of ours and at most GitHub's own address."""
    if not outcome.url:
        return _UNCHANGED
    link = f": {outcome.url}" if _LINK.fullmatch(outcome.url) else ""
    if outcome.trouble:
        return f"The new baselines are on a branch; open the pull request yourself{link}"
    return f"The new baselines are proposed{link}"


def _make_request(options: Namespace, context: JobContext, config: Config) -> RefreshRequest:
    top = find_workspace_checkout(Path.cwd(), context.workspace)
    directory, source = (to_repository_path(path, top) for path in (config.baselines, Path(config.source)))
    if not source:
        raise UsageError(f"{config.source} lies outside the repository", "Name one of the repository's.")
    if not directory:
        fix = "Name a directory of the repository in gate.yml."
        raise UsageError(f"the baselines, {config.baselines}, lie outside the repository", fix)
    author = find_text(context.event, "comment.user.login") or find_text(context.event, "sender.login")
    return RefreshRequest(
        head_sha=options.head_sha,
        head_ref=options.head_ref,
        directory=directory,
        config=source,
        reason=" ".join(options.reason.split()),
        author=author,
        pr_number=options.pr_number or 0,
    )


def _load_run(options: Namespace, client: GitHubClient, context: JobContext) -> Run:
    if not context.run_id.isdecimal():
        what = f"GITHUB_RUN_ID is {format_value(context.run_id)}, and no run of a workflow"
        raise UsageError(what, "Run this in GitHub Actions, after the job that measures.")
    return fetch_run(client, int(context.run_id), options.artifact_name)


def _print_proposal(outcome: ProposalOutcome) -> None:
    write_outputs(os.environ, {"pull-request-url": outcome.url})
    text, reason = _describe_answer(outcome), make_line(outcome.trouble)
    print(f"{text} ({reason})" if reason else text)
    append_summary(os.environ, f"{text} ({escape_text(reason)})" if reason else text)
    warnings = [f"Open the pull request yourself: {outcome.url}"] if outcome.trouble else []
    if outcome.setbacks:
        warnings.append(f"Worse in {count_noun(outcome.setbacks, 'metric')}: the pull request asks why.")
    write_annotations(render_annotation("warning", make_line(text)) for text in warnings)


def run_accept_regression(options: Namespace) -> ExitCode:
    """Check again who asks for what, store what is accepted, start the failed jobs again, answer."""
    context, client = load_context(os.environ), make_client(os.environ)
    config = load_configured(options)
    source = Path(config.source)
    top = find_workspace_checkout(source.parent, context.workspace)
    terms = AcceptTerms(
        cases=load_cases(config),
        workflow=options.workflow,
        artifact_name=options.artifact_name,
        today=datetime.now(UTC).date().isoformat(),
        gate=name_gate(source, top, options.comment_key),
    )
    command = find_command(context, ACCEPT_COMMAND)
    answerer = make_answerer(context, command)
    with answerer.answering():
        request = authorize(client, context, ACCEPT_COMMAND, command)
        if request is None:
            raise UsageError("this comment accepts nothing", "Run this after the mode authorize-command.")
        _check_authorized(request, options.head_sha)
        accepted = accept_regression(client, request, terms)
    answerer.react(Reaction.GOES_ON)
    answerer.comment(render_accepted(accepted))
    _print_accepted(request, accepted)
    return ExitCode.PASS


def _check_authorized(request: AuthorizedCommand, head_sha: str) -> None:
    if request.head_sha != head_sha:
        raise CommandRefusedError(
            "somebody pushed to the pull request since it was asked",
            "Look at what was pushed, and ask again.",
        )


def _print_accepted(request: AuthorizedCommand, accepted: Accepted) -> None:
    write_outputs(os.environ, {"head-sha": request.head_sha, "pr-number": request.pr_number})
    append_summary(os.environ, render_accepted(accepted))
    count = len(accepted.rows)
    print(f"{request.author} accepts {count} of what regressed at {request.head_sha}.")
    if accepted.trouble:
        text = f"Stored, but the check was not started again: {accepted.trouble}"
        write_annotations([render_annotation("warning", text)])
