"""The cases that each arm defines."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gate.errors import FileError
from gate.installation import MODELS as OWN_MODELS
from gate.project.arm_cases import (
    BaseCases,
    Rules,
    follow_moves,
    load_base_cases,
    load_head_cases,
    mark_removed,
)
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases, select_cases
from gate.records.cases import Case
from gate.records.codes import Code

SHOP = """
version: 1
select: "shop/*,elementwise/inference-float32-smoke-default"
models:
  - name: shop
    factory: shop:build
    arguments: {{layers: {layers}}}
    cases:
      - {{size: {sizes}}}
"""


MODELS = """
version: 1
models:
  - {{name: shop, factory: 'shop:build', cases: [{{}}]}}
  - {{name: {other}, factory: 'shop:build', cases: [{{tags: {tags}}}]}}
"""


def load_defaults(tmp_path: Path, other: str, tags: str = "[]") -> tuple[list[str], list[str]]:
    """The own cases of the base and of another head, for a configuration without ``select``."""
    for name in ("tree", other):
        (tmp_path / name).mkdir()
        text = MODELS.format(other=name, tags=tags if name == other else "[]")
        (tmp_path / name / "gate.yml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "tree" / "gate.yml")
    choice = choose_cases(config, load_cases(config))
    settled = replace(config, select=choice.selection)
    base = load_base_cases(settled, choice.cases, tmp_path / other)
    head = load_head_cases(settled, choice.cases, tmp_path / other)
    assert base.notes == ()
    models = [[case.model for case in cases if case.factory == "shop:build"] for cases in (base.cases, head)]
    return models[0], models[1]


def test_each_side_has_its_own_default_selection(tmp_path: Path) -> None:
    """Without a selection, a model of only one side is not silently left out."""
    assert load_defaults(tmp_path, "gone") == (["shop", "gone"], ["shop", "gone"])


def test_the_default_of_the_other_side_follows_its_tags(tmp_path: Path) -> None:
    """The base's tagged case is selected, and the one of the working tree is compared too."""
    assert load_defaults(tmp_path, "gone", "[smoke]") == (["shop", "gone"], ["gone"])


def test_a_case_that_only_the_base_has_is_found_next_to_one_that_only_head_has(tmp_path: Path) -> None:
    """A selection of several models names what exists of each."""
    head, base = write(tmp_path / "head"), write(tmp_path / "base", sizes="[small, gone]")
    head.write_text(
        head.read_text(encoding="utf-8").replace('select: "', 'select: "new/*,')
        + "  - {name: new, factory: 'shop:build', cases: [{}]}\n",
        encoding="utf-8",
    )
    assert "shop/gone" in list_names(load(head, base.parent))


def write(directory: Path, layers: int = 2, sizes: str = "[small]") -> Path:
    """Write a gate.yml with a model of two layers in one size, and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "gate.yml"
    path.write_text(SHOP.format(layers=layers, sizes=sizes), encoding="utf-8")
    return path


def load(head: Path, base: Path) -> BaseCases:
    """Load the base's cases for a run of all that head's configuration selects."""
    config = load_config(head)
    return load_base_cases(config, select_cases(load_cases(config), config.select), base)


def list_names(loaded: BaseCases) -> list[str]:
    """List the cases, shortened."""
    return [case.id.removesuffix("-default").replace("inference-float32-", "") for case in loaded.cases]


def test_base_defines_its_own_cases(tmp_path: Path) -> None:
    """A model that head changed has the base's definition, and the reference models have one for both."""
    head, base = write(tmp_path / "head", layers=3), write(tmp_path / "base", layers=2)
    config = load_config(head)
    cases = {case.id: case for case in select_cases(load_cases(config), config.select)}
    loaded = load(head, base.parent)
    assert list_names(loaded) == ["elementwise/smoke", "shop/small"]
    changed = {case.id: case.definition != cases[case.id].definition for case in loaded.cases}
    assert changed == {
        "elementwise/inference-float32-smoke-default": False,
        "shop/inference-float32-small-default": True,
    }
    assert (loaded.cases[1].arguments, loaded.notes) == ({"layers": 2}, ())


def test_cases_that_only_one_side_has(tmp_path: Path) -> None:
    """Head's new case is absent; one that it dropped stays while its selection names it."""
    head = write(tmp_path / "head", sizes="[small, large]")
    base = write(tmp_path / "base", sizes="[small, tiny]")
    assert list_names(load(head, base.parent)) == ["elementwise/smoke", "shop/small", "shop/tiny"]


def test_selection_that_the_base_cannot_follow(tmp_path: Path) -> None:
    """Only the case whose id the base does not know is absent there."""
    head, base = write(tmp_path / "head"), tmp_path / "base"
    base.mkdir()
    (base / "gate.yml").write_text("version: 1\n", encoding="utf-8")
    assert list_names(load(head, base)) == ["elementwise/smoke"]


def test_base_without_configuration(tmp_path: Path) -> None:
    """Head's configuration measures a directory from before the gate, with a note."""
    loaded = load(write(tmp_path / "head"), tmp_path)
    assert list_names(loaded) == ["elementwise/smoke", "shop/small"]
    assert [note.code for note in loaded.notes] == [Code.BASE_UNCONFIGURED]


def copy_gate(directory: Path, line: str = "") -> Path:
    """Copy the reference models to where the gate's own repository has them; return its gate.yml."""
    models = directory / "gate" / "models"
    shutil.copytree(OWN_MODELS, models, ignore=shutil.ignore_patterns("__pycache__"))
    source = models / "elementwise.py"
    source.write_text(source.read_text(encoding="utf-8") + line, encoding="utf-8")
    path = directory / "gate.yml"
    path.write_text('version: 1\nselect: "elementwise/*-float32-smoke-default,bert/*"\n', encoding="utf-8")
    return path


def test_base_defines_the_reference_models_that_are_under_test(tmp_path: Path) -> None:
    """In the gate's own repository a model is defined by each state's own source."""
    head, base = copy_gate(tmp_path / "head"), copy_gate(tmp_path / "base", "# as it was\n")
    config = load_config(head)
    cases = {case.id: case.definition for case in select_cases(load_cases(config), config.select)}
    for run_config in (config, replace(config, commit="a" * 40)):
        loaded = load_base_cases(run_config, select_cases(load_cases(config), config.select), base.parent)
        others = {case.id for case in loaded.cases if case.definition != cases[case.id]}
        assert [case.id for case in loaded.cases] == list(cases)
        assert others == {name for name in cases if name.startswith("elementwise/")} != set()
    assert load_head_cases(config, loaded.cases, base.parent) == loaded.cases


def test_unknown_reference_models_of_a_base_are_not_taken_for_heads(tmp_path: Path) -> None:
    """With the models under test, a base without a usable gate.yml has none to compare with."""
    head, base = copy_gate(tmp_path / "head"), copy_gate(tmp_path / "base", "# as it was\n")
    base.write_text("version: 9\n", encoding="utf-8")
    assert load(head, base.parent).cases == ()
    base.unlink()
    assert load(head, base.parent).cases == ()


def test_models_of_another_gate_are_no_reference(tmp_path: Path) -> None:
    """Where another gate measures than that of the checkout, its own reference models are both sides'."""
    head, base = copy_gate(tmp_path / "head", "# another\n"), copy_gate(tmp_path / "base", "# as it was\n")
    config = load_config(head)
    loaded = load(head, base.parent)
    assert loaded.cases == select_cases(load_cases(config), config.select)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("version: 1\nmodel: []\n", "gate.yml:2: model: unknown key"),
        ("version: 9\n", "gate.yml:1: version: "),
        ("version: 1\nregistry: [gone.yml]\n", "gate.yml:2: registry[0]: gone.yml does not exist"),
        ("version: [", "gate.yml"),
    ],
)
def test_base_whose_configuration_cannot_be_used(tmp_path: Path, content: str, words: str) -> None:
    """An invalid or newer gate.yml, or a missing registry, is noted and costs only the base's own models."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "gate.yml").write_text(content, encoding="utf-8")
    loaded = load(write(tmp_path / "head"), base)
    assert list_names(loaded) == ["elementwise/smoke"]
    (note,) = loaded.notes
    assert note.code is Code.BASE_MISCONFIGURED
    assert note.name("problem").startswith(words)
    assert str(base) not in note.name("problem")


@pytest.mark.parametrize(
    "rule",
    [
        "overrides:\n  - {case: gone/*, metric: peak_memory, relative: 0.1, absolute: 1, reason: history}\n",
        "limits:\n  - {case: gone/*, metric: peak_memory, at_most: 1}\n",
        "quarantine:\n  - {case: gone/*, owner: ada, reason: crashes, expires: 2027-01-01}\n",
    ],
)
def test_a_rule_for_a_case_that_an_arm_lacks_is_no_fault(tmp_path: Path, rule: str) -> None:
    """The working tree's rules judge, whatever cases the arms have."""
    tree, arm = write(tmp_path / "tree"), write(tmp_path / "arm")
    arm.write_text(arm.read_text(encoding="utf-8") + rule, encoding="utf-8")
    assert list_names(load(tree, arm.parent)) == ["elementwise/smoke", "shop/small"]
    head = load_head_cases(load_config(tree), (), arm.parent)
    assert list_names(BaseCases(cases=head)) == ["elementwise/smoke", "shop/small"]


def test_configuration_under_another_name(tmp_path: Path) -> None:
    """The base's file of the same name counts, else its gate.yml."""
    head = write(tmp_path / "head").rename(tmp_path / "head" / "perf.yml")
    base = write(tmp_path / "base", layers=5)
    assert load(head, base.parent).cases[1].arguments == {"layers": 5}
    write(tmp_path / "base", layers=7).rename(base.with_name("perf.yml"))
    write(tmp_path / "base", layers=5)
    assert load(head, base.parent).cases[1].arguments == {"layers": 7}


def test_configuration_taken_from_the_base(tmp_path: Path) -> None:
    """Where head is judged by the base's configuration already, both sides have the same cases."""
    config = replace(load_config(write(tmp_path / "head")), commit="a" * 40)

    cases = select_cases(load_cases(config), config.select)

    assert list_names(load_base_cases(config, cases, tmp_path)) == ["elementwise/smoke", "shop/small"]


def test_head_defines_its_own_cases(tmp_path: Path) -> None:
    """A head that is not the working tree is measured by its own definitions, and its own sizes."""
    tree = load_config(write(tmp_path / "tree", layers=2, sizes="[small]"))
    head = write(tmp_path / "head", layers=3, sizes="[small, large]")
    cases = load_head_cases(tree, (), head.parent)
    assert list_names(BaseCases(cases=cases)) == ["elementwise/smoke", "shop/small", "shop/large"]
    assert cases[1].arguments == {"layers": 3}


def test_head_without_configuration_runs_the_working_trees_cases(tmp_path: Path) -> None:
    """There are no others."""
    tree = load_config(write(tmp_path / "tree"))
    cases = select_cases(load_cases(tree), tree.select)
    assert load_head_cases(tree, cases, tmp_path) == cases


def test_head_whose_configuration_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """The error names the file and the key."""
    tree = load_config(write(tmp_path / "tree"))
    (tmp_path / "gate.yml").write_text("version: 1\ntrails: 3\n", encoding="utf-8")
    with pytest.raises(FileError, match="trails"):
        load_head_cases(tree, (), tmp_path)


def test_a_named_head_must_have_what_is_selected(tmp_path: Path) -> None:
    """Otherwise a requested case would silently be left out."""
    text = write(tmp_path / "tree").read_text(encoding="utf-8")
    tree = replace(load_config(tmp_path / "tree" / "gate.yml"), select="shop,fresh")
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "gate.yml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match="no model matches 'fresh'"):
        load_head_cases(tree, (), tmp_path / "base")


def test_a_base_without_any_case_has_none(tmp_path: Path) -> None:
    """Head lists the first model: it is measured and new, and its own file is not blamed."""
    head = write(tmp_path / "head")
    config = replace(load_config(head), select="", origins={})
    (tmp_path / "gate.yml").write_text("version: 1\nreference_models: false\n", encoding="utf-8")
    assert load_base_cases(config, load_cases(config), tmp_path) == BaseCases(cases=())


def load_rules(directory: Path, entries: str) -> Rules:
    directory.mkdir()
    path = directory / "gate.yml"
    path.write_text(f"version: 1\nreference_models: false\n{entries}", encoding="utf-8")
    config = load_config(path)
    return Rules(config=config, cases=load_cases(config))


def test_follow_moves_of_what_is_still_the_same(tmp_path: Path) -> None:
    """Factory and test of an unchanged definition are the change's; of all else nothing is taken."""
    base = load_rules(
        tmp_path / "base",
        "models:\n  - {name: lin, factory: 'f:old', cases: [{}, {task: training}]}\n"
        "  - {name: mlp, factory: 'm:old', cases: [{}]}\n"
        "tests:\n  - {name: t, node: 'a.py::t'}\n  - {name: gone, node: 'g.py::g'}\n",
    )
    change = load_rules(
        tmp_path / "change",
        "models:\n  - {name: lin, factory: 'f:new', cases: [{}]}\n"
        "  - {name: mlp, factory: 'm:new', arguments: {width: 1}, cases: [{}]}\n"
        "  - {name: added, factory: 'f:added', cases: [{}]}\n"
        "tests:\n  - {name: t, node: 'b.py::t'}\n",
    )

    followed = follow_moves(base, change)

    assert [entry.factory for entry in followed.config.models] == ["f:new", "m:old"]
    assert [entry.node for entry in followed.config.tests] == ["b.py::t", "g.py::g"]
    assert followed.moved == ("lin: f:old, now f:new", "t: a.py::t, now b.py::t")
    assert followed.removed == (
        "lin/training-float32-smoke-default",
        "mlp/inference-float32-smoke-default",
        "gone/test",
    )


def test_only_what_the_change_removed_is_marked() -> None:
    """A marked case may fail without making the check incomplete."""
    kept, gone = (Case(id=f"{name}/x", model=name) for name in ("kept", "gone"))
    assert [case.is_removed for case in mark_removed((kept, gone), ["gone/x"])] == [False, True]
