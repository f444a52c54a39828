"""Values of a card are compared with the ranges estimated for it; on another card they are INFO."""

import re
from pathlib import Path

import pytest

from gate.device_tests.plugin import DeviceReport
from gate.device_tests.test_clocks import expect_estimates, report_rates
from gate.device_tests.test_whole import check_times
from gate.records.cases import Metric
from gate.records.run import Trial

H100 = "NVIDIA H100 80GB HBM3"
CASE = "resnet50/inference-bfloat16-full-default"


@pytest.fixture
def report(tmp_path: Path) -> DeviceReport:
    """A report of a test called t."""
    return DeviceReport(path=tmp_path / "t.txt", name="t", assumed="So.")


@pytest.mark.parametrize(
    ("model", "copy_tb_s", "line"),
    [
        (H100, 2.7, "PASSED   t, copy: 2.7 TB/s (expected 2.4 to 3.1)"),
        (H100, 3.4, "FAILED   t, copy: 3.4 TB/s (expected 2.4 to 3.1); assumed: So."),
        (
            "NVIDIA H100 PCIe",
            1.7,
            "INFO     t, copy: 1.7 TB/s (expected 2.4 to 3.1 on an H100 80GB HBM3)",
        ),  # another memory
    ],
)
def test_a_rate_is_judged_on_cards_that_it_was_estimated_for(
    report: DeviceReport, model: str, copy_tb_s: float, line: str
) -> None:
    """An H100 of another form has another memory: its rate is only shown."""
    report_rates(report, model, copy_tb_s, 600.0)
    assert report.path.read_text().splitlines()[0] == line


@pytest.mark.parametrize(
    ("model", "cold_s", "lines"),
    [
        (H100, 40.0, ("PASSED 6 ms (4 to 12)", "PASSED 4 ms (2.5 to 8)", "PASSED 40 s (25 to 60)")),
        (H100, 70.0, ("PASSED 6 ms (4 to 12)", "PASSED 4 ms (2.5 to 8)", "FAILED 70 s (25 to 60)")),
        ("Tesla T4", 70.0, ("INFO 6 ms (4 to 12{0})", "INFO 4 ms (2.5 to 8{0})", "INFO 70 s (25 to 60{0})")),
    ],
)
def test_times_of_a_trial_have_their_ranges(
    report: DeviceReport, model: str, cold_s: float, lines: tuple[str, ...]
) -> None:
    """A cold compile of ResNet-50 takes 25 to 60 s by its host."""
    samples = {
        Metric.EAGER_LATENCY: (0.006,),
        Metric.COMPILED_LATENCY: (0.004,),
        Metric.COLD_COMPILE_TIME: (cold_s,),
    }
    check_times(expect_estimates(report, model), [Trial(case_id=CASE, index=1, samples=samples)])
    written = [re.sub(r" +t, .*?: ", " ", line) for line in report.path.read_text().splitlines()]
    assert tuple(line.replace("expected ", "").partition(";")[0] for line in written) == tuple(
        line.format(" on an H100 80GB HBM3") for line in lines
    )
