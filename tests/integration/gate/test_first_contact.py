"""``first-contact`` with this machine's one device."""

import re
from pathlib import Path

import pytest

from gate.cli import main


@pytest.mark.slow
def test_a_cpu_passes_its_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tests that need no card run for real: two processes generate one code, a peak is what was held."""
    names = ("identity_is_the_same_twice", "a_peak_counts_what_is_held", "without_tf32_means_float32")
    options = ("--device", "cpu", "--out", str(tmp_path), "--only", ",".join(names))
    code = main(["first-contact", *options])
    out = capsys.readouterr().out
    assert (code, re.findall(r"^FAILED.*", out, re.MULTILINE)) == (0, [])
    assert re.findall(r"^PASSED +(\w+)", out, re.MULTILINE).count("without_tf32_means_float32") == 2
    assert "PASSED   a_peak_counts_what_is_held" in out
    assert (tmp_path / "first-contact.zip").exists()
