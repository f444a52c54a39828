"""What may be published, and in which words: those of GitHub, without its API. Pure.

What somebody submitted is read as hostile, stripped of every word that is not known, and turned into
comments, proposals and acceptances. :mod:`gate.github` fetches the one and writes the other.
"""
