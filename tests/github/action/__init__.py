"""The action in a job of its own: a workspace, an interpreter, its one step as GitHub's runner starts it."""
