"""Whether a pull request touches what it is judged by: configuration, registry, baselines, workflows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from gate.github.client import GitHubClient
from gate.records import Code, Fact
from gate.units import count_noun

MAX_FILES = 300  # three requests; a change of more files is looked at in another way


def note_touched(
    client: GitHubClient, repository: str, number: int, rules: Iterable[str]
) -> tuple[Fact, ...]:
    """Note which of ``rules`` (paths in the repository) a pull request changes.

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
    named = tuple(f"{rule} ({count_noun(count, 'file')})" for rule, count in touched.items())
    return (
        *([Fact(code=Code.TOUCHES_RULES, names={"rules": named})] if named else []),
        *([Fact(code=Code.FILES_UNSEEN, numbers={"files": MAX_FILES})] if seen == MAX_FILES else []),
    )


def _list_names(file: Mapping[str, Any]) -> list[str]:
    return [name for key in ("filename", "previous_filename") if isinstance(name := file.get(key), str)]


def _is_below(name: str, rule: str) -> bool:
    return name == rule or name.startswith(f"{rule.rstrip('/')}/")
