"""Reports: one pure function a format, from a verdict to text; :data:`FORMATS` is the table of them.

Importing this imports neither rich nor a format: each is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from gate.errors import UsageError
from gate.records import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFormat:
    """A format: the function that renders it, and the file that a command which judges leaves, if any."""

    name: str
    module: str
    function: str  # of a verdict alone
    file: str = ""

    def render(self, verdict: Verdict) -> str:
        """Render a verdict."""
        return str(getattr(import_module(self.module), self.function)(verdict))


# In the order in which --format lists them.
FORMATS: Mapping[str, ReportFormat] = {
    one.name: one
    for one in (
        ReportFormat(name="text", module="gate.report.text", function="render_text"),
        ReportFormat(
            name="markdown", module="gate.report.markdown", function="render_markdown", file="report.md"
        ),
        ReportFormat(
            name="html", module="gate.report.page.pages", function="render_verdict_page", file="report.html"
        ),
        ReportFormat(name="json", module="gate.files.codec", function="encode_verdict"),
        ReportFormat(name="junit", module="gate.report.junit", function="render_junit", file="junit.xml"),
    )
}


def render(verdict: Verdict, report_format: str = "text") -> str:
    """Return the report of ``verdict`` in one of :data:`FORMATS`.

    Raises:
        UsageError: There is no such format.
    """
    if report_format not in FORMATS:
        raise UsageError(f"no report format {report_format!r}", f"Choose one of {', '.join(FORMATS)}.")
    return FORMATS[report_format].render(verdict)
