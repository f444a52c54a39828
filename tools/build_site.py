"""Build the site of docs/ and fail on a page outside the navigation or a link that leads nowhere.

    python tools/build_site.py site [owner/name]

Links to files outside docs/ lead to the repository on GitHub where it is named, and are plain text elsewhere.
The schemas of the files that users write lie in ``schemas/`` of the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SCHEMAS = ("config", "registry", "accepted", "anchor")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def point_outside(text: str, page: Path, repository: str) -> str:
    """Return a page's text with its links to files outside docs/ turned into links to the repository.

    The README becomes a page of docs/.
    """

    def replace(link: re.Match[str]) -> str:
        path, _, anchor = link[2].partition("#")
        target = (page.parent / path).resolve()
        if not path or "://" in path:
            return link[0]
        if target == DOCS / "README.md":
            return link[1]
        if target.is_relative_to(DOCS):
            return link[0] if page.is_relative_to(DOCS) else f"[{link[1]}]({link[2].removeprefix('docs/')})"
        if target == ROOT / "README.md":
            return f"[{link[1]}]({'../' * (len(page.relative_to(DOCS).parts) - 1)}index.md#{anchor})"
        if not repository:
            return link[1]
        url = f"https://github.com/{repository}/blob/main/{target.relative_to(ROOT).as_posix()}"
        return f"[{link[1]}]({url}{'#' + anchor if anchor else ''})"

    return _LINK.sub(replace, text)


def list_navigation(entry: object) -> set[str]:
    """List the pages of the navigation, or of a part of it."""
    match entry:
        case str():
            return {entry}
        case list():
            return set().union(*map(list_navigation, entry))
        case dict():
            return set().union(*map(list_navigation, entry.values()))
    return set()


_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_ITEM = re.compile(r"^(?:\d+\. |[-*] )\S.*", re.MULTILINE)


def find_glued_items(site: Path) -> Iterator[str]:
    """Find what was meant as a list's next item and became a line of the paragraph before: page and line."""
    for page in sorted(site.rglob("*.html")):
        for paragraph in _PARAGRAPH.findall(page.read_text(encoding="utf-8")):
            yield from (f"{page.relative_to(site)}: {line}" for line in _ITEM.findall(paragraph))


def main(out: str, repository: str = "") -> int:
    """Build into ``out``; return the process exit code."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"} | {"index.md"}
    if odd := sorted(pages ^ list_navigation(config["nav"])):
        print(f"mkdocs.yml: pages that are only in docs/ or only in nav: {', '.join(odd)}")
        return 1
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(DOCS, work / "docs", ignore=shutil.ignore_patterns("README.md"))
        for page in pages:
            source = ROOT / "README.md" if page == "index.md" else DOCS / page
            text = point_outside(source.read_text(encoding="utf-8"), source, repository)
            (work / "docs" / page).write_text(text, encoding="utf-8")
        if repository:
            owner, _, project = repository.partition("/")
            config["repo_url"] = f"https://github.com/{repository}"
            config["site_url"] = f"https://{owner}.github.io/{project}/"
        (work / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=work, check=False)
        if built.returncode:
            return built.returncode
        if glued := list(find_glued_items(work / "site")):
            print("\n".join(["list items within a paragraph: a blank line before each is missing", *glued]))
            return 1
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(work / "site", out)
        (Path(out) / "schemas").mkdir()
        for schema in SCHEMAS:
            shutil.copy(ROOT / "gate" / "schemas" / f"{schema}.json", Path(out) / "schemas")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
