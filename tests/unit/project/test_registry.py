import subprocess
import sys
from pathlib import Path

import pytest

from gate.errors import FileError
from gate.installation import MODELS
from gate.project.cases import find_module
from gate.project.config import load_config
from gate.project.registry import check_factories, load_cases
from gate.records.cases import Case, DType, Mode, Task
from gate.store.baselines import load_baselines

MLP = """\
models:
  - name: mlp
    factory: bench.models:build
    arguments: {width: 256, depth: 2}
    sizes: {smoke: {batch: 8}, full: {batch: 1024, depth: 4}}
    cases:
      - {size: [smoke, full], task: [inference, training], tags: [pr], expected_s: 20}
      - {size: smoke, dtype: bfloat16, mode: max-autotune}
"""
TESTS = "tests:\n  - {name: mine, node: 'tests/test_mine.py::test_mine', tags: [pr]}\n"


def load(directory: Path, text: str, models: Path = MODELS) -> tuple[Case, ...]:
    """Load the cases of a gate.yml without the reference models."""
    path = directory / "gate.yml"
    path.write_text("version: 1\nreference_models: false\n" + text, encoding="utf-8")
    return load_cases(load_config(path), models)


def load_definition(directory: Path, text: str, models: Path = MODELS) -> str:
    """The definition of the only case."""
    (case,) = load(directory, text, models)
    return case.definition


def make_model(line: str) -> str:
    """A model with one case and one changed key."""
    keys = {"name": "m", "factory": "'a.b:c'", "arguments": "{x: 1}", "cases": "[{}]"}
    key, _, value = line.partition("=")
    keys[key] = value or keys.get(key, "")
    return "models:\n  - {" + ", ".join(f"{name}: {value}" for name, value in keys.items() if value) + "}\n"


def test_lists_are_expanded_to_cases(tmp_path: Path) -> None:
    """The cartesian product, sizes first, in the order of the file."""
    cases = load(tmp_path, MLP)
    assert [case.id for case in cases] == [
        "mlp/inference-float32-smoke-default",
        "mlp/training-float32-smoke-default",
        "mlp/inference-float32-full-default",
        "mlp/training-float32-full-default",
        "mlp/inference-bfloat16-smoke-max-autotune",
    ]
    assert cases[3] == Case(
        id="mlp/training-float32-full-default",
        model="mlp",
        factory="bench.models:build",
        arguments={"width": 256, "depth": 4, "batch": 1024},
        task=Task.TRAINING,
        dtype=DType.FLOAT32,
        size="full",
        mode=Mode.DEFAULT,
        tags=("pr",),
        expected_s=20.0,
        definition=cases[3].definition,
    )


def test_a_users_test_is_a_case(tmp_path: Path) -> None:
    """Its id is the name and "test"."""
    (case,) = load(tmp_path, TESTS)
    assert case == Case(
        id="mine/test",
        model="mine",
        factory="",
        node="tests/test_mine.py::test_mine",
        pytest_args=(),
        task=Task.INFERENCE,
        dtype=DType.FLOAT32,
        tags=("pr",),
        expected_s=30.0,
        gpu_memory_gib=0.0,
        definition=case.definition,
    )


@pytest.mark.parametrize(
    ("key", "is_same"),
    [
        ("args: ['-k', slow]", False),
        ("args: []", True),
        ("task: training", False),
        ("dtype: bfloat16", False),
        ("expected_s: 5", True),
    ],
)
def test_the_definition_of_a_users_test_follows_what_runs(tmp_path: Path, key: str, is_same: bool) -> None:
    """Its arguments of pytest, its task and its dtype; its code is not looked at."""
    changed = TESTS.replace("}", f", {key}}}")
    assert (load_definition(tmp_path, TESTS) == load_definition(tmp_path, changed)) is is_same


def test_a_dynamic_model_shows_it_in_its_ids(tmp_path: Path) -> None:
    """Only where dynamic is true; false is the absence of guesses, not a shape class."""
    (case,) = load(tmp_path, make_model("dynamic=true"))
    assert case.id == "m/inference-float32-smoke-default-dynamic"
    (case,) = load(tmp_path, make_model("dynamic=false"))
    assert case.id == "m/inference-float32-smoke-default"
    assert case.dynamic is False


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ("name=n", True),
        ("cases=[{tags: [a], expected_s: 3}]", True),
        ("sizes={smoke: {x: 1}}", True),
        ("arguments={x: 2}", False),
        ("arguments={x: '1'}", False),
        ("sizes={smoke: {y: 1}}", False),
        ("factory='a.b:d'", True),
        ("dynamic=false", False),
        ("cases=[{dtype: bfloat16}]", False),
        ("cases=[{task: training}]", False),
        ("cases=[{mode: max-autotune}]", False),
        ("cases=[{dtype: float16}]", False),
        ("cases=[{fullgraph: true}]", False),
        ("cases=[{backend: aot_eager}]", False),
        ("cases=[{options: {max_autotune: true}}]", False),
        ("cases=[{fullgraph: false, backend: inductor, options: {}}]", True),
    ],
)
def test_the_definition_follows_what_is_measured(tmp_path: Path, line: str, is_same: bool) -> None:
    """Names, tags, expectations and paths do not change a workload; anything else does."""
    before = load_definition(tmp_path, make_model("name=m"))
    assert is_same == (before == load_definition(tmp_path, make_model(line)))


def test_the_definition_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    """YAML mappings have no order."""
    definition = load_definition(tmp_path, make_model("arguments={x: 1, y: 2}"))
    assert definition == load_definition(tmp_path, make_model("arguments={y: 2, x: 1}"))


def test_a_definition_is_the_same_in_every_release(tmp_path: Path) -> None:
    """Another hash of the same definition would make every stored baseline stale."""
    assert load_definition(tmp_path, make_model("name=m")) == "292834c52a979003"
    assert load_definition(tmp_path, TESTS) == "3db2367a286b41a1"


def test_recorded_baselines_are_of_todays_definitions() -> None:
    """The reference cases keep their ids and definitions: their recorded baselines are not stale."""
    definitions = {case.id: case.definition for case in load_cases(load_config(None))}
    stored = load_baselines(Path(__file__).parents[3] / "baselines")
    assert stored
    assert [] == [
        baseline.case_id for baseline in stored if definitions.get(baseline.case_id) != baseline.definition
    ]


@pytest.mark.parametrize(
    ("entry", "rest"),
    [
        ("{mode: max-autotune-no-cudagraphs}", "max-autotune-no-cudagraphs"),
        ("{fullgraph: true, backend: aot_eager}", "default-fullgraph-aot_eager"),
        (
            "{options: {triton.cudagraphs: true, max_autotune: false}}",
            "default-max_autotune-false-triton.cudagraphs-true",
        ),
        ("{options: {mode: a/b}}", "default-options-7fefc74a"),
    ],
)
def test_an_unusual_compile_is_named_in_the_id(tmp_path: Path, entry: str, rest: str) -> None:
    """Two cases of one model with different compiles have different ids, which are file names."""
    (case,) = load(tmp_path, make_model(f"cases=[{entry}]"))
    assert case.id == f"m/inference-float32-smoke-{rest}"


def test_a_list_of_backends_is_expanded(tmp_path: Path) -> None:
    """As lists of sizes and modes are."""
    cases = load(tmp_path, make_model("cases=[{backend: [eager, inductor]}]"))
    assert ["eager", "inductor"] == [case.backend for case in cases]
    assert cases[1].id == "m/inference-float32-smoke-default"


def test_options_and_a_mode_exclude_each_other(tmp_path: Path) -> None:
    """torch.compile refuses both only after minutes."""
    text = make_model("cases=[{mode: [default, max-autotune], options: {max_autotune: true}}]")
    with pytest.raises(FileError, match=r"gate\.yml:4: models\[0\]\.cases\[0\]\.options: .*'max-autotune'"):
        load(tmp_path, text)


def test_the_source_of_a_reference_model_is_part_of_its_definition(tmp_path: Path) -> None:
    """It is hashed without being imported, whatever the line endings of the checkout."""
    source = tmp_path / "made_up.py"
    text = make_model("factory='gate.models.made_up:build'")
    source.write_bytes(b"raise SystemExit\n")
    first = load_definition(tmp_path, text, tmp_path)
    source.write_bytes(b"raise SystemExit\r\n")
    assert first == load_definition(tmp_path, text, tmp_path)
    source.write_bytes(b"raise SystemExit(1)\n")
    assert first != load_definition(tmp_path, text, tmp_path)


def test_a_reference_module_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Its source would have to be hashed."""
    with pytest.raises(FileError, match=r"gate\.yml:4: models\[0\]\.factory: there is no module"):
        load(tmp_path, make_model("factory='gate.models.made_up:build'"))


def test_registry_files_come_before_gate_yml(tmp_path: Path) -> None:
    """In the order in which they are named, relative to gate.yml."""
    (tmp_path / "more.yml").write_text("version: 1\n" + TESTS, encoding="utf-8")
    cases = load(tmp_path, "registry: [more.yml]\n" + make_model("name=m"))
    assert [case.model for case in cases] == ["mine", "m"]


def test_an_error_in_a_registry_file_names_that_file(tmp_path: Path) -> None:
    """With the line in it."""
    (tmp_path / "more.yml").write_text("version: 1\n" + MLP + "    sises: 1\n", encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load(tmp_path, "registry: [more.yml]")
    assert str(caught.value) == f"{tmp_path}/more.yml:10: models[0].sises: unknown key\nDid you mean 'sizes'?"


def test_the_mistakes_of_all_registry_files_are_reported_at_once(tmp_path: Path) -> None:
    """In the order in which the files are named, each in the order of its lines."""
    (tmp_path / "one.yml").write_text("version: 1\nmodels: x\ntests: y\n", encoding="utf-8")
    (tmp_path / "two.yml").write_text("version: 3\n", encoding="utf-8")
    (tmp_path / "good.yml").write_text("version: 1\n" + TESTS, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load(tmp_path, "registry: [one.yml, good.yml, two.yml, none.yml]")
    assert [error.what for error in (caught.value, *caught.value.others)] == [
        f"{tmp_path}/one.yml:2: models: expected a list, got 'x'",
        f"{tmp_path}/one.yml:3: tests: expected a list, got 'y'",
        f"{tmp_path}/two.yml:1: version: is 3; this compile-gate reads version 1",
        f"{tmp_path}/gate.yml:3: registry[3]: {tmp_path}/none.yml does not exist",
    ]


@pytest.mark.parametrize(
    ("other", "fix"),
    [
        ("", "Rename one of the two."),
        ("reference_models: true", "or leave the reference models out with `reference_models: false`."),
    ],
)
def test_a_name_that_is_taken_twice_is_reported_with_its_fix(tmp_path: Path, other: str, fix: str) -> None:
    """Leaving the reference models out only helps against one of theirs."""
    path = tmp_path / "gate.yml"
    name = "bert" if other else "m"
    text = make_model(f"name={name}") + ("" if other else make_model("name=m").removeprefix("models:\n"))
    path.write_text(f"version: 1\n{other or 'reference_models: false'}\n{text}", encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load_cases(load_config(path))
    assert caught.value.fix.endswith(fix)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            make_model("name=m") + "  - {name: m, factory: 'x:y', cases: [{}]}\n",
            "gate.yml:5: models[1].name: the name 'm' is taken by {dir}/gate.yml:4",
        ),
        (
            make_model("name=mine") + TESTS,
            "gate.yml:6: tests[0].name: the name 'mine' is taken by {dir}/gate.yml:4",
        ),
        (
            make_model("cases=[{}, {size: smoke}]"),
            "gate.yml:4: models[0].cases[1]: makes the case 'm/inference-float32-smoke-default' twice",
        ),
        (
            MLP.replace("size: smoke,", "size: smok,"),
            "gate.yml:10: models[0].cases[1].size: unknown size 'smok'",
        ),
        (
            MLP + "overrides:\n  - {case: 'mpl/*', metric: drift, absolute: 1, reason: r}\n",
            "gate.yml:12: overrides[0].case: no model matches 'mpl/*'",
        ),
        (
            MLP + "quarantine:\n  - {case: 'mpl/*', owner: o, reason: r, expires: 2026-01-01}\n",
            "gate.yml:12: quarantine[0].case: no model matches 'mpl/*'",
        ),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, text: str, what: str) -> None:
    """With both lines where there are two."""
    with pytest.raises(FileError) as caught:
        load(tmp_path, text)
    assert caught.value.what == f"{tmp_path}/" + what.format(dir=tmp_path)


def test_the_reference_registry_is_loaded_without_torch() -> None:
    """Only workers import torch, and only a worker imports a factory's module."""
    code = (
        "import sys; from pathlib import Path; from gate.project.config import make_config; "
        "from gate.project.entries import GateFile; from gate.project.registry import load_cases; "
        "cases = load_cases(make_config(GateFile(version=1))); "
        "assert len({case.id for case in cases}) == len(cases) > 7; "
        "assert all(len(case.definition) == 16 for case in cases); "
        "loaded = {'torch', 'gate.models', 'transformers'} & sys.modules.keys(); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "end"),
    [
        ("json", "json/__init__.py"),
        ("json.decoder", "json/decoder.py"),
        ("concurrent.futures.thread", "concurrent/futures/thread.py"),
        ("json.nowhere", ""),
        ("json.decoder.json", ""),  # a module that is no package has none below it
        ("nowhere.json", ""),
    ],
)
def test_a_module_is_found_below_its_packages_only(module: str, end: str) -> None:
    """One of the same name elsewhere is another."""
    spec = find_module(module, [])
    assert (spec is None) == (not end)
    assert spec is None or str(spec.origin).endswith(f"/{end}")


@pytest.mark.parametrize("missing", ["mlp", "other"])
def test_modules_of_the_cases_at_hand_have_to_exist(tmp_path: Path, missing: str) -> None:
    """A model whose cases are not run may lie elsewhere."""
    path = tmp_path / "gate.yml"
    entries = "".join(
        f"  - {{name: {name}, factory: '{'nowhere' if name == missing else 'json'}:f', cases: [{{}}]}}\n"
        for name in ("mlp", "other")
    )
    path.write_text(f"version: 1\nreference_models: false\nmodels:\n{entries}", encoding="utf-8")
    config = load_config(path)
    cases = [case for case in load_cases(config, MODELS) if case.model == "mlp"]
    if missing == "other":
        check_factories(config, cases)
        return
    with pytest.raises(FileError, match="there is no module 'nowhere'"):
        check_factories(config, cases)
