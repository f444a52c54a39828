"""Trials and pairs of a run: which comes next, saved after each, resumed, stopped in time."""
