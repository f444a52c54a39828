"""The pages of a history: series, where they changed, and how they are drawn."""
