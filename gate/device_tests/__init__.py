"""Tests of a device, run by ``first-contact``: whether it behaves as the measuring side assumes.

``runner`` (without torch) runs each in a pytest process of its own; ``plugin`` gives them what they need.
"""
