"""``gate.yml`` and registries become cases and plans, head's and the base's."""
