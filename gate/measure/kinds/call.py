"""One call of the model, or one training step: what most cases are."""

from gate.measure.kinds.protocol import Protocol

PROTOCOL = Protocol
