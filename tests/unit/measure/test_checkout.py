"""The checkout from which a worker imports measured code: real interpreters, real installations."""

import importlib.util
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import gate
from tests.git import run_git

LOOK = """
import importlib, sys
from gate.measure.checkout import check_source, set_search_path
from gate.worker.imported import check_imports
from gate.errors import UsageError
from gate.records.protocol import WorkerRequest, WorkerRole
directory, checkout, origin, factory, models = sys.argv[1:]
request = WorkerRequest(role=WorkerRole.COLD, case=None, device="cpu", threads=1, result="",
                        directory=directory, checkout=checkout, origin=origin, models=models)
set_search_path(request)
try:
    check_source(factory, request)
except UsageError as error:
    sys.exit(error.what)
module = importlib.import_module(factory.partition(":")[0])
try:
    check_imports(request)
except UsageError as error:
    sys.exit(error.what)
print(module.SIDE)
"""

ALLOW = ("-c", "protocol.file.allow=always")  # git clones no submodule from a path otherwise

Look = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with no packages, in the user's checkout, as many keep it."""
    project = tmp_path_factory.mktemp("project")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(project / "head" / ".venv")
    return project / "head" / ".venv" / "bin" / "python"


@pytest.fixture
def site(interpreter: Path) -> Path:
    """The interpreter's empty site-packages."""
    (site,) = interpreter.parent.parent.glob("lib/python*/site-packages")
    for path in site.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return site


@pytest.fixture
def look(interpreter: Path, site: Path) -> Look:
    """Import ``shop`` as a worker of an arm would, and print which side's it is."""
    assert site.is_dir()
    head = interpreter.parents[2]
    for path in (head.parent / "base", *(path for path in head.iterdir() if path.name != ".venv")):
        shutil.rmtree(path, ignore_errors=True)
    for side in ("head", "base"):
        for directory in ("flat", "src"):
            path = head.parent / side / directory / "shop.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"SIDE = '{side}'\n", encoding="utf-8")

    def run(side: str, directory: str, **variables: str) -> subprocess.CompletedProcess[str]:
        checkout, origin = (str(head.parent / "base"), str(head)) if side == "base" else ("", "")
        packages = [str(Path(gate.__file__).parents[1]), variables.get("PYTHONPATH", "")]
        factory, models = variables.get("factory", "shop:build"), variables.get("models", "")
        arguments = [str(head.parent / side / directory), checkout, origin, factory, models]
        return subprocess.run(
            [str(interpreter), "-P", "-c", LOOK, *arguments],
            env={"PYTHONPATH": ":".join(filter(None, packages)), "PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
            capture_output=True,
            text=True,
        )

    return run


def test_plain_directory(look: Look) -> None:
    """A project that is not installed is imported from its arm's directory."""
    assert [look(side, "flat").stdout.strip() for side in ("head", "base")] == ["head", "base"]


def test_editable_installation(look: Look, site: Path, interpreter: Path) -> None:
    """A path that pip -e added to the search path means the arm's checkout."""
    (site / "shop.pth").write_text(f"{interpreter.parents[2] / 'src'}\n", encoding="utf-8")
    assert [look(side, "flat").stdout.strip() for side in ("head", "base")] == ["head", "base"]


def test_search_path_of_the_caller(look: Look, interpreter: Path) -> None:
    """PYTHONPATH=src means the arm's src."""
    path = str(interpreter.parents[2] / "src")
    sides = [look(side, "flat", PYTHONPATH=path).stdout.strip() for side in ("head", "base")]
    assert sides == ["head", "base"]


def test_reference_models_of_an_arm(look: Look, tmp_path: Path) -> None:
    """Where the reference models are under test themselves, an arm imports its own."""
    (tmp_path / "shop.py").write_text("SIDE = 'models of the base'\n", encoding="utf-8")
    done = look("base", "flat", factory="gate.models.shop:build", models=str(tmp_path))
    assert done.stdout.strip() == "models of the base"


def test_packages_within_the_checkout_stay(look: Look, site: Path) -> None:
    """Packages of an environment inside the user's checkout are no code of theirs."""
    (site / "dependency.py").write_text("", encoding="utf-8")
    for side in ("head", "base"):
        shop = site.parents[4] / side / "flat" / "shop.py"
        shop.write_text(f"import dependency\nSIDE = '{side}'\n", encoding="utf-8")
    assert look("base", "flat").stdout.strip() == "base"


def test_installed_copy_is_refused(look: Look, site: Path) -> None:
    """It would be measured in place of the checkout; the fix is named."""
    (site / "shop.py").write_text("SIDE = 'installed'\n", encoding="utf-8")
    done = look("base", "flat")
    assert done.returncode == 1
    assert f"shop is imported from {site / 'shop.py'} and not from the arm's checkout" in done.stderr
    assert "pip install -e" in done.stderr
    assert look("head", "flat").stdout.strip() == "installed"


@pytest.mark.parametrize("project", ["src", "parts/shop/python"])
def test_installed_copy_of_what_is_not_on_the_search_path_is_refused(
    look: Look, site: Path, project: str
) -> None:
    """Its packages lie in a directory of their own, at the top or below: both arms would measure the copy."""
    (site / "shop.py").write_text("SIDE = 'installed'\n", encoding="utf-8")
    base = site.parents[4] / "base"
    for directory in ("flat", "src"):
        (base / directory / "shop.py").unlink()
    (base / project).mkdir(parents=True, exist_ok=True)
    (base / project / "shop.py").write_text("SIDE = 'base'\n", encoding="utf-8")
    if project != "src":
        (base / "parts" / "shop" / "pyproject.toml").write_text("", encoding="utf-8")
    assert "and not from the arm's checkout" in look("base", "flat").stderr


def test_code_of_the_user_is_refused(look: Look, site: Path, interpreter: Path) -> None:
    """A directory that only head has must not lend its code to the base."""
    only = interpreter.parents[2] / "only"
    only.mkdir()
    (only / "shop.py").write_text("SIDE = 'head'\n", encoding="utf-8")
    (site / "shop.pth").write_text(f"{only}\n", encoding="utf-8")
    assert f"shop is imported from {only / 'shop.py'}" in look("base", "flat").stderr


def test_factory_of_a_library(look: Look, site: Path, interpreter: Path) -> None:
    """A factory that the project itself does not have may come from anywhere."""
    (site / "shop.py").write_text("SIDE = 'library'\n", encoding="utf-8")
    for side in ("head", "base"):
        (interpreter.parents[3] / side / "flat" / "shop.py").unlink()
        (interpreter.parents[3] / side / "src" / "shop.py").unlink()
    assert look("base", "flat").stdout.strip() == "library"


@pytest.fixture
def tills(interpreter: Path) -> tuple[Path, Path]:
    """Head's and base's ``till``, which ``shop`` imports: the base's is another one."""
    sides = [interpreter.parents[3] / side for side in ("head", "base")]
    for side in sides:
        (side / "flat" / "shop.py").write_text(f"import till\nSIDE = '{side.name}'\n", encoding="utf-8")
        (side / "src" / "till.py").write_text(f"COINS = '{side.name}'\n", encoding="utf-8")
    return sides[0] / "src" / "till.py", sides[1] / "src" / "till.py"


@pytest.mark.parametrize("is_built", [False, True], ids=["installed", "below_the_checkout"])
def test_copy_of_what_a_factory_imports_is_refused(
    look: Look, site: Path, tills: tuple[Path, Path], is_built: bool
) -> None:
    """The factory is the base's, but both arms would import head's package."""
    copied_to = tills[0].parents[1] / "build" / "lib" if is_built else site
    copied_to.mkdir(parents=True, exist_ok=True)
    (site / "built.pth").write_text(f"{copied_to}\n", encoding="utf-8")
    shutil.copy(tills[0], copied_to / "till.py")
    message = f"till is imported from {copied_to / 'till.py'}, and the arm's checkout has another src/till.py"
    assert message in look("base", "flat").stderr
    assert look("head", "flat").stdout.strip() == "head"


def test_a_package_that_head_has_moved_is_refused(look: Look, tills: tuple[Path, Path]) -> None:
    """The base has no ``src``, so head's stays on the search path; its own ``till`` is elsewhere."""
    head, base = (till.parents[1] for till in tills)
    shutil.rmtree(base / "src")
    (head / "src" / "shop.py").unlink()
    (base / "till.py").write_text("COINS = 'base'\n", encoding="utf-8")
    done = look("base", "flat", PYTHONPATH=str(head / "src"))
    assert f"till is imported from {tills[0]}, and the arm's checkout has till elsewhere" in done.stderr


@pytest.mark.parametrize("is_stale", [True, False])
def test_a_copy_that_was_installed_before_the_last_change_is_refused(
    look: Look, site: Path, tills: tuple[Path, Path], is_stale: bool
) -> None:
    """With ``pip install .`` in an environment that CI keeps, old code is measured."""
    (site / "till.py").write_text("COINS = 'old'\n" if is_stale else tills[0].read_text(), encoding="utf-8")
    info = site / "till-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: till\nVersion: 1.0\n", encoding="utf-8")
    (info / "top_level.txt").write_text("till\n", encoding="utf-8")
    assert look("head", "flat").stdout.strip() == "head"  # a library that is called so
    (info / "direct_url.json").write_text(f'{{"url": "file://{tills[0].parents[1]}"}}', encoding="utf-8")
    (tills[0].parents[1] / ".git").mkdir(exist_ok=True)
    for directory in (tills[0].parent, site):  # a build writes the installed one anew
        (directory / "_version.py").write_text(f"PLACE = {str(directory)!r}\n", encoding="utf-8")
    shop = tills[0].parents[1] / "flat" / "shop.py"
    shop.write_text(f"import _version\n{shop.read_text()}", encoding="utf-8")
    (info / "top_level.txt").write_text("till\n_version\n", encoding="utf-8")
    done = look("head", "flat")
    if is_stale:
        assert f"till is imported from {site / 'till.py'}, a copy that was installed before" in done.stderr
    else:
        assert done.stdout.strip() == "head"


def test_code_of_the_user_that_an_import_hook_finds_is_refused(
    look: Look, site: Path, tills: tuple[Path, Path]
) -> None:
    """An editable installation need not be a directory on the search path."""
    hook = f"""
import importlib.util, sys
class Hook:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, {str(tills[0])!r}) if name == "till" else None
sys.meta_path.insert(0, Hook)
"""
    (site / "hook.py").write_text(hook, encoding="utf-8")
    (site / "hook.pth").write_text("import hook\n", encoding="utf-8")
    assert f"till is imported from {tills[0]}" in look("base", "flat").stderr


def test_what_both_checkouts_have_alike_may_be_imported_from_anywhere(
    look: Look, site: Path, tills: tuple[Path, Path]
) -> None:
    """An installed copy of a file that the change leaves alone, and a library of the same name."""
    shutil.copy(tills[0], site / "till.py")
    shutil.copy(tills[0], tills[1])
    assert look("base", "flat").stdout.strip() == "base"
    (site / "till.py").write_text("COINS = 'a library'\n", encoding="utf-8")
    tills[1].write_text("COINS = 'base'\n", encoding="utf-8")
    assert look("base", "flat").stdout.strip() == "base"


@pytest.fixture
def extension(site: Path, tills: tuple[Path, Path]) -> tuple[Path, Path]:
    """The C++ of head's and base's ``till``, of which one build is installed with the same Python."""
    spec = importlib.util.find_spec("_json")
    assert spec is not None
    assert spec.origin is not None
    for side in (till.parents[1] for till in tills):
        (side / "src" / "till.py").unlink()
        for name, text in (("src/till/__init__.py", ""), ("csrc/till.cpp", side.name), ("csrc/lid.h", "")):
            (side / name).parent.mkdir(exist_ok=True)
            (side / name).write_text(text, encoding="utf-8")
        (side / "flat" / "shop.py").write_text(f"import till._json\nSIDE = '{side.name}'\n", encoding="utf-8")
    (site / "till").mkdir()
    (site / "till" / "__init__.py").touch()
    shutil.copy(spec.origin, site / "till")
    return tills[0].parents[1] / "csrc" / "till.cpp", tills[1].parents[1] / "csrc" / "till.cpp"


def test_an_extension_that_is_built_from_other_sources_is_refused(
    look: Look, extension: tuple[Path, Path]
) -> None:
    """The interpreter has one build for both arms, which is right if both have the same sources."""
    message = "till._json is an extension of the project, and the arm's checkout has another csrc/till.cpp"
    assert message in look("base", "flat").stderr
    assert look("head", "flat").stdout.strip() == "head"
    shutil.copy(*extension)
    assert look("base", "flat").stdout.strip() == "base"


def test_a_library_that_is_called_as_a_directory_of_the_project_is_none_of_it(
    look: Look, site: Path, extension: tuple[Path, Path]
) -> None:
    """A project keeps its Triton kernels in ``triton``, and changes a header."""
    (site / "till" / "__init__.py").write_text("COINS = 'a library'\n", encoding="utf-8")
    assert extension[0].read_text() != extension[1].read_text()
    assert look("base", "flat").stdout.strip() == "base"


def test_an_extension_with_a_name_of_its_own_is_the_projects_by_where_pip_found_it(
    look: Look, site: Path, extension: tuple[Path, Path]
) -> None:
    """An extension for own operators has no package of its name in the project."""
    (site / "till").rename(site / "till_ops")
    for shop in (source.parents[1] / "flat" / "shop.py" for source in extension):
        shop.write_text(f"import till_ops._json\nSIDE = '{shop.parents[1].name}'\n", encoding="utf-8")
    assert look("base", "flat").stdout.strip() == "base"
    info = site / "till-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: till\nVersion: 1.0\n", encoding="utf-8")
    (info / "top_level.txt").write_text("till_ops\n", encoding="utf-8")
    (info / "direct_url.json").write_text(f'{{"url": "file://{extension[0].parents[1]}"}}', encoding="utf-8")
    assert "till_ops._json is an extension of the project" in look("base", "flat").stderr


def test_reference_models_are_the_installed_gates() -> None:
    """The gate's own models are never taken for the project's."""
    arguments = ["/nowhere", "/nowhere", str(Path(gate.__file__).parents[1]), "gate.workload:Workload", ""]
    code = LOOK.replace("print(module.SIDE)", "print(module.__name__)")
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "gate.workload"


def test_a_library_of_operators_that_was_built_in_the_users_checkout_is_refused(
    look: Look, site: Path, extension: tuple[Path, Path]
) -> None:
    """``torch.ops.load_library`` loads it without a module, by a path that both arms have."""
    built = extension[0].parents[1] / "build" / "till.so"
    built.parent.mkdir(exist_ok=True)
    (library,) = (site / "till").glob("_json*")
    library.rename(built)
    for shop in (source.parents[1] / "flat" / "shop.py" for source in extension):
        text = f"import torch\ntorch.ops.load_library({str(built)!r})\nSIDE = '{shop.parents[1].name}'\n"
        shop.write_text(text, encoding="utf-8")
    torch_site = str(Path(torch.__file__).parents[1])
    message = "till.so is an extension of the project, and the arm's checkout has another csrc/till.cpp"
    assert message in look("base", "flat", PYTHONPATH=torch_site).stderr
    shutil.copy(*extension)
    assert look("base", "flat", PYTHONPATH=torch_site).stdout.strip() == "base"


@pytest.fixture
def layers(look: Look, site: Path) -> Iterator[Path]:
    """Head's submodule, installed editable and imported by ``shop``; the base is a worktree of it."""
    assert callable(look)  # head and base are there
    project = site.parents[4]
    head, base, other = project / "head", project / "base", project / "layers"
    (other / "src" / "layers").mkdir(parents=True)
    (other / "src" / "layers" / "__init__.py").write_text("SIZE = 1\n", encoding="utf-8")
    (head / "flat" / "shop.py").write_text("import layers\nSIDE = 'either'\n", encoding="utf-8")
    shutil.rmtree(head / ".git", ignore_errors=True)
    for top, entry in ((other, "src"), (head, "flat")):
        run_git(top, "init", "--quiet")
        run_git(top, "add", entry)
        run_git(top, "commit", "--quiet", "--message", "one")
    run_git(head, *ALLOW, "submodule", "--quiet", "add", str(other), "third_party/layers")
    run_git(head, "commit", "--quiet", "--message", "two")
    shutil.rmtree(base)
    run_git(head, "worktree", "add", "--quiet", "--detach", str(base))
    (site / "layers.pth").write_text(f"{head / 'third_party' / 'layers' / 'src'}\n", encoding="utf-8")
    yield head / "third_party" / "layers"
    for left in (other, head / ".git", head / "third_party"):
        shutil.rmtree(left)
    (head / ".gitmodules").unlink()


def change(layers: Path, how: str) -> str:
    """Change head's submodule; return the base's error."""
    path = layers / "src" / "layers" / "__init__.py"
    path.write_text("SIZE = 2\n", encoding="utf-8")
    if how != "edited":
        run_git(layers, "commit", "--quiet", "--all", "--message", "other")
    if how == "bumped":
        run_git(layers.parents[1], "commit", "--quiet", "--all", "--message", "three")
    return f"layers is imported from {path}, and the arm's checkout has another submodule third_party/layers"


@pytest.mark.parametrize("how", ["edited", "checked_out", "bumped"])
def test_a_submodule_that_is_not_the_bases_is_refused(look: Look, layers: Path, how: str) -> None:
    """A worktree has none, so the base imports the user's, which is the same until it changes."""
    (layers / "src" / "layers.egg-info").mkdir()
    (layers / "src" / "layers.egg-info" / "PKG-INFO").touch()
    assert look("base", "flat").stdout.strip() == "either"
    message = change(layers, how)
    assert message in look("base", "flat").stderr
    assert look("head", "flat").stdout.strip() == "either"


def test_a_copy_of_a_submodule_that_is_not_the_bases_is_refused(look: Look, site: Path, layers: Path) -> None:
    """It is installed without ``-e``, from the user's checkout."""
    message = change(layers, "bumped")
    (site / "layers.pth").unlink()
    shutil.copytree(layers / "src" / "layers", site / "layers")
    (layers / "pyproject.toml").touch()
    assert message.replace(str(layers / "src"), str(site)) in look("base", "flat").stderr


def test_a_clone_with_its_submodules_is_measured(look: Look, layers: Path) -> None:
    """Each arm imports its own submodule."""
    head = layers.parents[1]
    base = head.parent / "base"
    shutil.rmtree(base)
    run_git(head, *ALLOW, "clone", "--quiet", "--recurse-submodules", str(head), str(base))
    change(layers, "bumped")
    (base / "flat" / "shop.py").write_text("import layers\nSIDE = layers.SIZE\n", encoding="utf-8")
    assert look("base", "flat").stdout.strip() == "1"
