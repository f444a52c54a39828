"""The repositories that jobs clone: bare ones on disk, under the names that they have on GitHub."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from fake.git_routes import BareRepository
from workflow_files import ROOT

from gate.starter.workflow_files import load_workflows
from tests.git import run_git

TOOL = "acme/compile-gate"  # this repository
LABELS = "self-hosted, linux, gpu"
# Jobs on hosted runners that plan: they install nothing here, and no test under act is about them.
_PLANS = re.compile(r"^  plan:\n(?:(?:    .*)?\n)+|^    needs: plan\n", re.MULTILINE)
_QUEUE = re.compile(r"^\s*queue: max.*\n", re.MULTILINE)
EXAMPLES = ROOT / "examples" / "workflows"
_OURS = ("action.yml", "gate", ".github", "tools")


def adapt(text: str, commit: str, shards: int = 2) -> str:
    """Change a workflow's text where act 0.2.89 does not know what GitHub knows."""
    text = _QUEUE.sub("", _PLANS.sub("", text))
    values = {"job.workflow_repository": TOOL, "job.workflow_sha": commit, "strategy.job-total": str(shards)}
    for name, value in values.items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    return text


class Hub:
    """Where ``https://github.com/`` leads to; ``commit`` is this working tree, as a commit of ``TOOL``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "hub"
        self.called = directory / "called"  # TOOL's files, as act reads actions and called workflows
        tool = self.create(TOOL)
        tool.run("-C", str(ROOT), "add", "--", *_OURS, environ={"GIT_WORK_TREE": str(ROOT)})
        self.commit = tool.run("commit-tree", tool.run("write-tree"), "-m", "The working tree")
        tool.run("update-ref", "refs/heads/main", self.commit)
        run_git(directory, "clone", "--quiet", str(tool.path), str(self.called))
        for path in (self.called / ".github" / "workflows").glob("*.yml"):
            path.write_text(adapt(path.read_text(), self.commit))
        url = f'[url "file://{self.directory}/"]\n insteadOf = https://github.com/\n'
        (directory / ".gitconfig").write_text(f"{url}[safe]\n directory = *\n")

    def create(self, name: str) -> BareRepository:
        """Create an empty repository, in place of one of that name."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        repository = BareRepository.create(path)
        repository.run("config", "uploadpack.allowAnySHA1InWant", "true")  # as on GitHub
        return repository

    def load_workflows(self, *names: str) -> Mapping[str, str]:
        """Load example workflows as ``init`` writes them into a repository: path -> text."""
        return load_workflows(names, f"{TOOL}@{self.commit}", LABELS)

    def load_workflow(self, name: str) -> str:
        """Load an example as somebody who copies it pins it."""
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        return text.replace("OWNER/compile-gate", TOOL).replace("0" * 40, self.commit)


def merge(repository: BareRepository, base: str, head: str) -> str:
    """Make GitHub's trial merge of pull request 7."""
    tree = repository.run("merge-tree", "--write-tree", base, head).splitlines()[0]
    merged = repository.run("commit-tree", tree, "-p", base, "-p", head, "-m", "Merge")
    repository.run("update-ref", "refs/pull/7/merge", merged)
    repository.run("update-ref", "refs/pull/7/head", head)
    return merged
