"""``authorize``: decide about the refresh that an event asks for, and tell the following jobs."""

from __future__ import annotations

import os
from argparse import Namespace

from gate.cli.publish import make_client
from gate.errors import ExitCode, UsageError
from gate.github.authorize import authorize_refresh, make_outputs
from gate.github.context import load_context
from gate.github.job import append_summary, write_outputs


def run_authorize(options: Namespace) -> ExitCode:
    """Write the outputs ``authorized``, ``head-sha``, ``head-ref``, ``select`` and ``pr-number``.

    A comment that is no command is not an error: ``authorized`` is then false, as it is whenever
    this fails.
    """
    del options
    context, (client, _) = load_context(os.environ), make_client(os.environ)
    try:
        authorization = authorize_refresh(client, context)
    except UsageError as error:
        write_outputs(os.environ, make_outputs(None))
        append_summary(os.environ, "Baselines are not refreshed; the log of the step says why.")
        raise UsageError(error.what, error.fix) from None
    write_outputs(os.environ, make_outputs(authorization))
    if authorization is None:
        print("Nobody asked for a refresh.")
    else:
        print(f"{authorization.author} may refresh {authorization.head_ref} at {authorization.head_sha}.")
    return ExitCode.PASS
