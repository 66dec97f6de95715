"""aider as a worker."""
