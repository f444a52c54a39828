"""The decision: pure functions from a run, baselines and a policy to a verdict.

``docs/decision.md`` describes the procedure, its formulas and its constants.
"""
