"""Every link between documents leads somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def make_anchor(heading: str) -> str:
    """As GitHub: lower case, without punctuation, dashes for blanks."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def find_broken(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return True
    if not anchor:
        return False
    return anchor not in {
        make_anchor(heading) for heading in _HEADING.findall(target.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """File and heading of each link exist."""
    page = ROOT / name
    links = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if "://" not in link and find_broken(page, link)] == []
