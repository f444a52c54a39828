"""``authorize``: decide about the command that an event gives, and tell the following jobs."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TypeVar

from gate.cli.publish import make_client
from gate.errors import ExitCode, UsageError
from gate.github.accept import authorize_acceptance, find_acceptance
from gate.github.answer import Answerer, Reaction, make_patience
from gate.github.client import GitHubClient
from gate.github.command import CommentCommand
from gate.github.context import JobContext, load_context
from gate.github.errors import GitHubError
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.github.log import write_annotations
from gate.github.refresh import authorize_refresh, describe_protection, find_refresh, make_outputs

_T = TypeVar("_T")


def run_authorize(options: Namespace) -> ExitCode:
    """Write the output ``authorized``, and what the following jobs need of what was asked.

    A comment that is no command is not an error: ``authorized`` is then false, as it is whenever
    this fails. Whoever wrote the command is answered.
    """
    context, client = load_context(os.environ), make_client(os.environ)
    return _COMMANDS[options.asked](client, context)


def _authorize_refresh(client: GitHubClient, context: JobContext) -> ExitCode:
    command = find_refresh(context)
    answerer = make_answerer(context, command)
    authorization = _decide(answerer, lambda: authorize_refresh(client, context, command))
    write_outputs(os.environ, make_outputs(authorization))
    if authorization is None:
        print("Nobody asked for a refresh.")
        return ExitCode.PASS
    print(f"{authorization.author} may refresh {authorization.head_ref} at {authorization.head_sha}.")
    answerer.react(Reaction.GOES_ON)
    _warn_of_environment(client, context)
    return ExitCode.PASS


def _authorize_acceptance(client: GitHubClient, context: JobContext) -> ExitCode:
    """The rocket is for the job that accepts: it may still find nothing to accept."""
    command = find_acceptance(context)
    answerer = make_answerer(context, command)
    request = _decide(answerer, lambda: authorize_acceptance(client, context, command))
    if request is None:
        write_outputs(os.environ, make_outputs(None))
        print("Nobody accepted a regression.")
        return ExitCode.PASS
    outputs = {"authorized": "true", "head-sha": request.head_sha, "pr-number": request.pr_number}
    write_outputs(os.environ, outputs)
    print(f"{request.author} may accept what regressed at {request.head_sha}.")
    return ExitCode.PASS


_COMMANDS: Mapping[str, Callable[[GitHubClient, JobContext], ExitCode]] = {
    "refresh-baselines": _authorize_refresh,
    "accept-regression": _authorize_acceptance,
}


def make_answerer(context: JobContext, command: CommentCommand | None) -> Answerer:
    """Make what answers a comment, by a client that waits little."""
    return Answerer(make_client(os.environ, make_patience(print)), context, command, print)


def _decide(answerer: Answerer, decide: Callable[[], _T]) -> _T:
    """Decide, and answer; a refusal is an output too, and goes on as the error that it is."""
    try:
        with answerer.answering():
            return decide()
    except (UsageError, GitHubError):
        write_outputs(os.environ, make_outputs(None))
        append_summary(os.environ, "Nothing goes on; the log of the step says why.")
        raise


def _warn_of_environment(client: GitHubClient, context: JobContext) -> None:
    try:
        lack = describe_protection(client, context)
    except GitHubError as error:
        print(f"Whether somebody must approve the refresh could not be asked: {error.what}. {error.fix}")
        return
    if lack:
        write_annotations([render_annotation("warning", lack)])
        append_summary(os.environ, lack)
