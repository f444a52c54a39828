"""What is kept beside the code: baselines, acceptances, the release anchor."""
