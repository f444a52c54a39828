"""All prose of a verdict: from codes, numbers and names to sentences. Nothing reads these back."""
