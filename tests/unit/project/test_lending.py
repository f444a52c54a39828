"""The files that a base without gate.yml borrows."""

from dataclasses import replace
from pathlib import Path

from gate.project.config import load_config
from gate.project.lending import Lent, lend_files
from gate.project.registry import load_cases


def write_files(directory: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content, encoding="utf-8")


def test_a_checkout_without_configuration_is_lent_what_cases_are_built_of(tmp_path: Path) -> None:
    """It borrows missing gate.yml, registries, factories and tests; its own files stay."""
    text = (
        "version: 1\nregistry: [perf/more.yml, ../outside.yml]\nreference_models: true\n"
        "models:\n  - {name: shop, factory: 'bench.shop:build', cases: [{}]}\n"
        "tests:\n  - {name: mine, node: 'perf/test_mine.py::test_mine'}\n"
    )
    more = "version: 1\nmodels:\n  - {name: kept, factory: 'kept:build', cases: [{}]}\n"
    files = {
        "head/gate.yml": text,
        **dict.fromkeys(("head/perf/more.yml", "outside.yml"), more),
        **dict.fromkeys(("head/bench/shop.py", "head/perf/test_mine.py", "head/kept.py"), "HEAD = 1\n"),
        "base/kept.py": "BASE = 1\n",
    }
    files["outside.yml"] = more.replace("kept", "other")
    write_files(tmp_path, files)
    config, base = load_config(tmp_path / "head" / "gate.yml"), tmp_path / "base"
    write_files(tmp_path / "other", {"gate.yml": "version: 1\n"})

    lent = lend_files(config, load_cases(config), base)

    assert set(lent.files) == {"gate.yml", "perf/more.yml", "bench/shop.py", "perf/test_mine.py"}
    assert (base / "bench" / "shop.py").read_text(encoding="utf-8") == "HEAD = 1\n"
    assert (base / "kept.py").read_text(encoding="utf-8") == "BASE = 1\n"
    assert lend_files(config, load_cases(config), base) == Lent()
    assert lend_files(config, load_cases(config), tmp_path / "other") == Lent()
    assert lend_files(replace(config, commit="a" * 40), load_cases(config), tmp_path / "none") == Lent()


def test_new_modules_that_a_factory_imports_go_with_it(tmp_path: Path) -> None:
    """Also through each other, from packages and layouts; the base's own files stay."""
    model = "{name: a, factory: 'bench:build', cases: [{}]}"
    files = {
        "gate.yml": f"version: 1\nreference_models: false\nmodels: [{model}]\n",
        "bench.py": "import helper, torch, old\nfrom shop import parts\n",
        "helper.py": "def make():\n    from deep.inner import LIMIT\n",
        "deep/__init__.py": "from . import beside\n",
        "deep/inner.py": "from .beside import LIMIT\n",
        "deep/beside.py": "LIMIT = 1\n",
        "src/shop/__init__.py": "",
        "src/shop/parts.py": "def broken(:\n",
        "old.py": "import newer\n",
        "newer.py": "",
        "unused.py": "",
    }
    write_files(tmp_path / "head", files)
    write_files(tmp_path / "base", {"old.py": "", "src/shop/__init__.py": ""})
    config = load_config(tmp_path / "head" / "gate.yml")

    lent = lend_files(config, load_cases(config), tmp_path / "base")

    assert lent.files == ("gate.yml", "bench.py")
    new = {"helper.py", "deep/__init__.py", "deep/inner.py", "deep/beside.py", "src/shop/parts.py"}
    assert set(lent.modules) == new
    there = {path.relative_to(tmp_path / "base").as_posix() for path in (tmp_path / "base").rglob("*.py")}
    assert there == {"bench.py", "old.py", "src/shop/__init__.py", *new}
    assert (tmp_path / "base" / "old.py").read_text(encoding="utf-8") == ""
