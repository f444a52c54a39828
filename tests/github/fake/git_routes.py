r"""The fake GitHub's Git data API, backed by a real bare repository; permissions and pull requests too.

    github.state.git = BareRepository.create(path)
    head = github.state.git.commit({"gate.yml": "version: 1\\n"}, branch="topic")

Objects are made and read by git itself, so what a client writes can be cloned and checked.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fake.contract import make_example
from fake.routes import _REPO, Query, invalid, not_found, route
from fake.state import OWNER, State

NOT_PERMITTED = "GitHub Actions is not permitted to create or approve pull requests."
_WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (
        ("NAME", "github-actions[bot]"),
        ("EMAIL", "bot@example.org"),
        ("DATE", "1770000000 +0000"),
    )
}


class BareRepository:
    """A bare repository that plumbing commands write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> BareRepository:
        repository = cls(path)
        subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(path)], check=True)
        return repository

    def run(self, *arguments: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None) -> str:
        """Run git and return its output; a failure is an AssertionError."""
        done = self.try_run(*arguments, stdin=stdin, environ=environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().strip("\n")

    def try_run(
        self, *arguments: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        variables = {"PATH": os.environ["PATH"], "GIT_DIR": str(self.path), **_WHO, **(environ or {})}
        return subprocess.run(
            ["git", *arguments], input=stdin, env=variables, capture_output=True, check=False
        )

    def has(self, sha: str, kind: str) -> bool:
        done = self.try_run("cat-file", "-t", sha)
        return done.returncode == 0 and done.stdout.decode().strip() == kind

    def write_tree(self, base: str, entries: list[dict[str, Any]]) -> str:
        index = {"GIT_INDEX_FILE": str(self.path / "fake-index")}
        self.run("read-tree", "--empty", environ=index)
        if base:
            self.run("read-tree", base, environ=index)
        lines = []
        for entry in entries:
            sha = entry.get("sha") or self.run(
                "hash-object", "-w", "--stdin", stdin=entry["content"].encode()
            )
            lines.append(f"{entry['mode']} {sha}\t{entry['path']}\n")
        self.run("update-index", "--add", "--index-info", stdin="".join(lines).encode(), environ=index)
        return self.run("write-tree", environ=index)

    def commit(self, files: Mapping[str, str], branch: str, message: str = "A commit") -> str:
        """Commit files on top of a branch, and return the commit."""
        parent = self.find_ref(f"heads/{branch}")
        entries = [{"path": path, "mode": "100644", "content": text} for path, text in files.items()]
        tree = self.write_tree(f"{parent}^{{tree}}" if parent else "", entries)
        parents = ["-p", parent] if parent else []
        sha = self.run("commit-tree", tree, *parents, "-m", message)
        self.run("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def find_ref(self, ref: str) -> str:
        done = self.try_run("rev-parse", "--verify", "--quiet", f"refs/{ref}")
        return done.stdout.decode().strip() if done.returncode == 0 else ""

    def read(self, revision: str) -> str:
        """Read ``branch:path``."""
        return self.run("show", revision) + "\n"


def _commit(state: State, sha: str) -> dict[str, Any]:
    git: BareRepository = state.git
    tree, parents, message = git.run("show", "--no-patch", "--format=%T%n%P%n%B", sha).split("\n", 2)
    commit: dict[str, Any] = make_example(state.host, "git-commit")
    url = f"{state.api_url}/repos/x/y/git"
    commit |= {"sha": sha, "message": message, "tree": {"sha": tree, "url": f"{url}/trees/{tree}"}}
    commit["parents"] = [
        {"sha": parent, "url": f"{url}/commits/{parent}", "html_url": f"{url}/commits/{parent}"}
        for parent in parents.split()
    ]
    return commit


def _entries(state: State, sha: str, *, recursive: bool) -> list[dict[str, Any]]:
    git: BareRepository = state.git
    options = ["-r", "-t"] if recursive else []
    entries = []
    for line in git.run("ls-tree", "-z", *options, sha).split("\0"):
        if line:
            meta, path = line.split("\t", 1)
            mode, kind, blob = meta.split()
            url = f"{state.api_url}/repos/x/y/git/{kind}s/{blob}"
            entries.append({"path": path, "mode": mode, "type": kind, "sha": blob, "url": url})
    return entries


def _ref(state: State, ref: str, sha: str) -> dict[str, Any]:
    example: dict[str, Any] = make_example(state.host, "git-ref")
    example |= {"ref": f"refs/{ref}"}
    example["object"] |= {"sha": sha, "type": "commit"}
    return example


@route("GET", f"{_REPO}/git/commits/{{commit_sha}}")
def get_commit(state: State, query: Query) -> tuple[Any, ...]:
    sha = query.path["commit_sha"]
    return (200, _commit(state, sha)) if state.git.has(sha, "commit") else not_found()


@route("GET", f"{_REPO}/git/trees/{{tree_sha}}")
def get_tree(state: State, query: Query) -> tuple[Any, ...]:
    sha = query.path["tree_sha"]
    if not state.git.has(sha, "tree"):
        return not_found()
    tree: dict[str, Any] = make_example(state.host, "git-tree")
    entries = _entries(state, sha, recursive="recursive" in query.query)
    return 200, tree | {"sha": sha, "tree": entries, "truncated": state.truncates_trees}


@route("GET", f"{_REPO}/git/blobs/{{file_sha}}")
def get_blob(state: State, query: Query) -> tuple[Any, ...]:
    sha = query.path["file_sha"]
    done = state.git.try_run("cat-file", "blob", sha)
    if done.returncode:
        return not_found()
    content = base64.encodebytes(done.stdout).decode()  # GitHub breaks the lines too
    blob: dict[str, Any] = make_example(state.host, "blob")
    return 200, blob | {"sha": sha, "size": len(done.stdout), "encoding": "base64", "content": content}


@route("GET", f"{_REPO}/contents/{{path+}}")
def get_contents(state: State, query: Query) -> tuple[Any, ...]:
    git: BareRepository | None = state.git
    if git is None:
        return not_found()
    path, ref = query.path["path"], query.query.get("ref", "main")
    commit = git.find_ref(f"heads/{ref}") or (ref if git.has(ref, "commit") else "")
    sha = git.try_run("rev-parse", "--verify", "--quiet", f"{commit}:{path}").stdout.decode().strip()
    if not commit or not git.has(sha, "blob"):
        return not_found()
    content = git.try_run("cat-file", "blob", sha).stdout
    file: dict[str, Any] = make_example(state.host, "content-file-response-if-content-is-a-file")
    file |= {"name": path.rpartition("/")[2], "path": path, "sha": sha, "size": len(content)}
    return 200, file | {"type": "file", "encoding": "base64", "content": base64.encodebytes(content).decode()}


@route("POST", f"{_REPO}/git/trees")
def add_tree(state: State, query: Query) -> tuple[Any, ...]:
    base = query.body.get("base_tree", "")
    if base and not state.git.has(base, "tree"):
        return invalid("Tree", "base_tree", "invalid")
    sha = state.git.write_tree(base, query.body["tree"])
    tree: dict[str, Any] = make_example(state.host, "git-tree")
    return 201, tree | {"sha": sha, "tree": _entries(state, sha, recursive=False), "truncated": False}


@route("POST", f"{_REPO}/git/commits")
def add_commit(state: State, query: Query) -> tuple[Any, ...]:
    body = query.body
    parents = [word for parent in body["parents"] for word in ("-p", parent)]
    message = body["message"].encode()
    sha = state.git.run("commit-tree", body["tree"], *parents, "-F", "-", stdin=message)
    return 201, _commit(state, sha)


@route("GET", f"{_REPO}/git/ref/{{ref+}}")
def get_ref(state: State, query: Query) -> tuple[Any, ...]:
    sha = state.git.find_ref(query.path["ref"])
    return (200, _ref(state, query.path["ref"], sha)) if sha else not_found()


@route("POST", f"{_REPO}/git/refs")
def add_ref(state: State, query: Query) -> tuple[Any, ...]:
    ref = query.body["ref"].removeprefix("refs/")
    if state.git.find_ref(ref):
        return 422, {"message": "Reference already exists", "documentation_url": "https://docs"}
    state.git.run("update-ref", f"refs/{ref}", query.body["sha"])
    return 201, _ref(state, ref, query.body["sha"])


@route("PATCH", f"{_REPO}/git/refs/{{ref+}}")
def change_ref(state: State, query: Query) -> tuple[Any, ...]:
    ref, sha = query.path["ref"], query.body["sha"]
    old = state.git.find_ref(ref)
    if not old:
        return 422, {"message": "Reference does not exist", "documentation_url": "https://docs"}
    ahead = state.git.try_run("merge-base", "--is-ancestor", old, sha).returncode == 0
    if not ahead and not query.body.get("force"):
        return 422, {"message": "Update is not a fast forward", "documentation_url": "https://docs"}
    state.git.run("update-ref", f"refs/{ref}", sha)
    return 200, _ref(state, ref, sha)


@route("GET", f"{_REPO}/collaborators/{{username}}/permission")
def get_permission(state: State, query: Query) -> tuple[Any, ...]:
    login = query.path["username"]
    permission = state.permissions.get(login)
    if permission is None:
        return not_found()
    name = "repository-collaborator-permission-response-if-user-has-admin-permissions"
    answer: dict[str, Any] = make_example(state.host, name)
    answer |= {"permission": permission, "role_name": permission}
    answer["user"] |= {"login": login, "role_name": permission}  # the example lacks what the schema requires
    return 200, answer


@route("GET", f"{_REPO}/environments/{{environment_name}}")
def get_environment(state: State, query: Query) -> tuple[Any, ...]:
    rules = state.environments.get(query.path["environment_name"])
    if rules is None:
        return not_found()
    environment: dict[str, Any] = make_example(state.host, "environment")
    rules_by_type = {rule["type"]: rule for rule in environment["protection_rules"]}
    environment["protection_rules"] = [rules_by_type[kind] for kind in rules]
    return 200, environment | {"name": query.path["environment_name"]}


@route("POST", f"{_REPO}/pulls")
def add_pull(state: State, query: Query) -> tuple[Any, ...]:
    body = query.body
    if not state.may_open_pulls:
        return 403, {"message": NOT_PERMITTED, "documentation_url": "https://docs", "status": "403"}
    label = f"{OWNER}:{body['head']}"
    if any(pull["head"]["label"] == label and pull["state"] == "open" for pull in state.pulls.values()):
        return invalid("PullRequest", "head", "custom")
    number = next(state.ids)
    pull = state.add_pull(number, state.git.find_ref(f"heads/{body['head']}"), branch=body["head"])
    pull["base"] |= {"ref": body["base"]}
    pull |= {
        "title": body["title"],
        "body": body["body"],
        "html_url": f"https://github.com/octo-org/models/pull/{number}",
    }
    return 201, pull


@route("PATCH", f"{_REPO}/pulls/{{pull_number}}")
def change_pull(state: State, query: Query) -> tuple[Any, ...]:
    pull = state.pulls.get(int(query.path["pull_number"]))
    if pull is None:
        return not_found()
    pull |= {key: query.body[key] for key in ("title", "body", "state") if key in query.body}
    return 200, pull
