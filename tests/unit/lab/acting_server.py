"""A server whose workers run a file of Python: ``python acting_server.py DESCRIPTOR PARENT``."""

import runpy
import tempfile

from gate.worker.server import main

if __name__ == "__main__":
    tempfile.gettempdir()  # as modules may, when they are imported
    main(lambda path, _begun: runpy.run_path(path))
