"""``--lanes``: what it may be, and what it refuses before anything is measured."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from gate.cli import main
from gate.cli.options import parse_lanes
from gate.errors import ExitCode


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("8", (8, "")),
        ("ray", (0, "auto")),
        ("ray:head:6379", (0, "head:6379")),
    ],
)
def test_lanes_of_this_host_or_of_a_cluster(text: str, asked: tuple[int, str]) -> None:
    """A number, or Ray's."""
    assert parse_lanes(text) == asked


@pytest.mark.parametrize("text", ["0", "", "-1", "1000", "two", "dask", "2.0"])
def test_what_is_no_number_of_lanes(text: str) -> None:
    """Nor a cluster."""
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number of lanes, ray, or ray:ADDRESS"):
        parse_lanes(text)


def check(*options: str) -> ExitCode:
    return ExitCode(main(["check", "--no-base", "-q", "--lanes", "2", *options]))


@pytest.mark.usefixtures("project", "without_ray")
def test_ray_is_an_extra(capsys: pytest.CaptureFixture[str]) -> None:
    """Without Ray the error shows how to install it."""
    assert check() is ExitCode.USAGE
    assert "pip install 'ray>=2.49'" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_lanes_record_no_traces(capsys: pytest.CaptureFixture[str]) -> None:
    """Their files would be on other hosts."""
    assert check("--trace") is ExitCode.USAGE
    assert "--lanes records no traces" in capsys.readouterr().err


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("gate.fleet")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "ray", None)


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ("stranger/repo", "--lanes runs no code of another repository (stranger/repo)"),
        ("", "--lanes runs no code of another repository (unknown)"),
        ("owner/repo", "--lanes needs Ray"),
    ],
)
@pytest.mark.usefixtures("without_ray")
def test_a_forks_code_gets_no_lanes(
    head: str, note: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pull request of another repository, or of a deleted one; a branch's may use them."""
    sides = {"head": {"repo": {"full_name": head}}, "base": {"repo": {"full_name": "owner/repo"}}}
    event = project / "event.json"
    event.write_text(json.dumps({"pull_request": sides}), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    assert check() is ExitCode.USAGE
    assert note in capsys.readouterr().err
