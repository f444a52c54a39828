"""Reports: one pure function a format, from a verdict to text; :data:`FORMATS` is the table of them.

Importing this imports neither rich nor a format: each is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from gate.errors import UsageError
from gate.records import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFormat:
    """A format: the function that renders it, and the file that a command which judges leaves, if any."""

    name: str
    function: str  # of a verdict alone, as ``module:name``
    file: str = ""

    def render(self, verdict: Verdict) -> str:
        """Render a verdict."""
        return str(resolve_name(self.function)(verdict))


# In the order in which --format lists them.
FORMATS: Mapping[str, ReportFormat] = {
    one.name: one
    for one in (
        ReportFormat(name="text", function="gate.report.text:render_text"),
        ReportFormat(name="markdown", function="gate.report.markdown:render_markdown", file="report.md"),
        ReportFormat(name="html", function="gate.report.page.pages:render_verdict_page", file="report.html"),
        ReportFormat(name="json", function="gate.files.codec:encode_verdict"),
        ReportFormat(name="junit", function="gate.report.junit:render_junit", file="junit.xml"),
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
