"""The action in this process, as a step of a pull request's job in a clone, with a command of the test's."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from action.samples import commit
from action.step import parse_command_file
from gate.action import step
from gate.action.modes import run_action
from gate.action.step import Ended

Command = Callable[[list[str], dict[str, str]], int | str]


class ActionStep:
    """A step of a pull request's job in a clone; ``command`` runs in place of ``gate``."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (root / "work").mkdir()
        monkeypatch.chdir(root / "work")
        monkeypatch.setattr(step, "run_child", self._run_child)
        self._capsys = capsys
        Path("gate.yml").write_text("version: 1\n")
        Path("model.py").write_text("x = 1\n")
        self.environ = {
            "PATH": os.environ["PATH"],
            "GITHUB_OUTPUT": str(root / "output"),
            "GITHUB_STEP_SUMMARY": str(root / "summary"),
            "GITHUB_EVENT_PATH": str(root / "event.json"),
            "RUNNER_TEMP": str(root),
        }
        # What runs, or how it ends: a text is why it failed, with exit code 2.
        self.command: Command | int | str = 0
        self.seen: list[list[str]] = []  # the arguments of each command
        self.base, self.head = "", ""
        self.set_pull(commit(Path.cwd(), "base"), commit(Path.cwd(), "head"))

    def _run_child(self, argv: list[str], environment: dict[str, str], **_: object) -> Ended:
        assert argv[1:3] == ["-I", "-S"]
        assert argv[4] == "gate"
        self.seen.append(argv[5:])
        came = self.command(argv[5:], environment) if callable(self.command) else self.command
        return Ended(code=2, complaints=(came,)) if isinstance(came, str) else Ended(code=came)

    def run(self, **inputs: str) -> int:
        return run_action({**self.environ, **{f"INPUT_{key.upper()}": text for key, text in inputs.items()}})

    def set_event(self, payload: object) -> None:
        Path(self.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(payload))

    def set_pull(self, base: str, head: str) -> None:
        """Set base and head of the pull request."""
        self.base, self.head = base, head
        self.set_event({"pull_request": {"base": {"sha": base}, "head": {"sha": head}}})

    def read_printed(self) -> str:
        return "".join(self._capsys.readouterr())

    @property
    def outputs(self) -> dict[str, str]:
        return parse_command_file(Path(self.environ["GITHUB_OUTPUT"]).read_text())

    @property
    def summary(self) -> str:
        return Path(self.environ["GITHUB_STEP_SUMMARY"]).read_text()
