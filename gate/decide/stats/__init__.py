"""Statistics of small samples: moments, Student's t, ranks, rates. Numbers in, numbers out."""
