"""What a shell command changed, and who owns what it changed."""
