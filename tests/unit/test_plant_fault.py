"""`make fault` on a copy of examples/custom-model."""

import shutil
from pathlib import Path

import pytest
from plant_fault import plant_fault

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom-model" / "mixer" / "model.py"


def test_the_example_has_the_line_that_the_fault_is_planted_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line is added and shown; a model without that line is refused."""
    model = Path(shutil.copy(EXAMPLE, tmp_path))
    plant_fault(model)
    added = set(model.read_text(encoding="utf-8").splitlines()) - set(EXAMPLE.read_text().splitlines())
    assert [line.split("#")[0].strip() for line in added] == ['print("mixing")']
    assert '+        print("mixing")' in capsys.readouterr().out
    model.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="has no line that begins with 'mixed"):
        plant_fault(model)
