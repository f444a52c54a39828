"""A command in a comment on a pull request: who wrote it, whether it may go on, and the answer.

Only people who may push can give commands, and each is pinned to the current head. A refresh runs a branch's
code on a GPU host, so no fork may have one. The comment is hostile text: refusals are fixed sentences without
any of it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from gate.errors import UsageError
from gate.github.client import GitHubClient, Patience, quote_part
from gate.github.job import JobContext, find_text, find_value, write_log
from gate.github.run_events import PullRequest, parse_pull, parse_time
from gate.github.transport import GitHubError, MissingError, get_number
from gate.publish.comment_commands import (
    REFRESH_COMMAND,
    AuthorizedCommand,
    CommandRefusedError,
    CommandWords,
    parse_select,
    parse_words,
    split_command,
)
from gate.records.bounds import is_sha

# What the API calls admin and write; it maps maintain to write, and roles of one's own to their base.
WRITERS = frozenset(("admin", "write"))
ENVIRONMENT = "refresh-baselines"  # of the job that measures, in gate-refresh.yml
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})")
_BRANCH = "refs/heads/"
# Rules of an environment that let nobody say no: a pause, and which branch's workflow may use it.
_RULES_WITHOUT_REVIEW = frozenset(("wait_timer", "branch_policy"))
_ADVICE = "Nobody has to approve what a refresh runs: add required reviewers in the repository's settings."
GOES_ON = "rocket"  # the reaction to a command that is done
ANSWERING = Patience(max_wait_s=5.0, exchange_s=10.0)  # the decision must not wait for a smiley


@dataclass(frozen=True, kw_only=True, slots=True)
class CommentCommand:
    """``words`` follow the command on the comment's first line, and are foreign; ``user`` wrote it."""

    name: str
    words: tuple[str, ...]
    number: int  # of the pull request, or of an issue, where commands do nothing
    comment_id: int
    created: str  # as 2026-11-01T12:00:00Z; "" where GitHub does not say
    user: Mapping[str, object]
    is_on_pull: bool


def find_command(context: JobContext, name: str) -> CommentCommand | None:
    """An edited comment counts as none."""
    event = context.event
    words = split_command(find_text(event, "comment.body"), name)
    is_new = context.event_name == "issue_comment" and find_text(event, "action") == "created"
    comment_id, user = find_value(event, "comment.id"), find_value(event, "comment.user")
    if words is None or not is_new:
        return None
    return CommentCommand(
        name=name,
        words=words,
        number=get_number(event, "issue.number"),
        comment_id=comment_id if isinstance(comment_id, int) else 0,
        created=parse_time(find_value(event, "comment.created_at")),
        user=user if isinstance(user, Mapping) else {},
        is_on_pull=find_value(event, "issue.pull_request") is not None,
    )


def authorize(client: GitHubClient, context: JobContext, name: str) -> AuthorizedCommand | None:
    """``None`` where nobody gave the command ``name``.

    Raises:
        CommandRefusedError: The comment's command is refused; the message says why.
        UsageError: A dispatch by hand is refused, or the event is another.
    """
    is_refresh = name == REFRESH_COMMAND
    if is_refresh and context.event_name == "workflow_dispatch":
        return _authorize_dispatch(client, context)
    if context.event_name != "issue_comment":
        events = "issue_comment or workflow_dispatch" if is_refresh else "issue_comment"
        what = f"{name} cannot be asked for by the event {context.event_name!r}"
        raise UsageError(what, f"Start this workflow by {events}.")
    if (command := find_command(context, name)) is None:
        return None
    author, words = _read_command(client, command)
    pull = _get_pull(client, context, command)
    if is_refresh and pull.head_repository != pull.base_repository:
        raise CommandRefusedError(
            "the pull request comes from a fork: its code must not run where a refresh does",
            "Push the branch to this repository after reviewing it, and ask there.",
        )
    if not pull.head_sha.startswith(words.sha):
        raise CommandRefusedError(
            f"the commit in the command is not the head of the pull request, which is {pull.head_sha[:12]}",
            "Look at what was pushed since, then ask for that commit.",
        )
    return AuthorizedCommand(
        author=author,
        asked=command.created,
        head_sha=pull.head_sha,
        head_branch=pull.head_branch,
        head_repository=pull.head_repository,
        pr_number=command.number,
        words=words,
    )


def make_outputs(name: str, request: AuthorizedCommand | None) -> Mapping[str, object]:
    if request is None:
        return {"authorized": "false"}
    outputs = {"authorized": "true", "head-sha": request.head_sha, "pr-number": request.pr_number or ""}
    if name == REFRESH_COMMAND:
        outputs |= {"head-ref": request.head_branch, "select": request.words.select}
    return outputs


def _authorize_dispatch(client: GitHubClient, context: JobContext) -> AuthorizedCommand:
    ref = find_text(context.event, "ref")
    if not ref.startswith(_BRANCH) or not is_sha(context.sha):
        raise UsageError("a refresh is for a branch", "Choose a branch when you start the workflow.")
    select = find_text(context.event, "inputs.select").strip()
    if select and not parse_select(f"select={select}"):
        raise UsageError("the input select is not a selection", "Write it as in tag:smoke,bert/*.")
    return AuthorizedCommand(
        author=check_writer(client, find_value(context.event, "sender")),
        head_sha=context.sha,
        head_branch=ref.removeprefix(_BRANCH),
        words=CommandWords(select=select),
    )


def check_writer(client: GitHubClient, user: object) -> str:
    """Ask GitHub, since the event may be outdated; return the login.

    Raises:
        CommandRefusedError: They may not write, or are no person.
    """
    login = find_text(user, "login")
    if not _LOGIN.fullmatch(login) or find_text(user, "type") != "User":
        raise CommandRefusedError("this must be asked for by a person", "Write the comment yourself.")
    denied = CommandRefusedError(
        "this needs the right to write to the repository", "Ask somebody who has it to comment."
    )
    try:
        answer = client.get(f"collaborators/{quote_part(login)}/permission")
    except MissingError:
        raise denied from None
    if find_value(answer, "permission") not in WRITERS or find_text(answer, "user.login") != login:
        raise denied
    return login


def _read_command(client: GitHubClient, command: CommentCommand) -> tuple[str, CommandWords]:
    try:
        words = parse_words(command.name, command.words)
    except CommandRefusedError:
        try:
            check_writer(client, command.user)
        except CommandRefusedError as denied:
            denied.is_answered = False
            raise denied from None
        raise
    return check_writer(client, command.user), words


def _get_pull(client: GitHubClient, context: JobContext, command: CommentCommand) -> PullRequest:
    if not command.is_on_pull:
        raise CommandRefusedError(f"{command.name} works on pull requests only", "Comment on a pull request.")
    pull = parse_pull(client.get(f"pulls/{command.number}"))
    if not pull.is_open:
        raise CommandRefusedError("the pull request is closed", "Reopen it, and ask again.")
    if pull.base_repository != find_value(context.event, "repository.id"):
        raise CommandRefusedError("GitHub does not name the pull request's head", "Try again later.")
    return pull


def describe_protection(client: GitHubClient) -> str:
    """Empty where somebody must approve what the environment measures."""
    try:
        environment = client.get(f"environments/{ENVIRONMENT}")
    except MissingError:
        return f"There is no environment {ENVIRONMENT}: GitHub makes it when it is first used. {_ADVICE}"
    rules = find_value(environment, "protection_rules")
    kinds = {find_text(rule, "type") for rule in rules} if isinstance(rules, list) else set()
    return (
        "" if kinds - _RULES_WITHOUT_REVIEW else f"The environment {ENVIRONMENT} has no reviewers. {_ADVICE}"
    )


class Answerer:
    """Answers a comment; failures are logged, and are no error."""

    def __init__(self, client: GitHubClient, context: JobContext, name: str) -> None:
        self._client = client
        self._context = context
        command = find_command(context, name)
        # A bot gets no answer: two bots could go on talking for ever.
        self._command = command if command is not None and command.user.get("type") == "User" else None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Show that the command was read, and answer with the refusal that the block raises."""
        self.react("eyes")
        try:
            yield
        except CommandRefusedError as error:
            self._refuse(error.what if error.is_answered else "", error.fix)
            raise
        except GitHubError:
            self._refuse("GitHub could not be asked whether this is allowed", "Comment again later.")
            raise

    def _refuse(self, what: str, fix: str) -> None:
        self.react("confused")
        if self._command is not None and what:
            self.comment(f"`{self._command.name}` is refused: {what}. {fix}")

    def react(self, reaction: str) -> None:
        if self._command is not None and self._command.comment_id:
            self._post(f"comments/{self._command.comment_id}/reactions", {"content": reaction})

    def comment(self, text: str) -> None:
        if self._command is None:
            return
        number, asked_id = self._command.number, self._command.comment_id
        page = f"{self._context.server_url}/{self._context.repository}/issues/{number}"
        link = f"[this comment]({page}#issuecomment-{asked_id})" if asked_id else "a comment"
        origin = f"In answer to {link}; [the run]({self._context.run_url}). Written by compile-gate."
        self._post(f"{number}/comments", {"body": f"{text}\n\n<sub>{origin}</sub>\n"})

    def _post(self, path: str, body: Mapping[str, str]) -> None:
        try:
            self._client.post(f"issues/{path}", body)
        except GitHubError as error:
            write_log(f"The comment could not be answered: {error.what}. {error.fix}")
