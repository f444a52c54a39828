"""The ``github`` commands, for jobs with a token: publish a verdict, answer comments. No measured code."""

import os
import re
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from gate.cli.setup import load_configured
from gate.decide.conclude.exit_codes import FailOn
from gate.errors import ExitCode, UsageError
from gate.files.invalid import quote_value
from gate.git import find_checkout
from gate.github.accept_command import accept_regression
from gate.github.client import GitHubClient, Patience
from gate.github.comment_command import (
    ANSWERING,
    GOES_ON,
    Answerer,
    authorize,
    describe_protection,
    make_outputs,
)
from gate.github.finding import Settings, fetch_run
from gate.github.job import (
    JobContext,
    append_summary,
    find_text,
    load_context,
    make_line,
    render_annotation,
    write_annotations,
    write_outputs,
)
from gate.github.propose import ProposalOutcome, RefreshRequest, propose_refresh
from gate.github.publish import publish
from gate.github.sticky import DEFAULT_AUTHOR
from gate.github.transport import GitHubError
from gate.project.config import Config, load_config
from gate.project.registry import load_cases
from gate.publish.comment_commands import (
    ACCEPT_COMMAND,
    REFRESH_COMMAND,
    AcceptTerms,
    CommandRefusedError,
    render_accepted,
)
from gate.publish.results import CommentWhen
from gate.publish.submitted import WORKFLOWS
from gate.publish.trusted import Base
from gate.report.markdown import escape_text
from gate.store.baselines import load_baselines
from gate.store.policy import DEFAULT_KEY, load_policy, name_gate
from gate.units import format_noun

DEFAULT_API = "https://api.github.com"
# Modes of the action, in workflows that answer /accept-regression and /refresh-baselines.
ACCEPT_MODE = "accept-regression"
PROPOSE_MODE = "propose-baselines"
_RESPOND = "respond.yml"  # of this repository: has both
_LINK = re.compile(r"https?://[A-Za-z0-9./:_~%@?=&+-]+")
_MEASURED = "success"  # how the job that measures ends where it did
# The log is linked below an answer; nothing of it is repeated in the repository's name.
_NOT_MEASURED = "The baselines could not be measured: the log of the job that measures says why."
_REFUSED = "No baselines are proposed: the log of the job that proposes says why."
_UNCHANGED = "Nothing changed: the stored baselines are the same, and no pull request is needed."


def choose_checkout(directory: Path, workspace: Path) -> Path:
    """The clone around ``directory``: ``actions/checkout`` with ``path:`` clones to below the workspace.

    git is not asked: without git that action downloads the files alone.
    """
    return find_checkout(directory) or workspace.resolve()


def to_repository_path(path: Path, top: Path) -> str:
    """As git writes it; empty where it lies outside the repository."""
    absolute = path.resolve()
    is_inside = absolute != top and absolute.is_relative_to(top)
    return absolute.relative_to(top).as_posix() if is_inside else ""


def has_mode(directory: Path, mode: str) -> bool:
    used = rf"""\bmode['"]?: *['"]?{mode}(?![\w-])|/{_RESPOND}\b"""
    is_used = re.compile(f"^[^#\n]*(?:{used})", re.MULTILINE)
    paths = (path for path in directory.joinpath("workflows").glob("*.y*ml") if path.is_file())
    return any(is_used.search(path.read_text(encoding="utf-8", errors="replace")) for path in paths)


def run_publish(options: Namespace) -> int:
    """0 whatever the verdict is.

    Raises:
        UsageError: An option or the environment is unusable.
    """
    usual = CommentWhen.ON_CHANGE if options.issue else CommentWhen.ALWAYS
    config, key = load_config(options.config), options.comment_key
    suffix = "" if key == DEFAULT_KEY or not config.status else f" ({key})"
    job = load_context(os.environ)
    client = make_client(job)
    settings = Settings(
        run_id=options.run_id,
        base=load_base(config, job.workspace, key),
        author=client.find_login() or DEFAULT_AUTHOR,
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


def make_client(context: JobContext, patience: Patience | None = None) -> GitHubClient:
    """With the environment's token, for the job's repository.

    Raises:
        UsageError: There is no token, or the address is not https.
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(
            "there is no usable token in GITHUB_TOKEN", "Give the step `token: ${{ github.token }}`."
        )
    api_url = os.environ.get("GITHUB_API_URL") or DEFAULT_API
    if not api_url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise UsageError("GITHUB_API_URL is not an https address", "Run this in GitHub Actions, or fix it.")
    return GitHubClient(api_url=api_url, token=token, repository=context.repository, patience=patience)


def load_base(config: Config, workspace: Path = Path(), key: str = DEFAULT_KEY) -> Base:
    """Of the commit that is checked out below ``workspace``.

    Raises:
        FileError: One of its files cannot be used.
    """
    source = Path(config.source)
    top = choose_checkout(source.parent, workspace)
    rules = (to_repository_path(rule, top) for rule in (source, *config.registry, config.baselines))
    return Base(
        cases=load_cases(config),
        baselines=load_baselines(config.baselines),
        policy=load_policy(config),
        rules=(*(rule for rule in rules if rule), WORKFLOWS),
        can_accept=has_mode(top / WORKFLOWS, ACCEPT_MODE),
        can_refresh=has_mode(top / WORKFLOWS, PROPOSE_MODE),
        gate=name_gate(source, top, key),
        is_configured=config.is_found,
    )


def run_authorize(options: Namespace) -> ExitCode:
    """A comment that is no command is no error: the output ``authorized`` is then false."""
    context, name = load_context(os.environ), f"/{options.asked}"
    client, answerer = make_client(context), make_answerer(context, name)
    try:
        with answerer.answering():
            request = authorize(client, context, name)
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
        answerer.react(GOES_ON)
        _warn_of_environment(client)
    return ExitCode.PASS


def make_answerer(context: JobContext, name: str) -> Answerer:
    return Answerer(make_client(context, ANSWERING), context, name)


def _warn_of_environment(client: GitHubClient) -> None:
    try:
        lack = describe_protection(client)
    except GitHubError as error:
        print(f"Could not find out whether somebody must approve the refresh: {error.what}. {error.fix}")
        return
    if lack:
        write_annotations([render_annotation("warning", lack)])
        append_summary(os.environ, lack)


def run_propose(options: Namespace) -> ExitCode:
    context = load_context(os.environ)
    answerer = make_answerer(context, REFRESH_COMMAND)
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
    text = _describe_answer(outcome)
    _print_proposal(outcome, text)
    answerer.comment(text)
    return ExitCode.PASS


def _propose(options: Namespace, context: JobContext) -> ProposalOutcome:
    config, client = load_configured(options), make_client(context)
    request = _make_request(options, context, config)
    if not context.run_id.isdecimal():
        what = f"GITHUB_RUN_ID is {quote_value(context.run_id)}, and no run of a workflow"
        raise UsageError(what, "Run this in GitHub Actions, after the job that measures.")
    run = fetch_run(client, int(context.run_id), options.artifact_name)
    return propose_refresh(client, context, request, run, load_policy(config))


def _make_request(options: Namespace, context: JobContext, config: Config) -> RefreshRequest:
    top = choose_checkout(Path.cwd(), context.workspace)
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


def _describe_answer(outcome: ProposalOutcome) -> str:
    if not outcome.url:
        return _UNCHANGED
    link = f": {outcome.url}" if _LINK.fullmatch(outcome.url) else ""
    if outcome.trouble:
        return f"The new baselines are on a branch; open the pull request yourself{link}"
    return f"The new baselines are proposed{link}"


def _print_proposal(outcome: ProposalOutcome, text: str) -> None:
    write_outputs(os.environ, {"pull-request-url": outcome.url})
    reason = make_line(outcome.trouble)
    print(f"{text} ({reason})" if reason else text)
    append_summary(os.environ, f"{text} ({escape_text(reason)})" if reason else text)
    warnings = [f"Open the pull request yourself: {outcome.url}"] if outcome.trouble else []
    if outcome.setbacks:
        warnings.append(f"Worse in {format_noun(outcome.setbacks, 'metric')}: the pull request asks why.")
    write_annotations(render_annotation("warning", make_line(text)) for text in warnings)


def run_accept_regression(options: Namespace) -> ExitCode:
    context, config = load_context(os.environ), load_configured(options)
    client, source = make_client(context), Path(config.source)
    top = choose_checkout(source.parent, context.workspace)
    terms = AcceptTerms(
        cases=load_cases(config),
        workflow=options.workflow,
        artifact_name=options.artifact_name,
        today=datetime.now(UTC).date().isoformat(),
        gate=name_gate(source, top, options.comment_key),
    )
    answerer = make_answerer(context, ACCEPT_COMMAND)
    with answerer.answering():
        request = authorize(client, context, ACCEPT_COMMAND)
        if request is None:
            raise UsageError("this comment accepts nothing", "Run this after the mode authorize-command.")
        if request.head_sha != options.head_sha:
            what = "somebody pushed to the pull request since it was asked"
            raise CommandRefusedError(what, "Look at what was pushed, and ask again.")
        accepted = accept_regression(client, request, terms)
    answerer.react(GOES_ON)
    answer = render_accepted(accepted)
    answerer.comment(answer)
    write_outputs(os.environ, {"head-sha": request.head_sha, "pr-number": request.pr_number})
    append_summary(os.environ, answer)
    count = len(accepted.rows)
    print(f"{request.author} accepts {count} of what regressed at {request.head_sha}.")
    if accepted.trouble:
        text = f"Stored, but the check was not started again: {accepted.trouble}"
        write_annotations([render_annotation("warning", text)])
    return ExitCode.PASS
