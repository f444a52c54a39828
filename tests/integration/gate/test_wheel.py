"""The wheel, installed alone into an empty environment, next to the packages that it needs."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from gate.installation import name_page
from gate.version import __version__

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that takes nothing of this clone; return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COMPILE_"))}
    settings = {"COMPILE_GATE_REPOSITORY": "octo/compile-gate"}
    done = subprocess.run(
        command, cwd=cwd, env=kept | settings, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds all other packages where this one has them."""
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory, cwd=ROOT)
    venv.create(directory / "venv", with_pip=False, symlinks=True)
    interpreter = directory / "venv" / "bin" / "python"
    options = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", interpreter, "install", *options)
    run(*pip, *directory.glob("*.whl"), cwd=directory)
    site = run(interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory)
    (Path(site.strip()) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def test_its_command_works(python: Path, tmp_path: Path) -> None:
    """Schemas, reference models, sentences and templates of pages and projects come with it."""
    command = python.with_name("compile-gate")
    assert run(command, "--version", cwd=tmp_path).strip() == f"compile-gate {__version__}"
    assert '"reference_models"' in run(command, "schema", "config", cwd=tmp_path)
    (tmp_path / "gate.yml").write_text("version: 1\n")
    assert "bert/inference-float32-smoke-default" in run(command, "models", cwd=tmp_path)
    code = "import gate, pathlib; print(*(p.name for p in pathlib.Path(gate.__path__[0]).rglob('*')))"
    files = set(run(python, "-c", code, cwd=tmp_path).split())
    brought = {"gate.yml", "gate.yml.jinja", "sentences.ini", "style.css", "py.typed", "requirements.txt"}
    assert brought - files == set()
    assert str(python.parents[1]) in run(python, "-c", "import gate; print(gate.__file__)", cwd=tmp_path)


def test_its_messages_lead_to_the_site(python: Path, tmp_path: Path) -> None:
    """A release links its documents' site; a clone names the file."""
    code = "from gate.installation import name_page; print(name_page('targets'))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "https://octo.github.io/compile-gate/targets/"
    assert name_page("targets") == "docs/targets.md of compile-gate"


def test_every_page_that_a_message_names_exists() -> None:
    """It is in docs/, by its name there."""
    named = {
        page
        for path in (ROOT / "gate").rglob("*.py")
        for page in re.findall(r"name_page\(['\"]([\w-]+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 3
    assert [page for page in named if not (ROOT / "docs" / f"{page}.md").is_file()] == []
