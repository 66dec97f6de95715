"""aider: running it as a worker."""
