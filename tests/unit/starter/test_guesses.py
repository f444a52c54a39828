"""Guessed inputs of a module, and the error if no guess works."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.cli import main
from gate.cli.init import check_probed_name
from gate.errors import UsageError
from gate.starter.new_files import Sketch, TensorSketch, render_factory
from gate.starter.sketch import UnusableTargetError, look

MODELS = """
import dataclasses, torch
from torch import nn

@dataclasses.dataclass
class Out:
    y: torch.Tensor

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 4)

class Record(Base):
    def forward(self, x): return Out(self.l(x))

class Two(Base):
    def __init__(self):
        super().__init__()
        self.r = nn.Linear(6, 4)
    def forward(self, x, y): return self.l(x) + self.r(y)

class Graph(Base):
    def forward(self, x, edge_index): return self.l(x)[edge_index[0]]

class Half(Base):
    def __init__(self):
        super().__init__()
        self.bfloat16()
    def forward(self, x): return self.l(x)

class Short(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions, self.words = nn.Embedding(32, 4), nn.Embedding(100, 4)
    def forward(self, ids): return self.words(ids) + self.positions(torch.arange(ids.shape[1]))

class Dict(Base):
    def forward(self, batch): return self.l(batch["x"])

class Named(Base):
    def forward(self, *, x): return self.l(x)

class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3)
    def forward(self, images: list[list[torch.Tensor]]): return [self.c(one) for row in images for one in row]

class Levels(Base):
    def forward(self, levels: "Sequence[Tensor]"): return self.l(torch.cat(list(levels)))
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the models."""
    directory: Path = tmp_path_factory.mktemp("guessed")
    (directory / "guessed_models.py").write_text(MODELS, encoding="utf-8")
    return directory


def ask(top: Path, name: str) -> dict[str, Any]:
    """Look at one of the models."""
    return look({"directory": str(top), "target": f"guessed_models:{name}", "arguments": {}, "inputs": []})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Record", ["8x8 float32 from l (Linear 8)"]),
        ("Two", ["8x8 float32 from l (Linear 8)", "8x6 float32 from r (Linear 6)"]),
        ("Graph", ["8x8 float32 from l (Linear 8)", "2x64 int64<8 from its name, edge_index"]),
        ("Half", ["8x8 bfloat16 from l (Linear 8)"]),
        ("Images", ["list of list of 3x64x64 float32 from c (Conv2d 3)"]),
        ("Levels", ["list of 8x8 float32 from l (Linear 8)"]),
        ("Short", ["8x16 int64<100 from words (Embedding 100)"]),
    ],
)
def test_inputs_are_guessed_with_their_source(directory: Path, name: str, expected: list[str]) -> None:
    """Sizes come from layers, types from parameters; and the written factory works."""
    guessed = ask(directory, name)
    descriptions = [
        f"{'list of ' * item.get('lists', 0)}{'x'.join(map(str, item['shape']))} {item['dtype']}"
        + (f"<{item['high']}" if "high" in item else "")
        + f" from {item['source']}"
        for item in guessed["inputs"]
    ]
    assert descriptions == expected
    sketch = Sketch(
        target=f"guessed_models:{name}",
        is_factory=False,
        called=guessed["called"],
        inputs=tuple(TensorSketch(**{**item, "shape": tuple(item["shape"])}) for item in guessed["inputs"]),
        arguments={},
    )
    module: dict[str, Any] = {}
    exec(render_factory(sketch), module)  # noqa: S102 - our own text
    workload = module["build"]()
    workload.forward(*workload.inputs)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "Dict",
            "inputs",
            "forward(batch) failed with guessed inputs, the likeliest of them 8x8:float32 from l (Lin",
        ),
        ("Named", "factory", "forward takes x by keyword only"),
        (
            "Nope",
            "name",
            "guessed_models has no Nope; it has Base, Record, Two, Graph, Half, Short, Dict, Named",
        ),
        ("", "name", "this is a module; it has Base, Record, Two"),
    ],
)
def test_what_cannot_be_guessed_is_reported(directory: Path, name: str, kind: str, message: str) -> None:
    """The error is the likeliest guess's; a wrong name is answered with the existing ones."""
    with pytest.raises(UnusableTargetError) as caught:
        ask(directory, name)
    assert caught.value.kind == kind
    assert str(caught.value).startswith(message)
    # Nobody knows which of them a wrong name meant; the last class of a module is the whole.
    assert (": write guessed_models:" in str(caught.value)) is (message.startswith("this is a module"))


def test_a_file_is_answered_with_the_modules_name() -> None:
    """A shell completes paths."""
    with pytest.raises(UsageError, match=r"'zoo/model\.py:TinyNet' is a file") as caught:
        check_probed_name("zoo/model.py:TinyNet")
    assert caught.value.fix == "Write zoo.model:TinyNet."


def test_init_names_what_was_guessed_and_what_a_kept_factory_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second call with another input changes nothing, with a note."""
    monkeypatch.chdir(tmp_path)
    guessed = TensorSketch(shape=(8, 64), source="stem (Linear 64)")

    def sketch(
        _: Path, target: str, _arguments: object, given: Sequence[TensorSketch], *_more: object
    ) -> Sketch:
        inputs = tuple(replace(tensor, name="clicked") for tensor in given or (guessed,))
        return Sketch(target=target, is_factory=False, called=True, inputs=inputs, arguments={})

    monkeypatch.setattr("gate.cli.init.probe_module", sketch)
    assert main(["init", "acme:Net"]) == 0
    assert (
        "input  clicked 8x64:float32, guessed from stem (Linear 64); change it in gate_net.py or with --input"
        in capsys.readouterr().out.splitlines()
    )
    assert main(["init", "acme:Net", "--input", "8x64"]) == 0
    assert "stays as it is" not in capsys.readouterr().out
    assert main(["init", "acme:Net", "--input", "4x64"]) == 0
    assert (
        "note   gate_net.py stays as it is, without what --input and --argument say: change it there"
        in capsys.readouterr().out.splitlines()
    )


def test_sizes_have_no_comma_too_many() -> None:
    """The text reads as a person would write it, with the parameter's name."""
    inputs = (
        TensorSketch(shape=(8, 64), dtype="int64", high=500, name="clicked"),
        TensorSketch(shape=(8,), dtype="float16"),
    )
    sketch = Sketch(target="a:B", is_factory=False, called=True, inputs=inputs, arguments={})
    text = render_factory(sketch)
    assert "        torch.randint(0, 500, (8, 64), dtype=torch.int64),  # clicked\n" in text
    assert "        torch.randn(8, dtype=torch.float16),\n" in text
