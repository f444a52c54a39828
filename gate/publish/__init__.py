"""What may be told, to whom, and in which words; pure, and of no host's API.

What somebody submitted is read as hostile, stripped of every word that is not known, and turned into
comments, proposals and acceptances. :mod:`gate.github` fetches the one and writes the other.
"""
