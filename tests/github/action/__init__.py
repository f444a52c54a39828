"""A runner of composite actions: executes an ``action.yml`` as GitHub's runner does, steps and all.

    result = run_composite(ROOT / "action.yml", job, {"mode": "check"})
    result.outputs["verdict"], result.succeeded, result.log

Every ``run:`` step is a real bash with real, per-step command files; ``uses:`` is a stub of the test.
What GitHub's runner would not do is not done either: ``required`` is not enforced, there is no
automatic ``INPUT_*``, and an unknown input is only a warning.
"""
