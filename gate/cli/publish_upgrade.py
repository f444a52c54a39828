"""``publish-upgrade``: tell how an upgrade went in one issue. No torch, no measured code."""

from __future__ import annotations

import argparse

from gate.cli.publish import make_context, tell_publication
from gate.decide.conclude.outcome import FailOn
from gate.github.upgrade import UpgradeSettings, publish_upgrade
from gate.publish.telling import CommentWhen


def run_publish_upgrade(options: argparse.Namespace) -> int:
    """Publish an upgrade's verdict and return 0: what was decided shows in what is published.

    Raises:
        UsageError: An option or the environment is unusable.
    """
    settings = UpgradeSettings(
        run_id=options.run_id,
        conclusion=options.conclusion,
        artifact_name=options.artifact_name,
        issue=CommentWhen(options.issue),
        key=options.key,
        fail_on=FailOn(options.fail_on),
    )
    context = make_context(options.config, options.author)
    return tell_publication(context, publish_upgrade(context, settings), quiet=options.quiet)
