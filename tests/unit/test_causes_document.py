import re
from pathlib import Path

from gate.decide.explain.inquiry import CAUSES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "causes.md"


def test_page_on_causes_has_every_weight() -> None:
    """The table has the code's weights in their order."""
    rows = re.findall(r"^\| `(\w+)` \| ([0-9.]+) \|", PAGE.read_text(), re.MULTILINE)

    assert [(code, float(weight)) for code, weight in rows] == [
        (code.value, weight) for code, (weight, _) in CAUSES.items()
    ]
