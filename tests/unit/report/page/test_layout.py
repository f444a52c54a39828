"""A page loads nothing, and permits only its own style and script."""

import base64
import hashlib
import re

import pytest
from jinja2 import UndefinedError

from gate.report.pages import render_page


def test_policy() -> None:
    """The policy permits the page's style and script by their hashes."""
    page = render_page("base.html", title="A page")

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy
    assert style
    assert script
    permitted = {part.split()[0]: part.split()[1] for part in policy[1].replace("&#39;", "'").split("; ")}
    assert permitted == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": f"'sha256-{hash_text(style[1])}'",
        "script-src": f"'sha256-{hash_text(script[1])}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def hash_text(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_nothing_is_fetched() -> None:
    """No page has an address to load from."""
    page = render_page("base.html", title="A page")

    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "url(" not in page
    assert "@import" not in page


def test_missing_value() -> None:
    """A template that lacks a value is an error, not a gap."""
    with pytest.raises(UndefinedError):
        render_page("base.html")


def test_escaped() -> None:
    """Values in a template are escaped."""
    page = render_page("base.html", title="</title><script>alert(1)</script>")

    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>" in page
