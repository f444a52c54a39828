"""Mistakes in gate.yml are reported at once, with line and fix, and never as a traceback."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from tests.unit.files.test_yaml_in import list_errors

CORPUS = (Path(__file__).parent / "bad_configs.txt").read_text(encoding="utf-8")
MARK = " # !"


def list_bad_files() -> Iterator[tuple[str, list[str]]]:
    """Each file of the corpus, and the lines and keys of its mistakes as ``2 trials``."""
    for part in re.split("^=====", CORPUS, flags=re.MULTILINE)[1:]:
        lines = part.removesuffix("\n").split("\n")
        places = [
            f"{number} {key.strip()}" for number, line in enumerate(lines) for key in line.split(MARK)[1:]
        ]
        yield "".join(line.split(MARK)[0] + "\n" for line in lines[1:]), sorted(places)


def load(path: Path) -> None:
    """Everything that happens to a gate.yml before anything is measured."""
    config = load_config(path)
    choose_cases(config, load_cases(config))


def test_the_corpus_is_what_it_was() -> None:
    """A mark that is not found would test nothing."""
    assert len(list(list_bad_files())) == 89
    assert sum(len(places) for _, places in list_bad_files()) == CORPUS.count(MARK) == 114


@pytest.mark.parametrize(("text", "places"), list(list_bad_files()))
def test_every_mistake_is_reported_with_its_line(tmp_path: Path, text: str, places: list[str]) -> None:
    """All at once, in the order of the lines, each with a helpful fix."""
    path = tmp_path / "gate.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load(path)
    errors = list_errors(caught.value)
    lines = [int(error.file.removeprefix(str(path)).removeprefix(":") or 0) for error in errors]
    assert sorted(f"{line} {error.key}" for line, error in zip(lines, errors, strict=True)) == places
    assert lines == sorted(lines)
    for error in errors:
        assert "\n" not in error.what + error.fix
        wanted = error.problem.removeprefix("expected ").partition(", got")[0]
        assert wanted not in error.fix
        assert error.fix.endswith((".", "?"))


KEYS = ["version", "trials", "select", "models", "name", "factory", "cases", "size", "tags", "arguments"]
KEYS += ["thresholds", "drift", "relative", "absolute", "overrides", "quarantine", "case", "metric", "x y"]
SCALARS = ["1", "0", "-1", "5%", "150%", "0.05", "1e9", ".nan", "99999999999999999999", "true", "~", "''"]
SCALARS += [
    "cpu",
    "tag:smoke",
    "'*'",
    "m",
    "a.b:c",
    "2030-01-01",
    "2030-02-30",
    "drift",
    "&a 1",
    "*a",
    "!t x",
]
BEGINNINGS = ["", "version: 1\n", "version: 1\nmodels:\n"]
VALUES: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(SCALARS) | st.text("ab1: -[]{},&*!'\"#|>?%~", max_size=6),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=8,
)
LINES = st.tuples(st.sampled_from([*KEYS, "  trials", "- name"]), VALUES).map(": ".join)


@given(lines=st.lists(LINES, max_size=6), begin=st.sampled_from(BEGINNINGS))
@settings(max_examples=400)
def test_no_document_raises_anything_but_file_errors(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], begin: str
) -> None:
    """Any YAML is accepted, or refused with its file and two lines for each mistake."""
    # Not next to other tests' directories: a gate.yml is looked for upwards.
    path = tmp_path_factory.getbasetemp() / "documents" / "gate.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(begin + "\n".join(lines), encoding="utf-8")
    errors: list[FileError] = []
    try:
        load(path)
    except FileError as error:
        errors = list_errors(error)
    for mistake in errors:
        assert mistake.file.startswith(str(path))
        assert mistake.problem
        assert mistake.fix
        assert "\n" not in mistake.what + mistake.fix
