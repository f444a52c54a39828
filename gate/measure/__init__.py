"""The measuring side: what runs inside a worker process; only it and the models import torch.

``private`` names what is private to torch. Kinds of devices differ in ``device``.
"""
