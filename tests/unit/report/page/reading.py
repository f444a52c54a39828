"""Parses a page as a browser does, and reads its text."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from tinyhtml5.parser import HTMLParser

_BLOCKS = frozenset(
    (
        *("h1", "h2", "h3", "h4", "p", "li", "tr", "dt", "dd", "summary", "figcaption", "pre"),
        *("caption", "label", "button", "header", "footer"),
    )
)
_SKIPPED = frozenset({"style", "script", "head"})


def parse(page: str) -> tuple[ET.Element, list[object]]:
    """Parse a page by the rules of HTML into its tree and its faults."""
    parser = HTMLParser(namespace_html_elements=False)
    root = parser.parse(page)
    return root, list(parser.errors)


def read_text(root: ET.Element) -> str:
    """Read the visible text, a block a line; of a chart its label."""
    lines = "".join(_walk(root)).split("\n")
    return "\n".join(line for line in (" ".join(raw.split()) for raw in lines) if line) + "\n"


def _walk(element: ET.Element) -> Iterator[str]:
    tag = str(element.tag)
    if tag.endswith("}svg"):
        if label := element.get("aria-label", ""):
            yield f" [{label}] "
        return
    if tag in _SKIPPED:
        return
    yield "\n" if tag in _BLOCKS else " | " if tag in {"td", "th"} else ""
    yield element.text or ""
    for child in element:
        yield from _walk(child)
        yield child.tail or ""
    yield "\n" if tag in _BLOCKS else ""
