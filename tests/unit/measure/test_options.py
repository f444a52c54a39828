"""Options of torch.compile: read, set, and those that measured code sets."""

import json
from pathlib import Path

import pytest
import torch

from gate.measure import graph
from gate.measure.compile_options import keep_options, read_options, read_set_options, set_options
from gate.records.protocol import OPTIONS_FILE

INDUCTOR, DYNAMO = torch._inductor.config, torch._dynamo.config


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options that the primer wrote into a trial's cache."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    keep_options()
    options: dict[str, str] = json.loads((tmp_path / OPTIONS_FILE).read_text(encoding="utf-8"))
    return options


def compile_small() -> None:
    """Compile without generating code: its record has all options in force."""
    torch.compiler.reset()
    graph.start_observation()
    torch.compile(lambda tensor: tensor + 1, backend="eager")(torch.ones(2))


def test_options_are_read_by_name_without_paths_and_logs() -> None:
    """Three modules; the value is JSON."""
    options = read_options()
    assert options["inductor.epilogue_fusion"] == json.dumps(INDUCTOR.epilogue_fusion)
    assert options["dynamo.recompile_limit"] == json.dumps(DYNAMO.recompile_limit)
    assert any(name.startswith("functorch.") for name in options)
    assert not [name for name in options if "debug_dir" in name or name.endswith(".verbose")]


def test_what_code_sets_is_found_and_nothing_else(kept: dict[str, str]) -> None:
    """From the record of one compile; without any setting there is none."""
    compile_small()
    assert read_set_options() == {}
    other = not INDUCTOR.epilogue_fusion
    with INDUCTOR.patch(epilogue_fusion=other), DYNAMO.patch(recompile_limit=3):
        compile_small()
    assert kept["dynamo.recompile_limit"] != "3"
    assert read_set_options() == {
        "inductor.epilogue_fusion": json.dumps(other),
        "dynamo.recompile_limit": "3",
    }


def test_where_the_primer_left_nothing_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No option counts as set by code."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with DYNAMO.patch(recompile_limit=3):
        compile_small()
    assert read_set_options() == {}


def test_options_are_set_by_their_names() -> None:
    """In a section of a module too; one that this release lacks is refused."""
    with INDUCTOR.patch({"cpp.simdlen": None}), DYNAMO.patch(recompile_limit=8):
        set_options({"inductor.cpp.simdlen": "8", "dynamo.recompile_limit": "3"})
        assert (INDUCTOR.cpp.simdlen, DYNAMO.recompile_limit) == (8, 3)
    with pytest.raises(AttributeError, match="no_such_option"):
        set_options({"inductor.no_such_option": "1"})
