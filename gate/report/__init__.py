"""Reports: :data:`FORMATS` names one pure function a format, from a verdict to text.

Neither rich nor a format is imported before it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from gate.errors import UsageError
from gate.records.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """The function that renders a verdict, as ``module:name``, and the name of its file."""

    function: str
    file: str = ""  # of a command that judges; "" where there is none


# In the order in which --format lists them.
FORMATS: Mapping[str, ReportFormat] = {
    "text": ReportFormat("gate.report.text:render_text"),
    "markdown": ReportFormat("gate.report.markdown:render_markdown", "report.md"),
    "html": ReportFormat("gate.report.pages:render_verdict_page", "report.html"),
    "json": ReportFormat("gate.files.codec:encode_verdict"),
    "junit": ReportFormat("gate.report.junit:render_junit", "junit.xml"),
}


def render(verdict: Verdict, report_format: str = "text") -> str:
    """Return the report of ``verdict`` in one of :data:`FORMATS`.

    Raises:
        UsageError: There is no such format.
    """
    if report_format not in FORMATS:
        raise UsageError(f"no report format {report_format!r}", f"Choose one of {', '.join(FORMATS)}.")
    return str(resolve_name(FORMATS[report_format].function)(verdict))
