"""A wrong input gets its line, the problem there, and a correct fix."""

import errno
import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gate.cli import check, main
from gate.files.codec import RUN
from tests.hosts import CPU_HOST
from tests.unit.cli.conftest import CASE_ID, make_run

CORPUS = (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8").split("=====\n")[1:]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: no repository is around it, and no job of GitHub Actions."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to("none")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that is refused; return its errors without notes."""
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("note: "))


@pytest.mark.parametrize("part", CORPUS, ids=lambda part: part.partition("$ ")[2].partition("\n")[0])
def test_a_wrong_input_is_reported_with_its_line_and_fix(
    part: str, capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File and line or option, problem and fix; one mistake is one error."""
    config, _, rest = part.partition("$ ")
    command, _, message = rest.partition("\n")
    variables, _, arguments = command.partition("compile-gate ")
    for name, _, value in (variable.partition("=") for variable in variables.split()):
        monkeypatch.setenv(name, value)
    (project / "gate.yml").write_text(f"version: 1\n{config}", encoding="utf-8")
    message = message.replace("HERE", str(project)).replace("TODAY", datetime.now(UTC).date().isoformat())
    assert read_error(capsys, *shlex.split(arguments)) == message


def test_a_gate_yml_that_is_far_too_large_is_no_file_of_ours(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """The error does not say that compile-gate wrote it."""
    (project / "gate.yml").write_text("#" * 1_100_000, encoding="utf-8")
    assert read_error(capsys, "config") == (
        "compile-gate: gate.yml: is larger than 1,048,576 bytes\n"
        "Check that it is the file you mean; models can go into several files, named under `registry`.\n"
    )


def test_an_error_shows_a_foreign_name_as_its_bytes_and_cuts_what_nobody_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name that is not UTF-8, as a path and quoted, and a selection of a hundred thousand letters."""
    name = os.fsdecode(b"caf\xe9.json")
    assert (
        read_error(capsys, "report", name) == "compile-gate: caf\\xe9.json: does not exist\nCheck the path.\n"
    )
    what, _ = read_error(capsys, "models", "--select", name).splitlines()
    assert what == "compile-gate: --select must be text that UTF-8 can hold, got 'caf\\xe9.json'"
    what, _ = read_error(capsys, "models", "--select", f"bert/{'x' * 100_000}").splitlines()
    assert what.startswith("compile-gate: no case matches 'bert/xxx")
    assert what.endswith("xxx'")
    assert len(what) < 500
    what, _ = read_error(capsys, "models", "--select", "bert/" + "x " * 50_000 + "y").splitlines()
    assert what.endswith("x x y'")
    assert len(what) < 2100


def test_a_run_that_does_not_fit_the_others_is_called_by_its_file(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """`merge` of shards that overlap, and `calibrate` of runs of two machines."""
    RUN.save(make_run(), project / "one.json")
    RUN.save(replace(make_run(), environment=replace(CPU_HOST, threads=7)), project / "two.json")
    assert read_error(capsys, "merge", "one.json", "./one.json", "--out", "out").startswith(
        f"compile-gate: ./one.json holds what one.json holds as well: {CASE_ID}\n"
    )
    assert read_error(capsys, "merge", "one.json", "one.json", "--out", "out").startswith(
        "compile-gate: one.json is named twice\n"
    )
    assert read_error(capsys, "calibrate", "--reference-models", "--run", "one.json", "two.json").startswith(
        "compile-gate: two.json has another environment than one.json: threads"
    )


def test_a_file_that_another_user_has_left_is_no_bug(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anywhere below the output the error names the file and its owner, without a traceback."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "out/logs/import/server-head.log")

    monkeypatch.setattr(check, "load_project", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: project.stat().st_uid + 1)
    assert read_error(capsys, "check") == (
        "compile-gate: out/logs/import/server-head.log cannot be read or written: Permission denied\n"
        f"Check the path and its rights ({project} belongs to {project.owner()}),"
        " or choose another directory.\n"
    )
