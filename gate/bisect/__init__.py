"""``bisect``: find the first commit, or interpreter, at which a metric of a case is worse, in pairs."""
