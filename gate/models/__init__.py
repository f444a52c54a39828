"""The reference models, one module per family; importing this package does not import torch.

Each module has one factory that returns a :class:`gate.workload.Workload`. ``registry.yml`` beside
this file says which cases are made of them. A factory builds from a configuration, with random
weights from the seed that the gate has set, and downloads nothing.

A case's definition covers its factory's own source file, so each module stands alone.

What a training step needs is the same everywhere: labels are made on the output's device by
counting, since a loss sees the output only, and the learning rate is so small that thousands of
timed steps leave the weights, and with them the cost of a step, as they were.
"""
