"""The GitHub side: a client, events, artifacts, comments and publishing. No torch, no measured code.

Nothing here decides anything about a measurement: it moves a verdict that was decided elsewhere to where
people look. Whatever asks GitHub may raise :class:`gate.github.transport.GitHubError`; docstrings name what
else is raised.
"""
