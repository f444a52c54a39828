"""The settings of a case's kind, and the errors of wrong ones."""

from pathlib import Path

import pytest

from gate.errors import FileError
from gate.project.cases import make_cases
from gate.project.config import load_config
from gate.project.model_entries import CaseEntry, ModelEntry
from gate.project.registry import load_cases
from gate.records.cases import Kind

GATE_FILE = """\
version: 1
reference_models: false
models:
  - name: mlp
    factory: bench:build
    cases:
      - {entry}
"""
VARY = "vary: {batch: [4, 8], width: [2, 3]}"


def write(directory: Path, entry: str) -> Path:
    """Write a gate.yml with one case."""
    path = directory / "gate.yml"
    path.write_text(GATE_FILE.replace("{entry}", entry), encoding="utf-8")
    return path


def test_a_kind_is_part_of_id_and_definition(tmp_path: Path) -> None:
    """Words among the settings are in the id, and all of them define the case."""
    cases = {
        name: load_cases(load_config(write(tmp_path, entry)))[0]
        for name, entry in {
            "plain": "{}",
            "shapes": f"{{kind: shapes, settings: {{{VARY}, dims: marked}}}}",
            "others": "{kind: shapes, settings: {vary: {batch: [4, 9]}, dims: marked}}",
        }.items()
    }
    assert cases["plain"].id == "mlp/inference-float32-smoke-default"
    assert cases["plain"].kind is Kind.CALL
    assert cases["shapes"].id == "mlp/inference-float32-smoke-default-shapes-marked"
    assert cases["shapes"].id == cases["others"].id
    assert cases["shapes"].definition != cases["others"].definition


def test_words_of_settings_are_in_the_order_of_their_keys() -> None:
    """YAML mappings have no order, and an id is the same whoever wrote it."""
    case = CaseEntry(kind=Kind.SHAPES, settings={"vary": {"batch": [4, 8]}, "dims": "marked", "a": "first"})
    entry = ModelEntry(name="mlp", factory="bench:build", cases=(case,))
    ((_, made),) = make_cases(entry, Path())
    assert made.id == "mlp/inference-float32-smoke-default-shapes-first-marked"


@pytest.mark.parametrize(
    ("entry", "key", "problem", "fix"),
    [
        ("{kind: shape}", "kind", "expected one of", "Did you mean 'shapes'?"),
        ("{kind: shapes}", "kind", "a case of the kind shapes needs the setting 'vary'", "one value a shape"),
        (
            f"{{kind: shapes, settings: {{{VARY}, dim: static}}}}",
            "settings.dim",
            "unknown key",
            "Did you mean 'dims'?",
        ),
        (
            f"{{kind: shapes, settings: {{{VARY}, dims: fixed}}}}",
            "settings.dims",
            "expected one of automatic, static, dynamic, marked, got 'fixed'",
            "Write, for example, `dims: marked`; the default is automatic.",
        ),
        (
            "{kind: shapes, settings: {vary: {batch: [4, 8], width: [2]}}}",
            "settings.vary",
            "its lists are not of one length",
            "Write one value of each argument a shape",
        ),
        (
            "{kind: shapes, settings: {vary: {batch: [4]}}}",
            "settings.vary",
            "has one shape, which does not vary",
            "List two values or more.",
        ),
        (
            "{kind: shapes, settings: {vary: [4, 8]}}",
            "settings.vary",
            "expected a mapping of names to lists",
            "",
        ),
        (
            "{settings: {dims: static}}",
            "settings.dims",
            "unknown key",
            "Remove it: there are none.",
        ),
        (
            "{kind: export, task: training}",
            "task",
            "the kind export measures no training",
            "Write inference.",
        ),
        (
            "{kind: export, mode: [default, max-autotune]}",
            "mode",
            "the kind export ignores `mode`",
            "Remove it",
        ),
        ("{kind: export, options: {max_autotune: true}}", "options", "the kind export ignores `options`", ""),
        ("{kind: onnx, backend: aot_eager}", "backend", "the kind onnx ignores `backend`", "of another kind"),
        (
            "{kind: onnx}\n    dynamic: false",
            "kind",
            "the kind onnx ignores the model's `dynamic`",
            "in a model of another name, without `dynamic`",
        ),
        (
            f"{{kind: shapes, settings: {{{VARY}}}}}\n    dynamic: true",
            "kind",
            "the kind shapes ignores the model's `dynamic`",
            "in a model of another name, without `dynamic`",
        ),
        (
            "{kind: distributed, task: training, dtype: bfloat16}",
            "dtype",
            "the kind distributed measures no bfloat16",
            "Write float32.",
        ),
        (
            "{kind: distributed, task: training, settings: {bucket_mib: 0.5}}",
            "settings.bucket_mib",
            "expected a number of at least 1, got 0.5",
            "",
        ),
    ],
)
def test_a_mistake_names_file_key_and_fix(
    tmp_path: Path, entry: str, key: str, problem: str, fix: str
) -> None:
    """With the line, the key and what to write instead."""
    with pytest.raises(FileError) as caught:
        load_config(write(tmp_path, entry))
    assert caught.value.file.endswith("gate.yml:7")
    assert caught.value.key == f"models[0].cases[0].{key}"
    assert problem in caught.value.problem
    assert fix in caught.value.fix


def test_what_a_kind_listens_to_is_taken(tmp_path: Path) -> None:
    """Saved artifacts are torch.compile's, and shapes have a backend; all of it is in the id."""
    entry = f"{{kind: shapes, mode: max-autotune, backend: other, settings: {{{VARY}}}}}"
    other = "{kind: cache, options: {max_autotune: true}}\n    dynamic: true"
    ids = [load_cases(load_config(write(tmp_path, model)))[0].id for model in (entry, other)]
    assert ids == [
        "mlp/inference-float32-smoke-max-autotune-other-shapes",
        "mlp/inference-float32-smoke-default-dynamic-max_autotune-true-cache",
    ]
