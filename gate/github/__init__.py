"""The GitHub side: a client, events, artifacts, comments and publishing. No torch, no measured code.

``client`` <- ``events``, ``artifact``, ``comment``, ``status`` <- ``publish``. Nothing here decides
anything about a measurement: it moves a verdict that was decided elsewhere to where people look.
"""
