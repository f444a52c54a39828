"""A GitHub on loopback that holds both sides to GitHub's own OpenAPI description.

    with FakeGitHub("api.github.com") as github:        # or "ghes-3.17"
        pull = github.state.add_pull(number=7, head_sha=SHA)
        github.fail("POST", r"/comments$", Fault(status=502, times=1))
        ...
    assert github.violations == []

``state.py`` holds what the fake GitHub knows, ``routes.py`` what it answers (a table that further
modules may extend with ``@route``), ``contract.py`` checks, ``faults.py`` breaks things on purpose.
"""
