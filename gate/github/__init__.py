"""GitHub: its API, events, artifacts and comments. Nothing here decides anything about a measurement.

Whatever asks GitHub may raise :class:`gate.github.transport.GitHubError`; docstrings name other errors.
"""
