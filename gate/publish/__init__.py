"""What may be published, and in which words: those of GitHub, without its API. Pure.

Submitted files are read as hostile, stripped of unknown words, and turned into comments, proposals and
acceptances.
"""
