"""First contact with the one device that is here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gate.cli import main


@pytest.mark.slow
def test_a_cpu_refutes_nothing_that_can_be_asked_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What needs no card is asked for real: two processes generate one code, a peak is what was held."""
    names = (
        *("identity_is_the_same_twice", "a_peak_counts_what_is_held", "without_tf32_means_float32"),
        "the_host_clock_resolves_a_microsecond",
    )
    options = ("--device", "cpu", "--out", str(tmp_path), "--only", ",".join(names))
    code = main(["first-contact", *options])
    told = capsys.readouterr().out
    assert (code, re.findall(r"^REFUTED.*", told, re.MULTILINE)) == (0, [])
    assert re.findall(r"^PROVED +(\w+)", told, re.MULTILINE).count("without_tf32_means_float32") == 2
    assert "PROVED   a_peak_counts_what_is_held" in told
    assert (tmp_path / "first-contact.zip").exists()
