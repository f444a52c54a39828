"""What holds for every test of a first configuration."""

import pytest


@pytest.fixture(autouse=True)
def _no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile nothing in tests of the written files."""
    monkeypatch.setattr("gate.cli.init.choose_drift_device", lambda *_: None)
