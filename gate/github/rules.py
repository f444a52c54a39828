"""Whether a pull request touches what it is judged by: configuration, registry, baselines, workflows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from gate.github.client import GitHubClient

WORKFLOWS = ".github"  # what runs the gate is as much of a rule as what it judges by
MAX_FILES = 300  # three requests; a change of more files is looked at in another way


def describe_touched(client: GitHubClient, repository: str, number: int, rules: Iterable[str]) -> str:
    """Describe which of ``rules`` (paths in the repository) a pull request changes; ``""`` for none.

    Only the rules are named, never a file of the pull request.

    Raises:
        GitHubError: GitHub does not tell.
    """
    known = tuple(rules)
    files = client.paginate(f"/repos/{repository}/pulls/{number}/files")
    touched: Counter[str] = Counter()
    seen = 0
    for file in islice(files, MAX_FILES):
        seen += 1
        touched.update({rule for rule in known if any(_is_below(name, rule) for name in _list_names(file))})
    beyond = f" Only the first {MAX_FILES} files were looked at." if seen == MAX_FILES else ""
    if not touched:
        return beyond.strip()
    named = ", ".join(f"{rule} ({count} file{'' if count == 1 else 's'})" for rule, count in touched.items())
    return f"This change touches what changes are judged by: {named}. Look at that first.{beyond}"


def _list_names(file: Mapping[str, Any]) -> list[str]:
    return [name for key in ("filename", "previous_filename") if isinstance(name := file.get(key), str)]


def _is_below(name: str, rule: str) -> bool:
    return name == rule or name.startswith(f"{rule.rstrip('/')}/")
