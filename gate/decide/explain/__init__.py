"""What is said about a verdict besides its comparisons: causes, notes, next steps, the headline."""
