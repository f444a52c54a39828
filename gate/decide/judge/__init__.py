"""Judges one metric of one case: noisy, exact, drift, by pairs, and what else could explain a change."""
