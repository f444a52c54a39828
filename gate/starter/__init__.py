"""What a project begins with: a look at the user's module, and the files that ``init`` writes."""
