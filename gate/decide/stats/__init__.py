"""Statistics of small samples: moments, Student's t, rates. Numbers in, numbers out."""
