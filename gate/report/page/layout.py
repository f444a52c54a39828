"""Fills a template, and puts style, script and their permission into the page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gate.version import __version__

_DIRECTORY = Path(__file__).with_name("templates")
# What lies in the page itself may be used, nothing may be fetched, sent, framed in or submitted.
_POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; base-uri 'none';"
    " form-action 'none'"
)


def render_page(template: str, **values: object) -> str:
    """Fill a template of this package; it extends ``base.html`` and escapes all that is not a drawing.

    ``values`` are its ``title`` and the template's own. One that is lacking is an error.
    """
    style, script = _load("style.css"), _load("page.js")
    policy = _POLICY.format(style=_hash(style), script=_hash(script))
    page = _make_environment().get_template(template)
    return page.render(style=style, script=script, policy=policy, gate_version=__version__, **values)


@cache
def _make_environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_DIRECTORY),
        autoescape=True,  # of every template, whatever its name
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _load(name: str) -> Markup:
    """A file of this package, which goes into a page as it is."""
    return Markup((_DIRECTORY / name).read_text(encoding="utf-8"))  # noqa: S704 - nobody else's text


def _hash(text: str) -> str:
    """The name by which a policy permits an inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
