"""The measured cases, with and without a selection."""

from pathlib import Path

import pytest

import gate.records.cases as cases_module
from gate.errors import FileError, UsageError
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import Choice, choose_cases

OWN = "models:\n  - {name: mixer, factory: 'mixer.bench:build', cases: [{}, {task: training}]}\n"
TAGGED = "tests:\n  - {name: smoothing, node: 'tests/test_smoothing.py::test', tags: [smoke]}\n"
UNTAGGED = "tests:\n  - {name: smoothing, node: 'tests/test_smoothing.py::test', tags: [nightly]}\n"
ALONE = "reference_models: false\n"
MIXER = ["mixer/inference-float32-smoke-default", "mixer/training-float32-smoke-default"]


def choose(directory: Path, text: str, option: str | None = None) -> Choice:
    """Choose the cases of a gate.yml."""
    path = directory / "gate.yml"
    path.write_text("version: 1\n" + text, encoding="utf-8")
    config = apply_options(load_config(path), select=option)
    return choose_cases(config, load_cases(config))


def list_own(choice: Choice) -> list[str]:
    """List the chosen cases that are no reference model's."""
    return [case.id for case in choice.cases if not case.factory.startswith("gate.models.")]


def test_the_default_is_the_tag_smoke(tmp_path: Path) -> None:
    """Reference models', and those of a user who has the tag."""
    assert {"smoke"} == {tag for case in choose(tmp_path, "").cases for tag in case.tags if tag == "smoke"}
    choice = choose(tmp_path, OWN + TAGGED)
    assert (choice.selection, choice.note) == ("tag:smoke", "")
    assert list_own(choice) == ["smoothing/test"]
    assert all("smoke" in case.tags for case in choice.cases)
    assert len(choice.cases) > 7


def test_where_no_case_has_the_tag_all_are_measured(tmp_path: Path) -> None:
    """A user without tags need not know of them; a note explains it."""
    choice = choose(tmp_path, ALONE + OWN + UNTAGGED)
    assert list_own(choice) == [case.id for case in choice.cases] == [*MIXER, "smoothing/test"]
    assert choice.selection == "mixer,smoothing"
    assert choice.note == (
        "measuring all of your cases (3): none has the tag 'smoke', the default of `select` in gate.yml"
    )


def test_each_case_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadratic, a thousand models took seconds and ten thousand minutes."""
    looks: list[str] = []
    monkeypatch.setattr(cases_module, "fits_term", lambda term, *_: looks.append(term))
    names = [f"m{number}" for number in range(200)]
    models = "".join(
        f"  - {{name: {name}, factory: 'm:b', cases: [{{task: inference}}]}}\n" for name in names
    )
    choice = choose(tmp_path, f"{ALONE}models:\n{models}")
    assert (len(choice.cases), choice.selection) == (200, ",".join(names))
    assert len(looks) == 200


def test_the_reference_models_do_not_stand_for_ones_own(tmp_path: Path) -> None:
    """A green check of BERT shows nothing of a model that was listed and never measured."""
    choice = choose(tmp_path, OWN)
    assert list_own(choice) == MIXER
    assert choice.selection == "tag:smoke,mixer"
    assert all("smoke" in case.tags for case in choice.cases if case.model != "mixer")
    assert choice.note


@pytest.mark.parametrize(
    ("select", "problem", "fix"),
    [
        ("tag:smoke", "no case has the tag 'smoke'", "There are tag:nightly: see `compile-gate models`."),
        ("tag:nightl", "no case has the tag 'nightl'", "Did you mean 'tag:nightly'?"),
        ("mixre", "no model matches 'mixre'", "Did you mean 'mixer'?"),
        ("'!mixer,!smoothing'", "the selection '!mixer,!smoothing' leaves no case", "List"),
    ],
)
def test_a_wrong_selection_of_gate_yml_names_its_line(
    tmp_path: Path, select: str, problem: str, fix: str
) -> None:
    """The file, the line and the key, as for every other key."""
    with pytest.raises(FileError) as caught:
        choose(tmp_path, ALONE + OWN + UNTAGGED + f"select: {select}\n")
    assert caught.value.what == f"{tmp_path}/gate.yml:7: select: {problem}"
    assert caught.value.fix.startswith(fix)


def test_a_file_whose_name_looks_like_an_option_is_still_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake is in `--config=--odd/gate.yml`, not in `--select`."""
    monkeypatch.chdir(tmp_path)
    Path("--odd").mkdir()
    with pytest.raises(FileError) as caught:
        choose(Path("--odd"), "select: nowhere\n")
    assert str(caught.value).startswith("--odd/gate.yml:2: select: ")


def test_a_wrong_selection_of_the_command_line_names_no_file(tmp_path: Path) -> None:
    """The option replaces the key, and the user has just typed it."""
    with pytest.raises(UsageError) as caught:
        choose(tmp_path, ALONE + OWN + "select: mixer\n", "tag:smoke")
    assert str(caught.value) == (
        "no case has the tag 'smoke'\nNo case has any tag: name cases or models instead."
    )


def test_a_configuration_without_a_case_is_refused(tmp_path: Path) -> None:
    """Nothing to measure is never what was meant."""
    with pytest.raises(FileError) as caught:
        choose(tmp_path, ALONE)
    assert caught.value.what == f"{tmp_path}/gate.yml:2: reference_models: leaves no case"
