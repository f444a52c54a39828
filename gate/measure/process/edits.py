"""Whether what is under test was changed while it is measured; torch-free.

A run says of which commit it is, and what is changed there. A file that somebody saves meanwhile makes
some of its processes another program's.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gate.errors import UsageError
from gate.files.disk import read_written_ns
from gate.git import ask_git
from gate.measure.process.checkout import OF_BUILD, is_project_file, lies_below, list_imported
from gate.records.protocol import WorkerRequest

_KNOWN = ("ls-files", "--cached", "--others", "--exclude-standard")  # what git has, or would add

# Files of modules that a server has imported and looked at, and when they were written: in every process that
# it forks the modules stay what they are, whatever becomes of the files.
_LOOKED_AT: dict[Path, int] = {}


def check_edits(request: WorkerRequest) -> None:
    """Check that nothing imported since the last look was written after the run began.

    Raises:
        UsageError: A file of the working tree was, and git has it or would add it.
    """
    tree = request.tree
    if tree is None:
        return
    top = Path(tree.top)
    found = {place for _, place in list_imported() if lies_below(place, top) and place not in _LOOKED_AT}
    # Code that the compiler generates is imported as well, from where this run keeps its files.
    kept = (Path(tempfile.gettempdir()).resolve(), Path(request.result).resolve().parent)
    scratch = [place for place in kept if lies_below(place, top)]
    written = {
        place: read_written_ns(place)
        for place in sorted(found)
        if place.suffix == ".py"
        and place.name not in OF_BUILD
        and not any(lies_below(place, one) for one in scratch)
    }
    _LOOKED_AT.update(written)
    later = [str(place) for place, when_ns in written.items() if when_ns > tree.newest_ns]
    own = [place for place in later if is_project_file(Path(place), tree.top)]
    known = ask_git(top, *_KNOWN, "--", *own).said.splitlines() if own else []
    if known:
        raise UsageError(
            f"{known[0]} was changed while it was measured",
            "Measure again and leave the files alone meanwhile, or measure commits:"
            " compile-gate ab BASE HEAD",
        )


def has_moved_on() -> bool:
    """Whether a file was written since a server imported it: then the file is not what runs here."""
    return any(read_written_ns(place) != when_ns for place, when_ns in _LOOKED_AT.items())
