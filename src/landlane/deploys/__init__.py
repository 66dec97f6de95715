"""Keep up with the target (sync, update) and deploy."""
