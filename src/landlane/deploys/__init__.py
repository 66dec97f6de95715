"""Keep up with the target branch (sync, update) and deploy."""
