"""A server whose workers run a file of Python: ``python acting_server.py DESCRIPTOR PARENT``."""

from __future__ import annotations

import runpy

from gate.measure.process.server import main

if __name__ == "__main__":
    main(lambda path, _begun: runpy.run_path(path))
