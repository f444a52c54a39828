"""Is this machine fit to judge? A look at it, and checks over what was seen."""
