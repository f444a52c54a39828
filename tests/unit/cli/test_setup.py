"""What a command prints of its configuration before it begins."""

import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli import main
from gate.cli.setup import note_origin
from gate.decide.verdict import decide_verdict
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.records.cases import Policy
from gate.report import FORMATS, render
from tests.make import make_run

OWN = "version: 1\nreference_models: false\nmodels:\n  - {name: m, factory: 'a:b', cases: [{}]}\n"
OPTIONS = Namespace(config=None)


def plan(
    directory: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, list[str]]:
    """Plan by a gate.yml; return the exit code and standard error."""
    path = directory / "gate.yml"
    path.write_text(text, encoding="utf-8")
    code = main(["plan", "--config", str(path), *options])
    return code, capsys.readouterr().err.splitlines()


def test_all_mistakes_are_printed_each_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two lines each, the first of which begins with the name of the command."""
    code, lines = plan(tmp_path, "version: 1\ntrials: many\nselct: x\n", capsys)
    assert code == 2
    assert lines == [
        f"compile-gate: {tmp_path}/gate.yml:2: trials: expected a whole number from 1 to 10000, got 'many'",
        "Write, for example, `trials: 2`; the default is 1.",
        f"compile-gate: {tmp_path}/gate.yml:3: selct: unknown key",
        "Did you mean 'select'?",
    ]


def test_another_default_selection_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command goes on."""
    code, lines = plan(tmp_path, OWN, capsys)
    assert code == 0
    assert lines == [
        "note: measuring all of your cases (1): none has the tag 'smoke', the default of `select` in gate.yml"
    ]


@pytest.mark.parametrize("directory", ["gate", "src/gate"])
def test_a_package_of_the_same_name_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], directory: str
) -> None:
    """Its modules cannot be imported together with compile-gate."""
    package = tmp_path / directory
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A mixture of experts."""\n', encoding="utf-8")
    code, lines = plan(tmp_path, OWN + "select: m\n", capsys)
    assert code == 0
    assert lines == [
        f"note: {package} has the name of compile-gate's own package: nothing can import from it"
    ]


@pytest.mark.parametrize(
    "project",
    ["", '[project]\nname = "our-shop"\n', "project = 3\n", "# compile-gate\n[project"],
    ids=["none", "another", "no table", "broken"],
)
def test_a_package_that_only_mentions_compile_gate_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], project: str
) -> None:
    """The project's name decides, not the package's text."""
    package = tmp_path / "gate"
    package.mkdir()
    (package / "__init__.py").write_text('"""Experts, measured by compile-gate."""\n', encoding="utf-8")
    if project:
        (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    _, lines = plan(tmp_path, OWN + "select: m\n", capsys)
    assert lines == [
        f"note: {package} has the name of compile-gate's own package: nothing can import from it"
    ]


def test_another_checkout_of_compile_gate_is_no_namesake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its project has the name, whatever the package's text is."""
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "compile-gate"\n', encoding="utf-8")
    assert plan(tmp_path, OWN + "select: m\n", capsys) == (0, [])


def test_compile_gate_itself_is_no_namesake(capsys: pytest.CaptureFixture[str]) -> None:
    """This repository gates itself."""
    assert main(["plan", "--config", str(Path(__file__).parents[3] / "gate.yml")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("report_format", sorted(FORMATS))
def test_every_report_names_the_commit_whose_rules_hold(report_format: str) -> None:
    """A verdict by the working tree's rules names none."""
    commit = "1a2b3c4d" * 5
    verdict, config = decide_verdict(make_run(), (), Policy(thresholds={})), make_config(GateFile(version=1))

    named = render(note_origin(verdict, replace(config, commit=commit), OPTIONS), report_format)
    unnamed = render(note_origin(verdict, config, OPTIONS), report_format)

    assert commit in " ".join(named.split())
    assert unnamed == render(verdict, report_format)


GPU_CONFIG = """\
version: 1
device: cuda
reference_models: false
select: m,large
models:
  - {name: m, factory: 'm:build', cases: [{dtype: bfloat16}, {dtype: float16}, {gpu_memory_gib: 15}]}
  - {name: large, factory: 'm:build', cases: [{gpu_memory_gib: 16}]}
"""


def test_plan_and_doctor_name_what_the_gpu_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A T4 compiles no bfloat16 and has 15 GiB."""
    program = tmp_path / "nvidia-smi"
    row = "0, GPU-a, T4, 580.65, 300, 1590, 31, Enabled, [N/A], Default, 0, 15360, 0:1:0.0, 0x1, 7.5"
    program.write_text(
        f"#!/bin/sh\ncase $* in *compute-apps*) ;; *) echo '{row}' ;; esac\n", encoding="ascii"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    path = tmp_path / "gate.yml"
    path.write_text(GPU_CONFIG, encoding="utf-8")
    unavailable = (
        "UNAVAILABLE: m/inference-bfloat16-smoke-default: this GPU compiles no bfloat16: "
        "its compute capability is 7.5, 8.0 is needed; "
        "large/inference-float32-smoke-default: it needs 16 GiB at least, and this GPU has 15.0"
    )
    assert main(["plan", "--config", str(path)]) == 0
    assert unavailable in capsys.readouterr().err
    main(["doctor", "--config", str(path), "--format", "json"])
    assert f'"{unavailable}"' in capsys.readouterr().out


def test_plan_and_doctor_name_the_package_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case, or its model, needs a missing package."""
    path = tmp_path / "gate.yml"
    cases = "cases: [{}, {task: training, needs: [absent-too]}]"
    model = f"{{name: m, factory: 'm:build', needs: [pytest, surely-absent], {cases}}}"
    path.write_text(f"version: 1\nreference_models: false\nselect: m\nmodels: [{model}]\n")
    first = "m/inference-float32-smoke-default: surely-absent is not installed (pip install surely-absent)"
    second = "surely-absent and absent-too are not installed (pip install surely-absent absent-too)"
    assert main(["plan", "--config", str(path)]) == 0
    errors = capsys.readouterr().err
    assert f"UNAVAILABLE: {first}; m/training-float32-smoke-default: {second}" in errors
    assert main(["doctor", "--config", str(path), "--format", "json"]) == 4
    assert second in capsys.readouterr().out
