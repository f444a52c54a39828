"""A project's first files: the look at a module, the files, and the pin of the action."""

import errno
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from gate.cli import main
from gate.cli.init import parse_input, probe_module
from gate.errors import MachineError, UsageError
from gate.starter import workflow_files
from gate.starter.new_files import Sketch, TensorSketch, name_model, render_factory, write_missing
from gate.starter.workflow_files import (
    LONG_WORKFLOWS,
    RESPOND_WORKFLOWS,
    find_action,
    get_workflows_directory,
    list_measured,
    load_workflows,
    parse_action,
    parse_labels,
)
from gate.version import __version__
from tests.git import run_git

COMMIT = "ab" * 20
ROOM = 50  # characters, on a disk that is almost full
# Stands in for torch: a module of the user's that imports it in earnest is tried in the slow test.
FACTORY = "import gate\n\ndef build(*, width=3):\n    return gate.Workload(forward=len, inputs=((),))\n"
CALL = "    uses: acme/gate/.github/workflows/check.yml@v1\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh repository with a package in it, as the current directory."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "acme.py").write_text(FACTORY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("my_package.model:MyModel", "my_model"),
        ("a:HTTPNet2", "http_net2"),
        ("a:Outer.Inner", "inner"),
        ("a:Class", "class_"),  # a keyword of Python
    ],
)
def test_a_model_is_named_after_its_class(target: str, name: str) -> None:
    """Words of a class become lower case with underscores, as gate.yml wants them."""
    assert name_model(target) == name


@pytest.mark.parametrize(
    ("text", "tensor"),
    [
        ("8x64", TensorSketch(shape=(8, 64))),
        ("8x64:int64<300", TensorSketch(shape=(8, 64), dtype="int64", high=300)),
        ("8<300", TensorSketch(shape=(8,), dtype="int64", high=300)),
        ("8:bool", TensorSketch(shape=(8,), dtype="bool", high=2)),
        ("8:complex64", TensorSketch(shape=(8,), dtype="complex64")),
    ],
)
def test_an_input_is_sizes_a_type_and_a_bound(text: str, tensor: TensorSketch) -> None:
    """Sizes joined by x, a type, and the bound of whole numbers."""
    assert parse_input(text) == tensor


@pytest.mark.parametrize("text", ["", "8y3", "8x", "x8", "8x3:complex7", "-1x3"])
def test_what_is_no_tensor_is_refused(text: str) -> None:
    """The error shows an example of one."""
    with pytest.raises(UsageError, match="is no tensor"):
        parse_input(text)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("import no_such", "mine:build", "mine cannot be imported: ModuleNotFoundError"),
        (
            "import no_such\nfrom neither.one import two\nimport json",
            "mine:build",
            "not installed: no_such, neither",
        ),
        ("", "mine:build", "mine has no build"),
        ("def make(): pass\nclass _A: pass", "mine:build", "mine has no build; it has make: write mine:make"),
        (
            "def make(): pass\ndef take(): pass",
            "mine:mke",
            "mine has no mke; it has make, take: write mine:make",
        ),
        ("def make(): pass", "mine", "this is a module; it has make: write mine:make"),
        ("build = 3", "mine:build", "it is int, not a module"),
        ("class Net:\n def __init__(self, width): pass", "mine:Net", "it needs width, which has no default"),
        (
            "class Net:\n def __init__(self, width): pass\n def forward(self, ids, mask): pass",
            "mine:Net",
            r"it needs width, which has no default; forward takes self, ids, mask",
        ),
        ("def build(): raise OSError('no disk')", "mine:build", "calling it failed: OSError: no disk"),
        ("def build(): return 3", "mine:build", "calling it gave int"),
        ("import os; os._exit(3)", "mine:build", None),
    ],
)
def test_what_cannot_be_begun_with_is_reported(
    tmp_path: Path, source: str, target: str, message: str | None
) -> None:
    """The error is the module's own, with a fix; a process that dies takes nothing with it."""
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    with pytest.raises(Exception, match=message or r"died \(status 3\): it wrote no error"):
        probe_module(tmp_path, target, {})


def test_a_factory_is_named_itself_and_nothing_is_written_over(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first call writes all, pinned; the second changes no byte, and shows the entry."""
    arguments = ("init", "acme:build", "--argument", "width=4", "--action", f"acme/compile-gate@{COMMIT}")
    assert main(arguments) == 0
    assert "wrote  gate.yml" in capsys.readouterr().out
    written = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    workflow = (project / ".github/workflows/compile-gate.yml").read_text(encoding="utf-8")
    assert f"uses: acme/compile-gate/.github/workflows/check.yml@{COMMIT}\n" in workflow
    assert """runner: '["self-hosted", "linux"]'\n""" in workflow
    assert len(list((project / ".github/workflows").iterdir())) == 1
    assert (
        (project / "gate.yml")
        .read_text(encoding="utf-8")
        .startswith("# yaml-language-server: $schema=.gate.schema.json\n")
    )
    (project / "gate.yml").write_text("version: 1\n# mine\n", encoding="utf-8")
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "kept   gate.yml: it was there already" in output
    assert "    factory: acme:build" in output
    assert (project / "gate.yml").read_text(encoding="utf-8") == "version: 1\n# mine\n"
    kept = {path: path.read_bytes() for path in written if path.name != "gate.yml" or path.parent != project}
    assert all(written[path] == content for path, content in kept.items())


def test_a_namesake_in_another_module_gets_no_factory_of_the_first(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """gate_net.py would build the other class: nothing is written, and the fix is shown."""

    def sketch(_: Path, target: str, *_given: object) -> Sketch:
        return Sketch(target=target, is_factory=False, called=True, inputs=(), arguments={})

    monkeypatch.setattr("gate.cli.init.probe_module", sketch)
    assert main(["init", "acme.model_b:Net"]) == 0
    written = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert main(["init", "acme.model_b:Net"]) == 0  # writes only what is missing
    (project / ".gate.schema.json").unlink()
    capsys.readouterr()
    for module in ("acme.model", "model_b", "other"):
        assert main(["init", f"{module}:Net"]) == 2
        assert capsys.readouterr().err == (
            f"compile-gate: gate_net.py: is there already, and is no factory of {module}\n"
            "Rename it, with its model in gate.yml,"
            f" or write a factory for {module}:Net by hand.\n"
        )
    assert not (project / ".gate.schema.json").exists()
    assert (project / "gate_net.py").read_bytes() == written[project / "gate_net.py"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("drift", "note"),
    [
        (17.0, "note   compiled results are off by 131,072x eager's own error already"),
        (64.0, "note   compiled results are another answer than eager's already"),
        (7.9, ""),
    ],
)
def test_a_model_that_is_wrong_from_the_start_is_reported(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    drift: float,
    note: str,
) -> None:
    """No change is to blame for it, so no check would be red."""

    def sketch(_: Path, target: str, *_given: object) -> Sketch:
        return Sketch(target=target, is_factory=True, called=True, inputs=(), arguments={}, drift=drift)

    monkeypatch.setattr("gate.cli.init.probe_module", sketch)
    assert main(["init", "acme:build"]) == 0
    printed = capsys.readouterr().out
    assert note in printed if note else "note " not in printed


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "low", "high"), [("1.01", 10.0, 25.0), ("1.0", -2.0, 1.0)])
def test_the_first_drift_is_of_the_factory_that_was_written(
    tmp_path: Path, factor: str, low: float, high: float
) -> None:
    """A hundredth in compiled code is 2^16 rounding steps."""
    source = (
        "import torch, gate\n\ndef build():\n"
        f"    def forward(x): return x.sin() * ({factor} if torch.compiler.is_compiling() else 1.0)\n"
        "    return gate.Workload(forward=forward, inputs=(torch.rand(512),))\n"
    )
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    assert low < probe_module(tmp_path, "mine:build", {}, drift_on="cpu").drift < high


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Training"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import gate\n", "WIDTH = 3\n", "!ls"]},
        {
            "cell_type": "code",
            "source": "@staticmethod\ndef build(width=WIDTH):  # small\n"
            "    return gate.Workload(forward=len, inputs=((),))\n\nbuild(); rate = float('x')",
        },
        {"cell_type": "code", "source": "%%time\ntrain("},
    ]
}


def test_a_notebook_gives_what_it_defines(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No process can import it, and its training must not run again; its module is written once."""
    path = project / "nb" / "my-net.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    assert main(["init", "nb/my-net.ipynb:build"]) == 0
    assert "wrote  nb/my_net.py: what nb/my-net.ipynb defines, without what its cells run\n" in (
        capsys.readouterr().out
    )
    written = (project / "nb" / "my_net.py").read_text(encoding="utf-8")
    assert written.endswith(
        "\n\nimport gate\n\nWIDTH = 3\n\n@staticmethod\ndef build(width=WIDTH):  # small\n"
        "    return gate.Workload(forward=len, inputs=((),))\n"
    )
    assert "factory: nb.my_net:build" in (project / "gate.yml").read_text(encoding="utf-8")
    path.write_text("{}", encoding="utf-8")
    assert main(["init", "nb/my-net.ipynb:build"]) == 2
    assert "nb/my-net.ipynb: is no notebook of Python" in capsys.readouterr().err
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "def"}]}), encoding="utf-8")
    assert main(["init", "nb/my-net.ipynb:build"]) == 2
    assert "is no notebook of Python: invalid syntax" in capsys.readouterr().err


def test_what_is_written_can_be_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The gate.yml lists the one case, with the arguments of the factory."""
    assert main(["init", "acme:build", "--argument", "width=4"]) == 0
    assert main(["models"]) == 0
    assert "build/inference-float32-smoke-default" in capsys.readouterr().out
    assert "arguments: {width: 4}" in (project / "gate.yml").read_text(encoding="utf-8")


def test_without_a_pin_no_workflow_is_written(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow with nobody's action would fail on every pull request."""
    monkeypatch.setattr("gate.cli.init.find_action", lambda _: "")
    assert main(["init", "acme:build"]) == 0
    assert "--action OWNER/compile-gate@COMMIT" in capsys.readouterr().out
    assert main(["init", "acme:build", "--comments"]) == 2
    assert "Add --action OWNER/compile-gate@COMMIT" in capsys.readouterr().err
    assert not (project / ".github").exists()
    assert main(["init", "acme:build", "--action", f"acme/compile-gate@{COMMIT}"]) == 0
    assert main(["init", "acme:build"]) == 0  # what was written then needs no pin now
    assert "No workflow was written" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "names"), [("--comments", RESPOND_WORKFLOWS), ("--long-workflows", LONG_WORKFLOWS)]
)
def test_more_workflows_are_an_option(project: Path, option: str, names: tuple[str, ...]) -> None:
    """A second file answers comments; or all are written in full, if no other repository can be called."""
    assert main(["init", "acme:build", "--action", f"acme/compile-gate@{COMMIT}", option]) == 0
    assert {path.name for path in (project / ".github/workflows").iterdir()} == set(names)


def test_a_second_workflow_takes_the_runner_of_the_first(project: Path) -> None:
    """It also takes an interpreter that somebody has written there."""
    given = ["init", "acme:build", "--action", f"acme/compile-gate@{COMMIT}"]
    assert main([*given, "--runner", "self-hosted, mine"]) == 0
    first, second = (project / f".github/workflows/{name}" for name in RESPOND_WORKFLOWS)
    text = first.read_text(encoding="utf-8").replace("python: python3 #", "python: /opt/torch/bin/python #")
    first.write_text(text, encoding="utf-8")
    assert main([*given, "--comments"]) == 0
    written = second.read_text(encoding="utf-8")
    assert """      runner: '["self-hosted", "mine"]'\n""" in written
    assert "      python: /opt/torch/bin/python # the interpreter" in written
    assert f"respond.yml@{COMMIT}\n" in written  # of an unknown release


def test_what_gate_yml_says_of_a_model_need_not_be_repeated(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is tried again, missing files are written; other arguments are noted, without effect."""

    def sketch(_: Path, target: str, arguments: Mapping[str, object], *_given: object) -> Sketch:
        if not arguments:
            raise UsageError("it needs width, which has no default", "Give it.")
        return Sketch(target=target, is_factory=False, called=True, inputs=(), arguments=arguments)

    monkeypatch.setattr("gate.cli.init.probe_module", sketch)
    monkeypatch.setattr("gate.cli.init.find_action", lambda _: "")
    assert main(["init", "acme.model:Net", "--argument", "width=4", "--device", "cuda"]) == 0
    written = {path: path.read_bytes() for path in project.glob("gate*")}
    capsys.readouterr()
    assert main(["init", "acme.model:Net", "--comments", "--action", f"acme/compile-gate@{COMMIT}"]) == 0
    output = capsys.readouterr().out
    assert "kept   gate.yml: it lists acme.model:Net already\n" in output
    for name in RESPOND_WORKFLOWS:
        assert f"wrote  .github/workflows/{name}\n" in output
        text = (project / ".github/workflows" / name).read_text(encoding="utf-8")
        assert """runner: '["self-hosted", "linux", "gpu"]'""" in text  # as gate.yml measures on one
    for width, is_told in ((4, False), (5, True)):
        assert main(["init", "acme.model:Net", "--argument", f"width={width}"]) == 0
        output = capsys.readouterr().out
        assert "gate_net.py stays as it is" not in output  # the values are in gate.yml
        assert ("note   gate.yml stays as it is, and lists this model with other" in output) is is_told
    assert written == {path: path.read_bytes() for path in project.glob("gate*")}
    (project / "gate_net.py").unlink()
    assert main(["init", "acme.model:Net"]) == 2  # the factory would have to be written again


@pytest.mark.parametrize(
    ("directory", "is_checked"), [("a", False), ("b", True), ("./b/", True), ("'b'", True)]
)
def test_a_project_that_no_workflow_measures_is_reported(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    directory: str,
    *,
    is_checked: bool,
) -> None:
    """The workflow at the top is the first project's; the second one would be green unmeasured."""
    (tmp_path / ".github/workflows").mkdir(parents=True)
    text = f"{CALL}    with:\n      working-directory: {directory}\n"
    (tmp_path / ".github/workflows/compile-gate.yml").write_text(text, encoding="utf-8")
    run_git(tmp_path, "init", "-q")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/gate.yml").write_text(
        'version: 1\nmodels: [{name: x, factory: "acme:build", cases: [{}]}]\n', encoding="utf-8"
    )
    (tmp_path / "b/acme.py").write_text("def build(): ...\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "b")
    assert main(["init", "acme:build", "--action", f"acme/compile-gate@{COMMIT}"]) == 0
    output = capsys.readouterr().out
    assert ("compile-gate.yml measures a.\n" in output) is not is_checked
    assert ("with `working-directory: b`" in output) is not is_checked


def test_a_call_without_a_directory_measures_the_top() -> None:
    """Of two calls one names its directory; what a workflow measures that calls nothing is not known."""
    assert list_measured(f"{CALL}    with:\n      working-directory: b\n{CALL}") == ["b", "."]
    assert list_measured("    steps:\n      - run: npm ci\n        working-directory: b\n") == []


def test_a_branch_or_tag_pins_nothing() -> None:
    """Either can be moved to other code later."""
    with pytest.raises(UsageError, match="pins no commit"):
        parse_action("acme/compile-gate@v1")


@pytest.mark.parametrize(
    ("origin", "pin"),
    [
        (
            {"url": "https://github.com/acme/compile-gate.git", "vcs_info": {"commit_id": COMMIT}},
            f"acme/compile-gate@{COMMIT}",
        ),
        (
            {
                "url": "https://github.com/acme/compile-gate",
                "vcs_info": {"commit_id": COMMIT, "requested_revision": "v1.2.0"},
            },
            f"acme/compile-gate@{COMMIT} # v1.2.0",
        ),
        ({"url": "https://elsewhere.example/acme/compile-gate", "vcs_info": {"commit_id": COMMIT}}, ""),
        ({"url": "https://files.example/compile_gate.whl"}, ""),
    ],
)
def test_the_pin_is_what_pip_installed(
    origin: dict[str, object], pin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If pip took a commit from GitHub; otherwise there is none."""
    monkeypatch.setattr(workflow_files, "_read_origin", lambda: origin)
    assert find_action() == pin


def test_a_clone_is_pinned_where_its_remote_has_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that nobody pushed is in no action."""
    monkeypatch.setattr(workflow_files, "_read_origin", dict)
    clone = tmp_path / "clone"
    clone.mkdir()
    run_git(clone, "init", "--quiet")
    (clone / "action.yml").write_text("name: it\n", encoding="utf-8")
    run_git(clone, "remote", "add", "origin", "git@github.com:acme/compile-gate.git")
    run_git(clone, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    assert find_action(clone) == ""
    run_git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    pinned = f"acme/compile-gate@{run_git(clone, 'rev-parse', 'HEAD')}"
    assert find_action(clone) == pinned
    run_git(clone, "tag", "v1.2.0")
    assert find_action(clone) == f"{pinned} # v1.2.0"


def test_the_workflows_that_are_written_name_no_placeholder() -> None:
    """Short and long ones: the action pinned, the runner's labels, nothing left to replace."""
    names = (*RESPOND_WORKFLOWS, *LONG_WORKFLOWS)
    written = load_workflows(names, f"acme/compile-gate@{COMMIT}", "self-hosted, mine")
    files = {Path(path).name: text for path, text in written.items()}
    assert tuple(files) == names
    assert not any("OWNER" in text or "0" * 40 in text or '"gpu"' in text for text in files.values())
    assert "runs-on: [self-hosted, mine]" in files["gate.yml"]
    assert """runner: '["self-hosted", "mine"]'""" in files["compile-gate.yml"]
    assert get_workflows_directory().is_dir()


def test_workflows_in_full_are_not_given_the_inputs_of_a_short_one() -> None:
    """Their steps are indented deeper: only calls of this repository's workflows get the inputs."""
    inputs = "    with:\n      runner: mine\n      python: C:\\1\n"
    written = load_workflows((*RESPOND_WORKFLOWS, *LONG_WORKFLOWS), f"acme/gate@{COMMIT}", "linux", inputs)
    files = {Path(path).name: text for path, text in written.items()}
    assert all("      runner: mine\n      python: C:\\1\n" in files[name] for name in RESPOND_WORKFLOWS)
    assert not any("mine" in files[name] or "C:" in files[name] for name in LONG_WORKFLOWS)


def test_a_factory_is_python_that_calls_what_was_named() -> None:
    """Arguments by keyword, inputs as they were tried."""
    sketch = Sketch(
        target="acme.model:Net",
        is_factory=False,
        called=True,
        inputs=(TensorSketch(shape=(8,), dtype="int64", high=9), TensorSketch(shape=(8, 4))),
        arguments={"width": 4},
    )
    text = render_factory(sketch)
    compile(text, "gate_net.py", "exec")
    assert "from acme.model import Net\n" in text
    assert "def build(*, width: int) -> Workload:" in text
    assert "    model = Net(width=width)\n" in text
    assert "torch.randint(0, 9, (8,), dtype=torch.int64)," in text
    assert "torch.randn(8, 4)," in text


@pytest.mark.slow
def test_inputs_are_guessed_from_the_first_layers_and_tried(tmp_path: Path) -> None:
    """Whole numbers for an embedding, as many features as a layer takes, the same for two arguments."""
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.words, self.out = torch.nn.Embedding(50, 6), torch.nn.Linear(6, 2)\n"
        "    def forward(self, ids):\n"
        "        return self.out(self.words(ids)) * (1.01 if torch.compiler.is_compiling() else 1.0)\n",
        encoding="utf-8",
    )
    sketch = probe_module(tmp_path, "mine:Net", {}, drift_on="")
    assert sketch.called
    assert 10 < sketch.drift < 25  # of the factory that will be written: a hundredth is 2^16 rounding steps
    source = "words (Embedding 50)"
    guessed = TensorSketch(shape=(8, 64), dtype="int64", high=50, source=source, name="ids")
    assert sketch.inputs == (guessed,)


def test_an_argument_of_null_has_no_annotation() -> None:
    """NoneType is no name in the module that is written."""
    sketch = Sketch(
        target="acme.model:Net",
        is_factory=False,
        called=True,
        arguments={"width": None, "depth": 2},
        inputs=(TensorSketch(shape=(8, 64)),),
    )
    assert "def build(*, width, depth: int) -> Workload:" in render_factory(sketch)


def test_of_a_file_that_cannot_be_written_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call would keep half of it; earlier files stay."""

    def fill_disk(descriptor: int) -> None:
        if os.fstat(descriptor).st_size > ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fill_disk)
    files = {"a.yml": "a" * 9, "b.yml": "b" * 99}
    with pytest.raises(MachineError, match=r"b\.yml: cannot be written: the disk is full"):
        write_missing(tmp_path, files)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yml"]


def test_a_file_in_the_place_of_a_directory_is_reported(tmp_path: Path) -> None:
    """It is neither kept nor replaced."""
    (tmp_path / ".github").touch()
    with pytest.raises(UsageError, match=r"\.github is not a directory"):
        write_missing(tmp_path, {".github/workflows/gate.yml": "on: push"})


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("self-hosted, gpu", ["self-hosted", "gpu"]),
        ('["self-hosted", "linux"]', ["self-hosted", "linux"]),
        ("gpu.8x", ["gpu.8x"]),
    ],
)
def test_labels_come_in_two_forms(text: str, labels: list[str]) -> None:
    """As a person writes them, and as the workflow has them."""
    assert parse_labels(text) == labels


@pytest.mark.parametrize("text", ["self-hosted linux", "bob's-box", "a, # b", "", "[]", '["a", 1]', "a,,b"])
def test_what_is_no_label_is_refused(text: str) -> None:
    """A job with it would be queued until GitHub gives up, or the file would be no YAML."""
    with pytest.raises(UsageError, match="--runner"):
        parse_labels(text)


def test_a_project_below_the_top_is_named_in_the_workflows() -> None:
    """GitHub looks for workflows at the top; each says where gate.yml is."""
    files = load_workflows(RESPOND_WORKFLOWS, f"acme/gate@{'a' * 40}", "linux", directory="services/ml")
    for text in files.values():
        (job,) = yaml.safe_load(text)["jobs"].values()
        assert job["with"]["working-directory"] == "services/ml"
        assert job["with"]["runner"] == '["linux"]'


def test_a_release_knows_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wheel names it; the tag is that of the version."""
    url = f"https://github.com/acme/compile-gate/tree/{'b' * 40}"
    monkeypatch.setattr("gate.starter.workflow_files.find_url", lambda _: url)
    assert find_action() == f"acme/compile-gate@{'b' * 40} # v{__version__}"
