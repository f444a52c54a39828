"""From comparisons to an outcome: acceptances, quarantine, coverage, and what a verdict rests on."""
