"""Whether what is under test was changed while it is measured; torch-free.

A run says of which commit it is, and what is changed there. A file that somebody saves meanwhile makes
some of its processes another program's.
"""

from __future__ import annotations

from pathlib import Path

from gate.errors import UsageError
from gate.files.disk import read_written_ns
from gate.git import ask_git
from gate.measure.process.checkout import OF_BUILD, lies_below, list_imported
from gate.records.protocol import WorkerRequest

# Modules that a server has imported and looked at: they stay what they are in every process that it forks.
_LOOKED_AT: set[str] = set()


def check_edits(request: WorkerRequest) -> None:
    """Check that nothing imported since the last look was written after the run began.

    Raises:
        UsageError: A file of the working tree was, and git has it or would add it.
    """
    tree = request.tree
    if tree is None:
        return
    top = Path(tree.top)
    found = [(name, place) for name, place in list_imported() if lies_below(place, top)]
    written = [
        place
        for name, place in found
        if name not in _LOOKED_AT
        and place.suffix == ".py"
        and place.name not in OF_BUILD
        and read_written_ns(place) > tree.newest_ns
    ]
    _LOOKED_AT.update(name for name, _ in found)
    for place in written:
        if ask_git(top, "ls-files", "--cached", "--others", "--exclude-standard", "--", str(place)).said:
            raise UsageError(
                f"{place.relative_to(top)} was changed while it was measured",
                "Measure again and leave the files alone meanwhile, or measure commits:"
                " compile-gate ab BASE HEAD",
            )
