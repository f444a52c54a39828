"""Commands that hold a token, in this process as steps of a job, and a runner's reading of their output."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from action.step import ACTION, parse_command_file
from fake.server import TOKEN, FakeGitHub
from fake.state import REPO_ID
from records import GATE_YML, RUN
from runner_log import STOP, list_commands

from gate.cli import main


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class TokenJob:
    """A job in a clone of the default branch, with the gate.yml of ``records``; the test works in it."""

    def __init__(
        self,
        github: FakeGitHub,
        root: Path,
        patch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        self._patch, self._capfd = patch, capfd
        root.mkdir()
        self.config = root / "gate.yml"
        self.config.write_text(GATE_YML)
        patch.chdir(root)
        self._files = {name: root / name for name in ("event", "output", "summary")}
        self._environ = github.environ | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": str(RUN.id),
            "GITHUB_WORKSPACE": str(root),
            "GITHUB_EVENT_PATH": str(self._files["event"]),
            "GITHUB_OUTPUT": str(self._files["output"]),
            "GITHUB_STEP_SUMMARY": str(self._files["summary"]),
        }

    def run(self, *arguments: str, event_name: str = "", event: dict[str, Any] | None = None) -> Ran:
        """Run ``compile-gate github`` with these arguments, and check what its runner executes and stores."""
        self._files["event"].write_text(json.dumps({"repository": {"id": REPO_ID}, **(event or {})}))
        for name in ("output", "summary"):
            self._files[name].write_text("")
        for name, value in (self._environ | {"GITHUB_EVENT_NAME": event_name}).items():
            self._patch.setenv(name, value)
        code = main(["github", *arguments])
        printed = self._capfd.readouterr()
        output, summary = (self._files[name].read_text() for name in ("output", "summary"))
        assert code in {0, 2, 4}, printed.err
        assert "Traceback" not in printed.err
        assert TOKEN not in printed.out + printed.err + output + summary
        check_log(printed.out)
        check_log(printed.err)
        outputs = parse_command_file(output)
        assert set(outputs) <= set(ACTION["outputs"])
        return Ran(code=code, log=printed.out + printed.err, outputs=outputs, summary=summary)


def check_log(log: str) -> None:
    """Check that a runner finds only our annotations, even if it does not know stop-commands."""
    for command in list_commands(log.replace(STOP, "x")):
        assert command.name in {"error", "notice", "warning"}, log
        assert command.properties.startswith("title=compile-gate"), log
    assert all(len(line) < 5000 and (line.isprintable() or not line) for line in log.split("\n"))
