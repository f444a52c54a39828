"""The border between bytes and records: strict JSON and YAML, limits, versions, atomic writes."""
