"""What a checkout without gate.yml is lent of head: that file, what builds its cases, and new modules."""

import ast
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gate.project.arm_cases import find_arm_config
from gate.project.cases import is_reference
from gate.project.config import Config
from gate.records.cases import Case

_LAYOUTS = ("", "src", "lib", "python")  # where a project keeps its packages


@dataclass(frozen=True, kw_only=True, slots=True)
class Lent:
    """Names in the directory of the configuration. ``modules`` are head's own on both sides."""

    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def lend_files(config: Config, cases: tuple[Case, ...], directory: Path) -> Lent:
    """Lend a checkout without a configuration head's, and the files that build ``cases`` and that it lacks.

    So the change that brings gate.yml is compared like any other. New modules that a lent file imports go
    with it.
    """
    if config.commit or find_arm_config(config, directory):
        return Lent()
    wanted = dict.fromkeys((Path(config.source).name, *_list_building(config, cases)))
    files = tuple(name for name in wanted if _lend(config.directory, directory, name))
    modules = []
    waiting = [name for name in files if name.endswith(".py")]
    while waiting:
        for name in _list_imported(config.directory, waiting.pop()):
            if _lend(config.directory, directory, name):
                modules.append(name)
                waiting.append(name)
    return Lent(files=files, modules=tuple(modules))


def _lend(source: Path, directory: Path, name: str) -> bool:
    kept, copy = source / name, directory / name
    if not kept.is_file() or copy.exists():
        return False
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, copy)
    return True


def _list_building(config: Config, cases: tuple[Case, ...]) -> Iterator[str]:
    for registry in config.registry:
        if registry.is_relative_to(config.directory):
            yield registry.relative_to(config.directory).as_posix()
    for case in cases:
        if case.node:
            yield case.node.partition("::")[0]
        elif not is_reference(case):
            module = case.factory.partition(":")[0].replace(".", "/")
            yield from (f"{module}.py", f"{module}/__init__.py")


def _list_imported(directory: Path, file: str) -> Iterator[str]:
    try:
        tree = ast.parse((directory / file).read_bytes())
    except (OSError, SyntaxError, ValueError):  # its import reports it
        return
    here = Path(file).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (file for alias in node.names for file in _list_files(alias.name, _LAYOUTS))
        elif isinstance(node, ast.ImportFrom):
            around = [here, *here.parents][node.level - 1 :][:1] if node.level else _LAYOUTS
            names = [f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names]
            yield from (file for name in names for file in _list_files(name, map(str, around)))


def _list_files(module: str, roots: Iterable[str]) -> Iterator[str]:
    parts = module.split(".")
    for root in roots:
        for length in range(1, len(parts) + 1):
            path = Path(root, *parts[:length]).as_posix()
            yield from (f"{path}/__init__.py", f"{path}.py")
