"""From a case to something that can be called, at the case's precision."""
