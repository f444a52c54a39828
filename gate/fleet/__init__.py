"""The lanes of a fleet, on Ray: one actor is one lane. Nothing else of compile-gate imports Ray."""

import os

# Read as Ray is imported. It would print what its processes say amid a report, in part on standard output.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as it will be; without it Ray warns
