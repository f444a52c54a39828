"""The types of the keys that people write, each with its limits."""

from __future__ import annotations

from typing import Annotated

from gate.devices import DEVICE_FORMS, DEVICE_PATTERN
from gate.records.bounds import Amount, Expiry, Fraction, Pattern, Range

VERSION = 1
REFERENCE_PACKAGE = "gate.models"  # of the models that come with compile-gate

Version = Annotated[int, Range(noun="a whole number", minimum=VERSION, maximum=VERSION)]
Seconds = Annotated[float, Range(above=0)]
MAX_COUNT = 10_000  # of trials, calls, seeds: more is a slip of the finger
Count = Annotated[int, Range(noun="a whole number", minimum=1, maximum=MAX_COUNT)]
Threads = Annotated[int, Range(noun="a whole number", minimum=1, maximum=1024)]
MetricUnits = Annotated[float, Range(noun="a number (of seconds, bytes or log2 units)", minimum=0)]
# Beyond eleven times the baseline a threshold is the absence of one: quarantine says that aloud.
Share = Annotated[
    float,
    Fraction(
        percent=r"1000(\.0{1,20})?|[0-9]{1,3}(\.[0-9]{1,20})?",
        bare=Range(minimum=0, below=1),
        what="a percentage up to 1000%, or a fraction below 1",
    ),
]
# With more than an even chance of a false alarm a verdict says nothing.
ErrorBudget = Annotated[
    float,
    Fraction(
        percent=r"(?!0+(\.0+)? ?%)([0-4]?[0-9](\.[0-9]{1,20})?|50(\.0{1,20})?)",
        bare=Range(above=0, maximum=0.5),
        what="a percentage above 0% and up to 50%, or such a fraction",
    ),
]
Allowance = Annotated[float | str, Amount()]
Identifier = Annotated[str, Pattern(regex="[a-z0-9_]+", what="a name of a-z, 0-9 and _")]
Package = Annotated[str, Pattern(regex="[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", what="a package's name")]
Tag = Annotated[str, Pattern(regex="[A-Za-z0-9_.-]+", what="a tag of letters, digits, _, . and -")]
Text = Annotated[str, Pattern(regex=r"[\s\S]*\S[\s\S]*", what="a text that is not empty")]
PathText = Annotated[
    str, Pattern(regex=r"[^\x00]*[^\x00\s][^\x00]*", what="a path: text that is not empty, without NUL")
]
DeviceName = Annotated[str, Pattern(regex=DEVICE_PATTERN, what=DEVICE_FORMS)]
Factory = Annotated[
    str, Pattern(regex=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", what="package.module:function")
]
Backend = Annotated[
    str, Pattern(regex="[A-Za-z0-9_][A-Za-z0-9_.-]*", what="the name of a backend of torch.compile")
]
Node = Annotated[str, Pattern(regex=r"[^:]+\.py::.+", what="a pytest node id: path/test_x.py::test_name")]
Date = Annotated[str, Expiry()]
Sha = Annotated[str, Pattern(regex="[0-9a-f]{40}([0-9a-f]{24})?", what="a whole commit id")]
_ID = "a-z0-9."  # of an environment: a slug of its device, its torch and a hash
EnvironmentId = Annotated[str, Pattern(regex=rf"[{_ID}-]{{1,200}}", what="the id of an environment")]
EnvironmentIds = Annotated[
    str, Pattern(regex=rf"[{_ID}*?-]{{1,200}}", what="the id of an environment, or a pattern with `*`")
]
Login = Annotated[str, Pattern(regex=r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", what="a login of GitHub")]
CaseId = Annotated[str, Pattern(regex=r"((?![*?\[])[!-~]){1,300}", what="a case id, and no pattern")]
# Neither controls nor what turns a line around or hides in it.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
LINE = Pattern(regex=rf"(?=.*\S)[^{_UNSEEN}]{{1,300}}", what="one line of 1 to 300 visible characters")
Line = Annotated[str, LINE]
