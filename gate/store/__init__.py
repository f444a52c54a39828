"""What is kept next to the code: baselines, acceptances, the release anchor."""
