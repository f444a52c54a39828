"""Trials and pairs of a run: measured, saved after each, resumed, stopped in time."""
