"""What can go wrong with GitHub. None of it says anything about the measured code.

GitHubError              exit code 4, as every trouble with the surroundings
├── UnreachableError     no usable answer: network, 5xx, a body cut short, after bounded repeats
├── UncertainWriteError  a POST was sent and no answer came: it may have happened, so look first
├── RateLimitedError     GitHub asks to wait for longer than is left of the waiting budget
├── DeniedError          401, or a 403 that is about rights
├── MissingError         404 or 410
├── RejectedError        any other 4xx, or a redirect that must not be followed
└── TooLargeError        an answer beyond its size limit
"""

from __future__ import annotations

from gate.errors import MachineError


class GitHubError(MachineError):
    """GitHub did not do what was asked. ``status`` is the HTTP status, 0 where there was none."""

    def __init__(self, what: str, fix: str, status: int = 0) -> None:
        super().__init__(what, fix)
        self.status = status


class UnreachableError(GitHubError):
    """No usable answer."""


class UncertainWriteError(GitHubError):
    """A POST may or may not have taken effect; find out before sending it again."""


class RateLimitedError(GitHubError):
    """A rate limit that outlasts the waiting budget."""


class DeniedError(GitHubError):
    """The token is wrong or lacks a right."""


class MissingError(GitHubError):
    """There is no such thing, or the token may not know of it."""


class RejectedError(GitHubError):
    """GitHub refuses the request as such."""


class TooLargeError(GitHubError):
    """An answer is larger than anything that is expected there."""
