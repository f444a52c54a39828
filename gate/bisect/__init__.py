"""``bisect``: find the first commit, or interpreter, at which a case is worse or fails, in pairs."""
