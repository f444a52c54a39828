"""Parts of a call that only some kinds have: listed side by side, in their order."""

from __future__ import annotations

from gate.records.evidence import CaseEvidence, SideEvidence
from gate.report.view import list_parts


def test_parts_stand_side_by_side() -> None:
    """A part that one side lacks is a dash there; what is no line of text is made one."""
    before = SideEvidence(parts_s={"rows=4": 0.002})
    after = SideEvidence(parts_s={"rows=4": 0.003, "rows=8\nx": 1.5})
    shown = CaseEvidence(case_id="a/b", before=before, after=after)
    assert list_parts(shown) == [("rows=4", "2.00 ms", "3.00 ms"), ("rows=8 x", "-", "1.50 s")]
    assert list_parts(CaseEvidence(case_id="a/b", after=SideEvidence())) == []
