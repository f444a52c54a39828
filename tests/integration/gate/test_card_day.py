"""The day on a card, rehearsed on a CPU."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "card_day.py"
FILES = {"day.json", "table.md", "log.txt", "work.zip", "baselines.zip"}
EARLIER = ("first contact", "baselines", "unchanged", "target")
LATER = ("faults", "graphs", "interleaved", "selftest")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the script, as the leader of a process group."""
    command = (sys.executable, str(SCRIPT), str(folder), "--small", "--minutes", "30", *arguments)
    folder.mkdir(exist_ok=True)
    locks = folder.with_name(f"{folder.name}-locks")
    locks.mkdir(exist_ok=True)
    variables = {**os.environ, "COMPILE_GATE_LOCKS": str(locks)}
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, start_new_session=True, env=variables)


def read_rows(folder: Path) -> dict[str, dict[str, object]]:
    """The rows by the names of their parts."""
    path = folder / "day.json"
    rows: dict[str, dict[str, object]] = json.loads(path.read_text()) if path.exists() else {}
    return rows


def wait_until(is_so: Callable[[], bool], limit_s: float = 300) -> None:
    """Wait for what happens in another process."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_part_of_a_day_is_tried(tmp_path: Path) -> None:
    """A killed day goes on: each part ends as a row, and five files are the whole result.

    Half of the parts are tried in a folder of their own at the same time.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    later = start(second, "--only", *LATER)
    killed = start(first, "--only", "doctor", *EARLIER)
    wait_until(lambda: read_rows(first).get("doctor", {}).get("status") == "done")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert read_rows(first)["unchanged"]["status"] == "open"

    out, _ = start(first, "--only", *EARLIER).communicate()
    out += later.communicate()[0]
    rows = {name: read_rows(second if name in LATER else first)[name] for name in read_rows(first)}
    assert {name: row["status"] for name, row in rows.items()} == dict.fromkeys(rows, "done"), out
    assert out.count("doctor: ") == 0  # it was done before
    assert {path.name for path in first.iterdir()} == FILES
    assert str(rows["faults"]["found"]).startswith("break: graph_breaks REGRESSED, slow: ")
    # With other tests at work a trial may be too noisy to decide.
    assert re.match(r"(PASS|INCONCLUSIVE); 1 of 1 cases in ", str(rows["unchanged"]["found"]))
    assert str(rows["graphs"]["found"]).startswith("2 live trials")
    assert "plain/inference-float32-day-default: other code" in str(rows["target"]["found"])
    assert rows["interleaved"]["found"] == "drift 0, which is right"
    # A fault is tried if a minute is enough for it, and then it is caught.
    assert re.fullmatch(r"nothing was tried|wrong_eps caught(, nothing \w+)?", str(rows["selftest"]["found"]))
    table = (first / "table.md").read_text()
    assert re.findall(r"^\| (plain\S+) \|", table, re.MULTILINE) == ["plain/inference-float32-day-default"]


@pytest.mark.slow
def test_a_part_without_time_is_a_row_of_its_own(tmp_path: Path) -> None:
    """A command that is asked to end saves its results, and the next call begins after it."""
    out, _ = start(tmp_path, "--minutes", "0.34", "--only", "faults").communicate()
    row = read_rows(tmp_path)["faults"]
    assert (row["status"], row["finished"]) == ("cut off", 0), out
    assert "| cut off |" in (tmp_path / "table.md").read_text()
