"""What is kept beside the code: baselines, acceptances, approvals, the release anchor."""
