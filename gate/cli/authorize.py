"""``authorize``: decide about the refresh that an event asks for, and tell the following jobs."""

from __future__ import annotations

import os
from argparse import Namespace

from gate.cli.publish import make_client
from gate.errors import ExitCode, UsageError
from gate.github.answer import Answerer, Reaction, make_patience
from gate.github.authorize import authorize_refresh, describe_protection, find_refresh, make_outputs
from gate.github.client import GitHubClient
from gate.github.context import JobContext, load_context
from gate.github.errors import GitHubError
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.github.log import write_annotations


def run_authorize(options: Namespace) -> ExitCode:
    """Write the outputs ``authorized``, ``head-sha``, ``head-ref``, ``select`` and ``pr-number``.

    A comment that is no command is not an error: ``authorized`` is then false, as it is whenever
    this fails. Whoever wrote the command is answered.
    """
    del options
    context, client = load_context(os.environ), make_client(os.environ)[0]
    command = find_refresh(context)
    answers, _ = make_client(os.environ, make_patience(print))
    answerer = Answerer(answers, context, command, print)
    try:
        with answerer.answering():
            authorization = authorize_refresh(client, context, command)
    except (UsageError, GitHubError):
        write_outputs(os.environ, make_outputs(None))
        append_summary(os.environ, "Baselines are not refreshed; the log of the step says why.")
        raise
    write_outputs(os.environ, make_outputs(authorization))
    if authorization is None:
        print("Nobody asked for a refresh.")
        return ExitCode.PASS
    print(f"{authorization.author} may refresh {authorization.head_ref} at {authorization.head_sha}.")
    answerer.react(Reaction.GOES_ON)
    _warn_of_environment(client, context)
    return ExitCode.PASS


def _warn_of_environment(client: GitHubClient, context: JobContext) -> None:
    try:
        lack = describe_protection(client, context)
    except GitHubError as error:
        print(f"Whether somebody must approve the refresh could not be asked: {error.what}. {error.fix}")
        return
    if lack:
        write_annotations([render_annotation("warning", lack)])
        append_summary(os.environ, lack)
