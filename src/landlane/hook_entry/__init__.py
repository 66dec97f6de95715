"""What client hooks and git hooks start: a fast path, then the full path."""
