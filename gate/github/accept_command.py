"""``/accept-regression``: which run a comment is about, and storing what it accepts.

Anybody who may write to the repository may accept; no code of the change runs, so forks are fine. The verdict
is an artifact that anybody could have written: only its numbers, metrics and cases of the default branch
count.
"""

from collections.abc import Sequence
from dataclasses import replace

from gate.errors import FileError
from gate.github.client import GitHubClient, quote_part
from gate.github.finding import fetch_verdict, find_acceptances, get_artifact
from gate.github.git_data import GitData
from gate.github.run_events import got_other_base, list_pulls_of_head, parse_workflow_run
from gate.github.transport import GitHubError, MissingError, RejectedError, UncertainWriteError
from gate.publish.comment_commands import (
    Accepted,
    AcceptTerms,
    AuthorizedCommand,
    CommandRefusedError,
    accept_verdict,
    write_message,
)
from gate.publish.submitted import CiRun, RefusedError
from gate.records.cases import Acceptance
from gate.store.commit_files import (
    BRANCH,
    DIRECTORY,
    MAX_ACCEPTED,
    MAX_COMMIT_BYTES,
    merge_acceptances,
    name_commit_file,
    render_commit_file,
)

MAX_TRIES = 5  # each loses to another comment that was accepted within the same second or two


def get_failed_run(client: GitHubClient, workflow: str, request: AuthorizedCommand) -> CiRun:
    """``workflow`` is the path of the gate's file.

    Raises:
        CommandRefusedError: No run of this head failed, for this base, before the comment.
    """
    short = request.head_sha[:12]
    runs = _list_runs(client, workflow, request)
    if not runs:
        raise CommandRefusedError(f"the gate has not run for {short}", "Wait until it has ended.")
    run = runs[-1]
    if not run.conclusion:
        raise CommandRefusedError(
            f"the gate still runs for {short}", "Wait until it has ended, and look at what it says."
        )
    if run.conclusion != "failure":
        raise CommandRefusedError(
            f"the gate ended with {run.conclusion} for {short}", "Only what failed can be accepted."
        )
    # By GitHub's times of both. A job that refused a comment can be started again after a push, of which its
    # author saw nothing; a run keeps its time when it is started again.
    if not request.asked or not run.created:
        raise CommandRefusedError(
            "GitHub does not say whether the commit was measured after the comment", "Try again later."
        )
    if run.created >= request.asked:
        raise CommandRefusedError(
            "the commit was measured after the comment", "Look at what the check says, and comment again."
        )
    _check_only(client, run, request)
    if got_other_base(client, request.pr_number, run.created):
        raise CommandRefusedError(
            "the pull request got another base branch after the gate ran",
            "Push a commit, which may be an empty one, so that it is measured against the new base.",
        )
    return run


def _list_runs(client: GitHubClient, workflow: str, request: AuthorizedCommand) -> list[CiRun]:
    """List them by start. Other branches and forks may have runs of the same head commit."""
    name = quote_part(workflow.rpartition("/")[2])  # GitHub takes the file's name for its workflow
    path, of_head = f"actions/workflows/{name}/runs", {"head_sha": request.head_sha}
    try:
        runs = [*map(parse_workflow_run, client.paginate(path, of_head, key="workflow_runs"))]
    except MissingError:
        raise CommandRefusedError(
            "the repository has no workflow of the name in this one's input",
            "Where your gate lies in another file, name that in the input workflow.",
        ) from None
    matching = [
        run
        for run in runs
        if run.event == "pull_request"
        and run.head_sha == request.head_sha
        and run.head_repository == request.head_repository
        and run.head_branch in {request.head_branch, ""}
    ]
    return sorted(matching, key=lambda run: (run.started, run.id))


def _check_only(client: GitHubClient, run: CiRun, request: AuthorizedCommand) -> None:
    """GitHub does not say for which of several pull requests a run is."""
    for pull in list_pulls_of_head(client, run.repository, run.head_sha):
        is_alike = (pull.head_repository, pull.head_branch) == (request.head_repository, request.head_branch)
        if is_alike and pull.number != request.pr_number:
            raise CommandRefusedError(
                "another open pull request has this branch and commit, and the run may be of that",
                "Close one of them, or give it a branch and a commit of its own.",
            )


def rerun_failed_jobs(client: GitHubClient, run: CiRun) -> None:
    path = f"actions/runs/{run.id}"
    try:
        client.post(f"{path}/rerun-failed-jobs", {})
    except GitHubError as error:
        # It may have begun, by this request or somebody else's: asking again would look like a failure then.
        if parse_workflow_run(client.get(path)).attempt > run.attempt:
            return
        if not isinstance(error, UncertainWriteError):
            raise
        client.post(f"{path}/rerun-failed-jobs", {})


def accept_regression(client: GitHubClient, request: AuthorizedCommand, terms: AcceptTerms) -> Accepted:
    """Store what is accepted, and run the failed jobs again.

    Raises:
        CommandRefusedError: Nothing can be accepted; nothing was written.
    """
    run = get_failed_run(client, terms.workflow, request)
    try:
        verdict = fetch_verdict(client, run, get_artifact(client, run.id, terms.artifact_name))
    except RefusedError as error:
        raise CommandRefusedError(error.refusal.value, "Run the check again.") from None
    accepted = accept_verdict(verdict, request, terms)
    # Stored before the run starts, whose clone must find it.
    message = write_message(request, accepted)
    store_acceptances(GitData(client), accepted.acceptances, message)
    trouble = ""
    try:
        rerun_failed_jobs(client, run)
    except GitHubError as error:
        trouble = f"{error.what}. {error.fix}"
    return replace(accepted, run_url=run.url, trouble=trouble)


def store_acceptances(data: GitData, acceptances: Sequence[Acceptance], message: str) -> str:
    """Return the head of the acceptances' branch.

    Raises:
        CommandRefusedError: The stored file cannot be added to.
    """
    accepted = acceptances[0].commit
    for _ in range(MAX_TRIES):
        tip_sha = data.find_branch(BRANCH)
        tree = data.fetch_commit(tip_sha).tree if tip_sha else ""
        text = _render_merged(data, accepted, acceptances, tip_sha)
        changed = data.write_tree(tree, DIRECTORY, {name_commit_file(accepted): text})
        if changed == tree:
            return tip_sha
        commit = data.write_commit(changed, tip_sha, message)
        if data.advance_branch(BRANCH, tip_sha, commit):
            return commit
    raise RejectedError(f"the branch {BRANCH} moved on {MAX_TRIES} times meanwhile", "Comment again.")


def _render_merged(data: GitData, commit: str, acceptances: Sequence[Acceptance], tip_sha: str) -> str:
    try:
        old = find_acceptances(data, commit, tip_sha) if tip_sha else ()
    except FileError:
        raise CommandRefusedError(
            "what is stored for this commit cannot be read, and is not written over",
            f"Remove {name_commit_file(commit)} from the branch {BRANCH}, and comment again.",
        ) from None
    merged = merge_acceptances(old, acceptances)
    text = render_commit_file(commit, merged)
    if len(merged) > MAX_ACCEPTED or len(text.encode()) > MAX_COMMIT_BYTES:
        raise CommandRefusedError(
            f"more than {MAX_ACCEPTED} changes of one commit would be accepted", "Fix what they share."
        )
    return text
