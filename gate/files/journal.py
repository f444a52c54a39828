"""A run that is saved again and again while it grows: see :mod:`gate.files.growth`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gate.files.codec import RUN, dump, encode_parts
from gate.files.disk import FileState, append_bytes, describe_write_error, read_state, write_atomic
from gate.files.growth import Growth, find_growth
from gate.records import Run


@dataclass(kw_only=True, slots=True)
class RunJournal:
    """Saves a run whole at first and once it is finished, and between by a line of what came to it.

    What another process has put in its place meanwhile is replaced, never added to.
    """

    path: Path
    _saved: Run | None = None
    _left: FileState | None = None  # as it was left

    def save(self, run: Run) -> None:
        """Save the run as it is now.

        Raises:
            MachineError, UsageError: See :func:`gate.files.disk.write_atomic`; what was saved stays.
        """
        growth = find_growth(self._saved, run) if self._saved and not run.finished else None
        if growth is None or not self._append(growth):
            self._left = write_atomic(self.path, encode_parts(RUN, run))
        self._saved = run

    def _append(self, growth: Growth) -> bool:
        try:
            with self.path.open("rb+", buffering=0) as file:
                if read_state(file) != self._left:
                    return False
                append_bytes(file, f"{dump(growth)}\n".encode())
                self._left = read_state(file)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise describe_write_error(self.path, error) from error
        return True
